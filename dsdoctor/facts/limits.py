"""Per-process limits (ulimit) and the kernel's limits that DeepSpeed's aio and pinned buffers meet."""

from dsdoctor.facts.base import Fact

UNLIMITED = -1


class Limit(Fact, frozen=True, kw_only=True):
    """Soft and hard value; ``UNLIMITED`` (-1) for no limit."""

    soft: int
    hard: int


class Limits(Fact, frozen=True, kw_only=True):
    memlock_bytes: Limit | None = None
    open_files: Limit | None = None
    processes: Limit | None = None
    aio_max_nr: int | None = None  # /proc/sys/fs/aio-max-nr
    aio_nr: int | None = None  # in use
