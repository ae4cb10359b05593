"""Host memory: RAM, swap, cgroup limits, /dev/shm."""

import os
import platform
import re
import sys

from dsdoctor.facts import Memory
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.system import System

NO_LIMIT = 1 << 62  # cgroup v1 says "no limit" with a number near 2**63
_LEFTOVER = re.compile(r"^(nccl-|torch_|sem\.mp-|__KMP_REGISTERED_LIB_)")
KEPT_NAMES = 20


def probe(system: System) -> Memory:
    """Sizes in bytes. Raises ProbeFailed when not even the total is to be had."""
    if not system.linux:
        return _elsewhere(system)
    info = {}
    for line in (system.read("/proc/meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        if value.split() and value.split()[0].isdigit():
            info[name] = int(value.split()[0]) * 1024
    if "MemTotal" not in info:
        raise ProbeFailed("failed", "/proc/meminfo has no MemTotal")
    version, limit, used, kills = _cgroup(system)
    size, free = _shm(system)
    return Memory(
        total_bytes=info["MemTotal"],
        available_bytes=info.get("MemAvailable"),
        swap_total_bytes=info.get("SwapTotal"),
        swap_free_bytes=info.get("SwapFree"),
        cgroup_version=version,  # type: ignore[arg-type]
        cgroup_limit_bytes=limit,
        cgroup_used_bytes=used,
        cgroup_oom_kills=kills,
        shm_bytes=size,
        shm_free_bytes=free,
        shm_leftovers=tuple(n for n in system.names("/dev/shm") if _LEFTOVER.match(n))[:KEPT_NAMES],
    )


def _cgroup(system: System) -> tuple[int | None, int | None, int | None, int | None]:
    """Version, smallest limit from this group up to the root, use of the group that has it, OOM kills of our group."""
    groups = dict(
        line.split(":", 2)[1:] for line in (system.read("/proc/self/cgroup") or "").splitlines() if line.count(":") >= 2
    )
    if system.exists("/sys/fs/cgroup/cgroup.controllers"):
        base, own, names, version = "/sys/fs/cgroup", groups.get("", "/"), ("memory.max", "memory.current"), 2
    else:
        own = next((path for names, path in groups.items() if "memory" in names.split(",")), "/")
        base, names, version = "/sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes"), 1
        if not system.is_dir(base):
            return None, None, None, None
    limit = used = None
    folders = _upwards(system, base, own)
    for folder in folders:
        found = _number(system.read(f"{folder}/{names[0]}"))
        if found is not None and found < NO_LIMIT and (limit is None or found < limit):
            limit, used = found, _number(system.read(f"{folder}/{names[1]}"))
    return version, limit, used, _oom_kills(system, folders[0] if folders else base)


def _upwards(system: System, base: str, own: str) -> list[str]:
    """The group's folder and its parents; a container sees its own group as the root."""
    parts = [p for p in own.split("/") if p and p != ".."]
    folders = ["/".join((base, *parts[:count])) for count in range(len(parts), -1, -1)]
    return [f for f in folders if system.is_dir(f)]


def _oom_kills(system: System, folder: str) -> int | None:
    for name in ("memory.events", "memory.oom_control"):
        for line in (system.read(f"{folder}/{name}") or "").splitlines():
            if line.startswith("oom_kill "):
                return _number(line.split()[1])
    return None


def _number(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isdigit() else None


def _shm(system: System) -> tuple[int | None, int | None]:
    if not hasattr(os, "statvfs"):
        return None, None
    try:
        found = os.statvfs(system.path("/dev/shm"))
    except OSError:
        return None, None
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def _elsewhere(system: System) -> Memory:
    if system.platform == "darwin":
        ran = system.run(["sysctl", "-n", "hw.memsize"], 5.0)
        total = _number(ran.stdout)
        if total is None:
            raise ProbeFailed("failed", "sysctl hw.memsize gave no number")
        return Memory(total_bytes=total)
    if sys.platform != "win32":
        raise ProbeFailed("failed", f"memory of {platform.system() or system.platform} is not known")
    return _windows()


def _windows() -> Memory:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("total", "available", "page_total", "page_free", "virtual_total", "virtual_free", "extended")
        ]

    status = Status()
    status.length = ctypes.sizeof(Status)
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # type: ignore[attr-defined]
        raise ProbeFailed("failed", "Windows did not tell its memory")
    return Memory(total_bytes=status.total, available_bytes=status.available)
