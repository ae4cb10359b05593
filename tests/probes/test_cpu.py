"""The processor as DeepSpeed's op builders would see it."""

import os
import sys
from collections.abc import Callable

import pytest

from dsdoctor.probes import cpu
from dsdoctor.probes.system import System

Built = Callable[..., System]
XEON = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8480C
flags\t\t: fpu sse sse2 avx avx2 avx512f avx512dq

processor\t: 1
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8480C
flags\t\t: fpu sse sse2 avx avx2 avx512f avx512dq
"""
cores = getattr(os, "sched_getaffinity", None)
linux_only = pytest.mark.skipif(cores is None, reason="needs sched_getaffinity")


def many_cores(monkeypatch: pytest.MonkeyPatch, count: int = 64) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)), raising=False)


def test_the_kernel_s_word(built: Built) -> None:
    found = cpu.probe(built({"/proc/cpuinfo": XEON}))
    assert (found.model, found.vendor) == ("Intel(R) Xeon(R) Platinum 8480C", "GenuineIntel")
    assert found.logical_cores == 2
    assert "avx512dq" in found.flags
    assert found.read_from == "proc"


@pytest.mark.parametrize(
    ("kind", "flags", "width"),
    [
        ("X86_64", ("avx2", "avx512f"), "avx512"),
        ("X86_64", ("avx2",), "avx2"),
        ("X86_64", ("sse2",), "scalar"),
        ("X86_64", ("avx512vl",), "scalar"),  # DeepSpeed asks for avx512 or avx512f by their whole name
        ("ARM_8", ("sve", "fp"), "sve"),
        ("ARM_8", ("fp",), "neon"),
        ("ARM_7", ("neon",), "scalar"),
        ("PPC_64", (), "scalar"),
        (None, ("avx2",), None),
    ],
)
def test_simd_width_is_deepspeed_s_rule(kind: str | None, flags: tuple[str, ...], width: str | None) -> None:
    assert cpu.simd(kind, flags) == width


def test_py_cpuinfo_really_answers_in_a_child() -> None:
    found = cpu.probe_py_cpuinfo(System())
    assert found.read_from == "py-cpuinfo"
    assert found.architecture == cpu.architecture(os.uname().machine if hasattr(os, "uname") else "AMD64")
    assert found.simd is not None


def test_without_py_cpuinfo_s_answer_the_platform_is_asked(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", os.path.join(os.sep, "not", "there"))
    assert cpu.probe_py_cpuinfo(built({"/proc/cpuinfo": XEON})).read_from == "proc"
    assert cpu.probe_py_cpuinfo(built(platform="darwin")).read_from == "platform"


@linux_only
def test_a_cpu_quota_of_cgroup_v2_cuts_the_cores(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    many_cores(monkeypatch)
    files = {"/sys/fs/cgroup/cgroup.controllers": "cpu memory\n", "/sys/fs/cgroup/cpu.max": "400000 100000\n"}
    assert cpu.usable_cores(built(files)) == 4


@linux_only
def test_the_smallest_quota_above_our_own_group_counts(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    many_cores(monkeypatch)
    files = {
        "/sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "/proc/self/cgroup": "0::/jobs/one\n",
        "/sys/fs/cgroup/jobs/cpu.max": "800000 100000\n",
        "/sys/fs/cgroup/jobs/one/cpu.max": "max 100000\n",
    }
    assert cpu.usable_cores(built(files)) == 8


@linux_only
def test_a_cpu_quota_of_cgroup_v1(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    many_cores(monkeypatch)
    files = {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}
    assert cpu.usable_cores(built(files)) == 1  # half a core is still one
    files["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1\n"
    assert cpu.usable_cores(built(files)) == 64


@linux_only
def test_a_quota_above_the_affinity_changes_nothing(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    many_cores(monkeypatch, 2)
    files = {"/sys/fs/cgroup/cgroup.controllers": "cpu\n", "/sys/fs/cgroup/cpu.max": "400000 100000\n"}
    assert cpu.usable_cores(built(files)) == 2


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_answer_from_python_s_platform(built: Built, platform: str) -> None:
    found = cpu.probe(built(platform=platform))
    assert found.read_from == "platform"
    assert found.logical_cores == os.cpu_count()
    assert found.flags == ()
