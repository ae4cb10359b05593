"""Limits of this process and of the kernel's asynchronous I/O."""

from dsdoctor.facts import UNLIMITED, Limit, Limits
from dsdoctor.probes.system import System


def probe(system: System) -> Limits:
    """ulimits where the platform has them, and /proc/sys/fs/aio-* on Linux."""
    if system.platform == "win32":
        return Limits()
    try:
        import resource
    except ImportError:
        return Limits()

    def limit(name: str) -> Limit | None:
        number = getattr(resource, name, None)
        if number is None:
            return None
        soft, hard = (UNLIMITED if v == resource.RLIM_INFINITY else v for v in resource.getrlimit(number))
        return Limit(soft=soft, hard=hard)

    return Limits(
        memlock_bytes=limit("RLIMIT_MEMLOCK"),
        open_files=limit("RLIMIT_NOFILE"),
        processes=limit("RLIMIT_NPROC"),
        aio_max_nr=_number(system.read("/proc/sys/fs/aio-max-nr")),
        aio_nr=_number(system.read("/proc/sys/fs/aio-nr")),
    )


def _number(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isdigit() else None
