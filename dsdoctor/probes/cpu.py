"""The processor: from /proc at once, or from py-cpuinfo in a child as DeepSpeed's op builders ask it."""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Literal

from dsdoctor.facts import Cpu
from dsdoctor.probes.cgroups import groups, number
from dsdoctor.probes.system import System

LIMIT_S = 15.0
SCRIPT = Path(__file__).parent / "scripts" / "cpuinfo.py"
Simd = Literal["avx512", "avx2", "neon", "sve", "scalar"]


def probe(system: System) -> Cpu:
    """The kernel's word on Linux; Python's platform module elsewhere."""
    text = system.read("/proc/cpuinfo") if system.linux else None
    if not text:
        return Cpu(
            model=platform.processor() or None,
            architecture=architecture(platform.machine()),
            logical_cores=os.cpu_count(),
            usable_cores=usable_cores(system),
            read_from="platform",
        )
    fields: dict[str, str] = {}
    cores = 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        cores += name.strip() == "processor"
        fields.setdefault(name.strip().lower(), value.strip())
    flags = tuple(sorted((fields.get("flags") or fields.get("features") or "").split()))
    kind = architecture(platform.machine())
    return Cpu(
        model=fields.get("model name"),
        vendor=fields.get("vendor_id") or fields.get("cpu implementer"),
        architecture=kind,
        logical_cores=cores or os.cpu_count(),
        usable_cores=usable_cores(system),
        flags=flags,
        simd=simd(kind, flags),
    )


def probe_py_cpuinfo(system: System) -> Cpu:
    """py-cpuinfo's word, from a child of dsdoctor's own interpreter (it takes a second); without an answer, probe's."""
    ran = system.run([sys.executable, str(SCRIPT)], LIMIT_S, answer=True, polite=True)
    try:
        info = json.loads(ran.answer)
    except ValueError:
        info = None
    if not isinstance(info, dict):
        return probe(system)
    flags = tuple(sorted(info.get("flags") or ()))
    kind = info.get("arch") or architecture(platform.machine())
    return Cpu(
        model=info.get("brand_raw"),
        vendor=info.get("vendor_id_raw"),
        architecture=kind,
        logical_cores=info.get("count") or os.cpu_count(),
        usable_cores=usable_cores(system),
        flags=flags,
        simd=simd(kind, flags),
        read_from="py-cpuinfo",
    )


def simd(kind: str | None, flags: tuple[str, ...]) -> Simd | None:
    """What cpu_adam would be compiled for: DeepSpeed's op_builder/builder.py, simd_width() and cpu_arch() (read in 0.19.8)."""
    if kind == "X86_64":
        if "avx512" in flags or "avx512f" in flags:
            return "avx512"
        return "avx2" if "avx2" in flags else "scalar"
    if kind == "ARM_8":
        return "sve" if "sve" in flags else "neon"
    return "scalar" if kind else None


def architecture(machine: str) -> str | None:
    """py-cpuinfo's name of an architecture."""
    lowered = machine.lower()
    if lowered in ("x86_64", "amd64"):
        return "X86_64"
    if lowered in ("aarch64", "arm64"):
        return "ARM_8"
    return "PPC_64" if lowered.startswith("ppc64") else machine or None


def usable_cores(system: System) -> int | None:
    """Cores that a process here may use: affinity, cut by the cpu quota of our cgroup and of those above it."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count()
    if not cores or not system.linux:
        return cores
    version, folders = groups(system, "cpu")
    for folder in folders:
        quota, period = _quota(system, folder, version)
        if quota and period:
            cores = max(1, min(cores, round(quota / period)))
    return cores


def _quota(system: System, folder: str, version: int | None) -> tuple[int | None, int | None]:
    """CPU time per period of one group, both in microseconds; (None, ...) for no limit."""
    if version == 2:
        words = (system.read(f"{folder}/cpu.max") or "").split()
        return (number(words[0]), number(words[1])) if len(words) == 2 else (None, None)
    return number(system.read(f"{folder}/cpu.cfs_quota_us")), number(system.read(f"{folder}/cpu.cfs_period_us"))
