"""What is looked at when a run has ended: numbers that tell a kill for memory from another one, and last words."""

import re
from collections.abc import Mapping

from dsdoctor.facts import Memory, SmokeAftermath
from dsdoctor.probes import ProbeFailed, memory
from dsdoctor.probes.system import System
from dsdoctor.smoke.folder import Folder
from dsdoctor.smoke.sampler import Sampler

KERNEL_LINES = 12
NCCL_LINES = 8
_KERNEL = re.compile(
    r"oom-kill|Out of memory|Killed process|segfault|general protection|traps:|bus error", re.IGNORECASE
)
_PREFIX = re.compile(r"^\S+:\d+:\d+ \[\d+\] ")  # host, process, thread, device
_CHANNEL = re.compile(r"NCCL INFO (?:Channel \d|Trees |Ring \d)")
_SINCE_BOOT = re.compile(r"^\[\s*(\d+\.\d+)\]")


class Before:
    """The counters before the run."""

    def __init__(self, system: System) -> None:
        found = _memory(system)
        self.oom_kills = found.cgroup_oom_kills if found else None


def look(
    system: System,
    before: Before,
    sampler: Sampler,
    folder: Folder,
    pids: Mapping[int, int],
    *,
    began: float,
    well: bool,
    left_behind: tuple[str, ...],
) -> SmokeAftermath:
    """The numbers after the run; of one that ended well only those that cost nothing."""
    now = _memory(system)
    kills = now.cgroup_oom_kills if now else None
    limit = (now.cgroup_limit_bytes or now.total_bytes) if now else None
    return SmokeAftermath(
        oom_kills=kills - before.oom_kills if kills is not None and before.oom_kills is not None else None,
        memory_limit_bytes=limit,
        least_available_bytes=sampler.least_available,
        shm_total_bytes=now.shm_bytes if now else None,
        shm_least_free_bytes=sampler.shm_least_free,
        kernel_log=None if well else kernel_log(system, began),
        nccl_words=None if well else _nccl_words(folder, pids),
        left_behind=left_behind,
    )


def kernel_log(system: System, began: float) -> str | None:
    """What the kernel said since ``began`` (seconds since boot) of processes that it ended; None when it may not be read."""
    if not system.linux or system.which("dmesg") is None:
        return None
    ran = system.run(["dmesg"], 3.0)
    lines = [line for line in ran.stdout.splitlines() if _KERNEL.search(line) and _since(line) >= began]
    return "\n".join(lines[-KERNEL_LINES:]) or None


def _since(line: str) -> float:
    found = _SINCE_BOOT.match(line)
    return float(found.group(1)) if found else 0.0


def _nccl_words(folder: Folder, pids: Mapping[int, int]) -> str | None:
    """Of each rank what NCCL warned of, else its last lines, without the names of host, process and channels."""
    words: list[str] = []
    for rank, pid in sorted(pids.items()):
        lines = [_PREFIX.sub("", line) for line in (folder.nccl(pid) or "").splitlines() if not _CHANNEL.search(line)]
        warned = [line for line in lines if "NCCL WARN " in line]
        words += [f"rank {rank}: {line}" for line in (warned or lines)[-NCCL_LINES:]]
    return "\n".join(words) or None


def _memory(system: System) -> Memory | None:
    try:
        return memory.probe(system)
    except ProbeFailed:
        return None
