"""MEM: RAM, cgroup limits, /dev/shm and ulimits. Healthy is quiet; sick is found with both values."""

import pytest
from dsdoctor_checks import memory as checks

from dsdoctor.facts import UNLIMITED, Limit
from dsdoctor.healthy import GIB, gpus, healthy, host, limits, memory, network
from dsdoctor.model import Check, Severity, Status
from dsdoctor.testing import verdict

EVERY = [value for value in vars(checks).values() if isinstance(value, Check)]
MIB = 1 << 20


@pytest.mark.parametrize("check", EVERY, ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check) -> None:
    assert verdict(check, healthy()).status in (Status.PASSED, Status.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("container", "command"),
    [
        ("docker", "docker run --shm-size=8g IMAGE"),
        ("kubernetes", None),
        (None, "sudo mount -o remount,size=8G /dev/shm"),
    ],
)
def test_mem001_small_shm_is_enlarged_where_it_is_decided(container: str | None, command: str | None) -> None:
    small = memory(shm_bytes=64 * MIB, shm_free_bytes=64 * MIB)
    found = verdict(checks.shm_large_enough, healthy(host(container=container), small))
    assert "64 MiB" in found.findings[0].message
    assert found.severity is Severity.WARNING
    remedy = found.findings[0].remedy
    assert remedy is not None
    assert remedy.commands == ((command,) if command else ())


def test_mem001_exactly_what_deepspeed_wants_is_enough() -> None:
    assert verdict(checks.shm_large_enough, healthy(memory(shm_bytes=512 * MIB))).status is Status.PASSED


def test_mem002_full_shm_blocks_several_gpus_and_names_leftovers() -> None:
    full = memory(shm_bytes=8 * GIB, shm_free_bytes=10 * MIB, shm_leftovers=("nccl-abc", "torch_1_2"))
    found = verdict(checks.shm_has_room, healthy(full))
    assert "nccl-abc" in found.findings[0].message
    assert "many-gpus" in checks.shm_has_room.guards


def test_mem002_small_and_full_is_said_once() -> None:
    tiny = memory(shm_bytes=64 * MIB, shm_free_bytes=0)
    assert verdict(checks.shm_has_room, healthy(tiny)).status is Status.NOT_APPLICABLE


def test_mem003_locked_memory_matters_with_infiniband_only() -> None:
    little = limits(memlock_bytes=Limit(soft=65536, hard=65536))
    assert verdict(checks.memory_can_be_locked, healthy(little)).status is Status.NOT_APPLICABLE
    found = verdict(checks.memory_can_be_locked, healthy(little, network(infiniband=("mlx5_0",))))
    assert "mlx5_0" in found.findings[0].message
    unlimited = limits(memlock_bytes=Limit(soft=UNLIMITED, hard=UNLIMITED))
    assert verdict(checks.memory_can_be_locked, healthy(unlimited)).status is Status.PASSED


@pytest.mark.parametrize(("count", "severity"), [(1, Severity.INFO), (8, Severity.WARNING)])
def test_mem004_open_files_weigh_more_with_several_gpus(count: int, severity: Severity) -> None:
    few = limits(open_files=Limit(soft=1024, hard=4096))
    found = verdict(checks.files_may_be_open, healthy(few, gpus(count)))
    assert found.severity is severity
    assert found.findings[0].remedy is not None
    assert found.findings[0].remedy.commands == ("ulimit -n 4096",)


def test_mem005_the_kernels_own_count_is_the_proof() -> None:
    killed = memory(cgroup_oom_kills=3, cgroup_limit_bytes=16 * GIB)
    found = verdict(checks.nothing_killed, healthy(killed))
    assert "killed 3" in found.findings[0].message
    assert "16.0 GiB" in found.findings[0].message
    assert verdict(checks.nothing_killed, healthy(memory(cgroup_oom_kills=None))).status is Status.UNKNOWN


def test_mem006_a_tight_group_on_a_large_machine_is_worth_a_word() -> None:
    found = verdict(checks.group_leaves_memory, healthy(memory(cgroup_limit_bytes=8 * GIB)))
    assert "8.0 GiB of the machine's 128.0 GiB" in found.findings[0].message


def test_mem007_wsl_gets_half() -> None:
    found = verdict(checks.wsl_memory, healthy(host(wsl=2), memory(total_bytes=16 * GIB)))
    assert ".wslconfig" in str(found.findings[0].remedy)
    assert verdict(checks.wsl_memory, healthy()).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("system", ["windows", "darwin"])
@pytest.mark.parametrize(
    "check", [checks.memory_can_be_locked, checks.files_may_be_open, checks.nothing_killed], ids=lambda c: c.code
)
def test_mem003_to_mem005_do_not_ask_what_the_system_does_not_have(check: Check, system: str) -> None:
    nothing = (limits(memlock_bytes=None, open_files=None), memory(cgroup_version=None, cgroup_oom_kills=None))
    judged = verdict(check, healthy(host(system=system), *nothing))
    assert judged.status is Status.NOT_APPLICABLE
    assert judged.reason


def test_mem004_a_limit_that_macos_tells_is_judged() -> None:
    few = limits(open_files=Limit(soft=256, hard=UNLIMITED))
    assert verdict(checks.files_may_be_open, healthy(host(system="darwin"), few)).status is Status.FAILED


def test_mem002_segments_that_nobody_uses_are_removed_by_name() -> None:
    full = memory(shm_bytes=8 * GIB, shm_free_bytes=10 * MIB, shm_leftovers=("nccl-abc", "torch_1;reboot"))
    remedy = verdict(checks.shm_has_room, healthy(full)).findings[0].remedy
    assert remedy is not None
    assert remedy.commands == ("rm -- /dev/shm/nccl-abc '/dev/shm/torch_1;reboot'",)
    assert remedy.safety == "careful"
    unknown = verdict(checks.shm_has_room, healthy(memory(shm_bytes=8 * GIB, shm_free_bytes=10 * MIB)))
    assert "rm " not in str(unknown.findings[0].remedy)


def test_mem009_no_memory_to_start_with_counts_the_cgroup() -> None:
    tight = memory(cgroup_limit_bytes=4 * GIB, cgroup_used_bytes=3 * GIB)
    found = verdict(checks.memory_to_start, healthy(tight))
    assert found.status is Status.FAILED
    assert "1.0 GiB" in found.findings[0].message
