"""Host memory and its limits, from files as kernels write them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dsdoctor.probes import ProbeFailed, memory
from dsdoctor.probes.system import System

Built = Callable[..., System]
GIB = 1024**3
MEMINFO = "MemTotal:       131981020 kB\nMemFree:        1000000 kB\nMemAvailable:   98000000 kB\nSwapTotal:       8388604 kB\nSwapFree:        8388604 kB\nHugePages_Total:       0\n"
BASE = {"/proc/meminfo": MEMINFO}
V2 = BASE | {"/sys/fs/cgroup/cgroup.controllers": "cpu memory\n"}


def test_what_the_kernel_tells(built: Built) -> None:
    found = memory.probe(built(BASE))
    assert found.total_bytes == 131981020 * 1024
    assert found.available_bytes == 98000000 * 1024
    assert (found.swap_total_bytes, found.swap_free_bytes) == (8388604 * 1024, 8388604 * 1024)
    assert (found.cgroup_version, found.cgroup_limit_bytes, found.cgroup_oom_kills) == (None, None, None)
    assert found.usable_bytes == found.available_bytes


def test_without_meminfo_nothing_is_claimed(built: Built) -> None:
    with pytest.raises(ProbeFailed, match="MemTotal"):
        memory.probe(built())


def test_a_container_s_limit_and_its_kills(built: Built) -> None:
    files = V2 | {
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/memory.max": f"{16 * GIB}\n",
        "/sys/fs/cgroup/memory.current": f"{4 * GIB}\n",
        "/sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0\n",
    }
    found = memory.probe(built(files))
    assert (found.cgroup_version, found.cgroup_limit_bytes, found.cgroup_used_bytes) == (2, 16 * GIB, 4 * GIB)
    assert found.cgroup_oom_kills == 2
    assert found.usable_bytes == 12 * GIB


def test_file_pages_that_the_kernel_can_drop_do_not_count_as_used(built: Built) -> None:
    files = V2 | {
        "/sys/fs/cgroup/memory.max": f"{16 * GIB}\n",
        "/sys/fs/cgroup/memory.current": f"{15 * GIB}\n",
        "/sys/fs/cgroup/memory.stat": f"anon {2 * GIB}\nfile {13 * GIB}\ninactive_file {12 * GIB}\nactive_file {GIB}\n",
    }
    assert memory.probe(built(files)).usable_bytes == 13 * GIB


def test_the_smallest_limit_on_the_way_up_is_the_one_that_kills(built: Built) -> None:
    files = V2 | {
        "/proc/self/cgroup": "0::/slurm/job_7/step_0\n",
        "/sys/fs/cgroup/slurm/job_7/memory.max": f"{8 * GIB}\n",
        "/sys/fs/cgroup/slurm/job_7/memory.current": f"{3 * GIB}\n",
        "/sys/fs/cgroup/slurm/job_7/step_0/memory.max": "max\n",
        "/sys/fs/cgroup/slurm/job_7/step_0/memory.current": f"{GIB}\n",
        "/sys/fs/cgroup/slurm/job_7/step_0/memory.events": "oom_kill 1\n",
        "/sys/fs/cgroup/slurm/memory.max": f"{64 * GIB}\n",
    }
    found = memory.probe(built(files))
    assert (found.cgroup_limit_bytes, found.cgroup_used_bytes, found.cgroup_oom_kills) == (8 * GIB, 3 * GIB, 1)


def test_cgroup_v2_without_a_limit(built: Built) -> None:
    found = memory.probe(built(V2 | {"/sys/fs/cgroup/memory.max": "max\n"}))
    assert (found.cgroup_version, found.cgroup_limit_bytes) == (2, None)


V1 = BASE | {"/proc/self/cgroup": "9:memory:/docker/0123abc\n4:cpu,cpuacct:/docker/0123abc\n"}


def test_cgroup_v1_in_a_container_sees_its_group_as_the_root(built: Built) -> None:
    files = V1 | {
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{32 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{20 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.stat": f"inactive_file {GIB}\ntotal_inactive_file {15 * GIB}\n",
        "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    }
    found = memory.probe(built(files))
    assert (found.cgroup_version, found.cgroup_limit_bytes, found.cgroup_used_bytes) == (1, 32 * GIB, 5 * GIB)
    assert found.cgroup_oom_kills == 3


def test_the_huge_number_of_cgroup_v1_is_no_limit(built: Built) -> None:
    found = memory.probe(built(V1 | {"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}))
    assert (found.cgroup_version, found.cgroup_limit_bytes) == (1, None)


def test_segments_that_nobody_removed(built: Built) -> None:
    names = ("nccl-3wXa9z", "torch_4711_2917_0", "sem.mp-abc", "mine", "__KMP_REGISTERED_LIB_12_0")
    found = memory.probe(built(BASE | {f"/dev/shm/{name}": "" for name in names}))
    assert found.shm_leftovers == ("nccl-3wXa9z", "torch_4711_2917_0")


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="needs statvfs")
def test_size_of_shared_memory_is_that_of_its_filesystem(built: Built) -> None:
    assert memory.probe(built(BASE)).shm_bytes is None
    found = memory.probe(built(BASE | {"/dev/shm/x": ""}))
    assert found.shm_bytes is not None
    assert found.shm_free_bytes is not None
    assert 0 <= found.shm_free_bytes <= found.shm_bytes


@pytest.mark.skipif(not sys.platform.startswith("linux") or not os.access("/dev/shm", os.W_OK), reason="needs /dev/shm")
def test_a_segment_in_use_is_no_leftover() -> None:
    segment = Path("/dev/shm") / f"torch_{os.getpid()}_dsdoctor_test"
    try:
        with segment.open("w"):
            assert segment.name not in memory.probe(System()).shm_leftovers
        assert segment.name in memory.probe(System()).shm_leftovers
    finally:
        segment.unlink()


@pytest.mark.skipif(os.name != "posix", reason="the stand-in sysctl is a shell script")
def test_macos_says_its_memory_through_sysctl(built: Built) -> None:
    found = memory.probe(built(programs={"sysctl": "echo 17179869184"}, platform="darwin"))
    assert (found.total_bytes, found.shm_bytes, found.cgroup_version) == (16 * GIB, None, None)


def test_macos_without_sysctl_is_not_known(built: Built) -> None:
    with pytest.raises(ProbeFailed, match="sysctl"):
        memory.probe(built(platform="darwin"))
