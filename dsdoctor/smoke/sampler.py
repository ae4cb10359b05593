"""What the machine does while a run runs, ten times a second: memory, processors, disks, GPUs."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Mapping

from dsdoctor.facts import SmokeCurves, SmokeLoad
from dsdoctor.probes import nvml
from dsdoctor.probes.answers import entry
from dsdoctor.probes.processes import family, ticks
from dsdoctor.probes.runner import NotStarted, Running
from dsdoctor.probes.system import System

SAMPLE_S = 0.1
KEPT = 600
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
Sample = dict[str, float | None]
SERIES = tuple(name for name in SmokeCurves.__struct_fields__ if name != "seconds")


class Sampler:
    """``tick`` takes a sample when one is due. CPU, host memory and disks are read from Linux's /proc only."""

    def __init__(self, system: System, *, began: float, usable_cores: int, gpus: Iterable[int] = ()) -> None:
        self._proc = system.linux and system.real
        self._began, self._usable = began, max(1, usable_cores)
        self._due = self._before = began
        self._gpus = Gpus(system, gpus)
        self._ticks = self._io = None  # type: tuple[dict[int, int], float] | None
        self._cores: dict[int, tuple[int, int]] = {}
        self._samples: list[tuple[float, Sample]] = []
        self._steady: list[tuple[Sample, list[float]]] = []
        self.least_available: int | None = None
        self.shm_least_free: int | None = None

    def tick(self, pids: Iterable[int], torch_bytes: int | None, *, building: bool, steady: bool) -> Sample | None:
        """The sample, when it is time for one. ``building``: children of the ranks count, too. ``steady``: steps run."""
        now = time.monotonic()
        if now < self._due:
            return None
        self._due = max(self._due + SAMPLE_S, now)
        sample: Sample = dict.fromkeys(SERIES)
        if torch_bytes:
            sample["torch_bytes"] = torch_bytes
        sample |= self._gpus.now()
        cores: list[float] = []
        if self._proc:
            named = list(pids)
            sample["rss_bytes"] = sum(_rss(pid) for pid in named) or None
            sample["cpu_percent"] = self._busy([p for pid in named for p in (family(pid) if building else [pid])], now)
            sample |= self._disks(named, now)
            cores = self._core_percent()
            sample["busiest_core_percent"] = max(cores, default=None)
            self._least()
        self._samples.append((now - self._began, sample))
        if steady:
            self._steady.append((sample, cores))
        return sample

    def close(self) -> None:
        self._gpus.close()

    def curves(self) -> SmokeCurves | None:
        """All samples, thinned."""
        stride = -(-len(self._samples) // KEPT)
        kept = self._samples[:: max(1, stride)]
        if not kept:
            return None
        columns = {name: tuple(_rounded(sample[name]) for _, sample in kept) for name in SERIES}
        there = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        return SmokeCurves(seconds=tuple(round(at, 2) for at, _ in kept), **there)  # type: ignore[arg-type]

    def load(self) -> SmokeLoad | None:
        """What was busy while steps ran."""
        if not self._steady:
            return None
        cores = [core for _, core in self._steady if core]
        width = min(map(len, cores), default=0)
        return SmokeLoad(
            samples=len(self._steady),
            core_percent=tuple(round(sum(core[i] for core in cores) / len(cores), 1) for i in range(width)),
            cpu_percent=_mean(sample["cpu_percent"] for sample, _ in self._steady),
            gpu_percent=_mean(sample["gpu_percent"] for sample, _ in self._steady),
        )

    def _busy(self, pids: list[int], now: float) -> float | None:
        """Percent of the usable cores that the run's processes took since the last sample."""
        found = {pid: ticks(pid) for pid in pids}
        before, self._ticks = self._ticks, (found, now)
        if before is None or now <= before[1]:
            return None
        spent = sum(max(0, count - before[0][pid]) for pid, count in found.items() if pid in before[0])
        return min(100.0, 100 * spent / _TICKS_PER_S / (now - before[1]) / self._usable)

    def _disks(self, pids: list[int], now: float) -> Sample:
        read = written = 0
        for pid in pids:
            counts = _io(pid)
            read, written = read + counts[0], written + counts[1]
        before, self._io = self._io, ({0: read, 1: written}, now)
        if before is None or now <= before[1] or read < before[0][0] or written < before[0][1]:
            return {}
        seconds = now - before[1]
        return {
            "read_bytes_per_s": (read - before[0][0]) / seconds,
            "write_bytes_per_s": (written - before[0][1]) / seconds,
        }

    def _core_percent(self) -> list[float]:
        """Busy percent of each core that we may use, since the last sample."""
        found: dict[int, tuple[int, int]] = {}
        allowed = os.sched_getaffinity(0) if sys.platform == "linux" else set()
        with contextlib.suppress(OSError, ValueError), open("/proc/stat", encoding="ascii") as file:
            for line in file:
                if line.startswith("cpu") and line[3:4].isdigit():
                    name, *numbers = line.split()
                    counts = [int(number) for number in numbers[:8]]
                    found[int(name[3:])] = (sum(counts), counts[3] + counts[4])  # all, idle and waiting for a disk
        before, self._cores = self._cores, found
        percent = []
        for core in sorted(found.keys() & before.keys() & allowed):
            spent, idle = (found[core][i] - before[core][i] for i in (0, 1))
            percent.append(100 * (spent - idle) / spent if spent > 0 else 0.0)
        return percent

    def _least(self) -> None:
        with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    self.least_available = _less(self.least_available, int(line.split()[1]) * 1024)
                    break
        with contextlib.suppress(OSError):
            found = os.statvfs("/dev/shm")
            self.shm_least_free = _less(self.shm_least_free, found.f_frsize * found.f_bavail)


class Gpus:
    """NVML's numbers of some GPUs, from a child that asks for us."""

    def __init__(self, system: System, indices: Iterable[int]) -> None:
        self._indices = frozenset(indices)
        self._last: Mapping[int, tuple[int, float]] = {}
        self._child: Running | None = None
        folder = nvml.bindings() if self._indices else None
        if folder is not None:
            script = str(nvml.SCRIPTS / "nvml_watch.py")
            with contextlib.suppress(NotStarted):
                self._child = system.start([sys.executable, "-I", "-S", script, folder], answer=True, hear=self._hear)

    def _hear(self, line: bytes) -> None:
        told = entry(line).get("gpus", [])
        self._last = {index: (used, busy) for index, used, busy in told if index in self._indices}

    def now(self) -> Sample:
        last = self._last
        if not last:
            return {}
        return {
            "gpu_bytes": sum(used for used, _ in last.values()),
            "gpu_percent": sum(busy for _, busy in last.values()) / len(last),
        }

    def close(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None


def _rss(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _io(pid: int) -> tuple[int, int]:
    """Bytes that a process had read from and written to disks."""
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            counts = dict(line.split(": ") for line in file.read().splitlines())
        return int(counts["read_bytes"]), int(counts["write_bytes"])
    except (OSError, ValueError, KeyError):
        return 0, 0


def _less(known: int | None, found: int) -> int:
    return found if known is None else min(known, found)


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return round(sum(there) / len(there), 1) if there else None


def _rounded(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else round(value, 1)
