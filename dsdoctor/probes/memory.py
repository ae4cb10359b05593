"""Host memory: RAM, swap, cgroup limits, /dev/shm."""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from dsdoctor.facts import Memory
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.cgroups import groups, number
from dsdoctor.probes.system import System

NO_LIMIT = 1 << 62  # cgroup v1 says "no limit" with a number near 2**63
_LEFTOVER = re.compile(
    r"^(nccl-|torch_|deepspeed_allreduce_buffer_)"
)  # DeepSpeed 0.19.8 csrc/cpu/comm/shm.cpp unlinks none
_SEGMENT = re.compile(r"/dev/shm/(\S+)")
KEPT_NAMES = 20


def probe(system: System) -> Memory:
    """Sizes in bytes. Raises ProbeFailed when not even the total is to be had."""
    if not system.linux:
        return _elsewhere(system)
    info = {}
    for line in (system.read("/proc/meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        kilobytes = number(value.partition("kB")[0])
        if kilobytes is not None:
            info[name] = kilobytes * 1024
    if "MemTotal" not in info:
        raise ProbeFailed("failed", "/proc/meminfo has no MemTotal")
    version, limit, used, kills = _cgroup(system)
    size, free = _shm(system)
    return Memory(
        total_bytes=info["MemTotal"],
        available_bytes=info.get("MemAvailable"),
        swap_total_bytes=info.get("SwapTotal"),
        swap_free_bytes=info.get("SwapFree"),
        cgroup_version=version,
        cgroup_limit_bytes=limit,
        cgroup_used_bytes=used,
        cgroup_oom_kills=kills,
        shm_bytes=size,
        shm_free_bytes=free,
        shm_leftovers=_leftovers(system),
    )


def _cgroup(system: System) -> tuple[Literal[1, 2] | None, int | None, int | None, int | None]:
    """Version, smallest limit from this group up to the root, use of the group that has it, OOM kills of our group."""
    version, folders = groups(system, "memory")
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    limit = used = None
    for folder in folders:
        found = number(system.read(f"{folder}/{names[0]}"))
        if found is not None and found < NO_LIMIT and (limit is None or found < limit):
            limit, used = found, _used(system, folder, names[1])
    return version, limit, used, _oom_kills(system, folders[0]) if folders else None


def _used(system: System, folder: str, name: str) -> int | None:
    """What a group uses, without file pages that the kernel drops when memory is short (as Kubernetes counts)."""
    used = number(system.read(f"{folder}/{name}"))
    if used is None:
        return None
    stat = dict(line.partition(" ")[::2] for line in (system.read(f"{folder}/memory.stat") or "").splitlines())
    droppable = number(stat.get("total_inactive_file")) or number(stat.get("inactive_file")) or 0
    return max(0, used - droppable)


def _oom_kills(system: System, folder: str) -> int | None:
    for name in ("memory.events", "memory.oom_control"):
        for line in (system.read(f"{folder}/{name}") or "").splitlines():
            if line.startswith("oom_kill "):
                return number(line.split()[1])
    return None


def _shm(system: System) -> tuple[int | None, int | None]:
    if not hasattr(os, "statvfs"):
        return None, None
    try:
        found = os.statvfs(system.path("/dev/shm"))
    except OSError:
        return None, None
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def _leftovers(system: System) -> tuple[str, ...]:
    """Segments of NCCL, torch and DeepSpeed that no process uses. Those of other users are left out: their use cannot be seen."""
    named = [n for n in system.names("/dev/shm") if _LEFTOVER.match(n) and _ours(system.path(f"/dev/shm/{n}"))]
    used = _segments_in_use(system) if named and system.real else frozenset()
    return tuple(n for n in named if n not in used)[:KEPT_NAMES]


def _ours(path: Path) -> bool:
    me = os.geteuid() if hasattr(os, "geteuid") else 0
    try:
        return me in (0, path.lstat().st_uid)
    except OSError:
        return False


def _segments_in_use(system: System) -> frozenset[str]:
    """Names in /dev/shm that a process has mapped or opened, as far as we may look."""
    return segments_of(system, (pid for pid in system.names("/proc") if pid.isdigit()))


def segments_of(system: System, pids: Iterable[str]) -> frozenset[str]:
    """Names in /dev/shm that these processes have mapped or opened."""
    used: set[str] = set()
    for pid in pids:
        used.update(_SEGMENT.findall(system.read(f"/proc/{pid}/maps") or ""))
        for descriptor in system.names(f"/proc/{pid}/fd"):
            try:
                used.update(_SEGMENT.findall(os.readlink(f"/proc/{pid}/fd/{descriptor}")))
            except OSError:
                continue
    return frozenset(used)


def _elsewhere(system: System) -> Memory:
    if system.platform == "darwin":
        ran = system.run(["sysctl", "-n", "hw.memsize"], 5.0)
        total = number(ran.stdout)
        if total is None:
            raise ProbeFailed("failed", "sysctl hw.memsize gave no number")
        return Memory(total_bytes=total)
    if sys.platform != "win32":
        raise ProbeFailed("failed", f"memory of {system.platform} is not known")
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
