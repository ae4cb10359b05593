"""RUN020 to RUN024: what kept a run busy, where it swapped to, what it left. Notes and warnings, no errors."""

from typing import Any

import pytest
from dsdoctor_checks import run_load as family

from dsdoctor import healthy as h
from dsdoctor.facts import SmokeLoad, SmokeRun, SmokeSwap
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

MIB = 1 << 20


def told(check: Check, *runs: SmokeRun) -> Finding:
    found = verdict(check, h.healthy(h.smoke(*runs)))
    assert found.status is Status.FAILED, (found.status, found.reason)
    assert found.severity is not Severity.ERROR
    (finding,) = found.findings
    assert finding.remedy is not None
    return finding


def status(check: Check, *runs: SmokeRun) -> Status:
    return verdict(check, h.healthy(h.smoke(*runs))).status


def offloading(**load: Any) -> SmokeRun:
    plain: dict[str, Any] = {
        "samples": 20,
        "core_percent": (95.0, 99.0, 82.0, 92.0),
        "cpu_percent": 92.0,
        "gpu_percent": 30.0,
    }
    return h.smoke_run("zero2-offload", offload="optimizer to cpu", load=SmokeLoad(**{**plain, **load}))


def swapping(**changes: Any) -> SmokeRun:
    plain: dict[str, Any] = {
        "path": "/mnt/my nvme", "filesystem": "ext4", "direct": True, "plain_write_bytes_per_s": 2e9,
        "plain_read_bytes_per_s": 5e9, "swapped_bytes": 134 * MIB, "files": 20, "written_bytes": 900 * MIB,
        "read_bytes": 900 * MIB, "step_seconds": 1.0,
    }  # fmt: skip
    return h.smoke_run("zero3-nvme", offload="optimizer and parameters to nvme", swap=SmokeSwap(**{**plain, **changes}))


@pytest.mark.parametrize("check", checks_of(family), ids=lambda check: check.code)
def test_healthy_runs_are_quiet(check: Check) -> None:
    runs = (offloading(cpu_percent=60.0, gpu_percent=70.0), swapping(), h.smoke_run(aftermath=h.aftermath()))
    assert status(check, *runs) is Status.PASSED


def test_the_cpu_that_keeps_the_gpu_waiting_is_told_with_both_numbers() -> None:
    finding = told(family.offload_keeps_up, offloading())
    assert "CPU 92 % busy, GPU 30 %" in finding.message
    assert "3 of 4 cores above 90 %" in finding.message
    assert "optimizer to cpu" in finding.message


@pytest.mark.parametrize(
    "load",
    [{"samples": 4}, {"cpu_percent": None}, {"gpu_percent": None}, {"cpu_percent": 40.0}, {"gpu_percent": 80.0}],
)
def test_too_few_samples_or_an_idle_cpu_prove_nothing(load: dict[str, Any]) -> None:
    assert status(family.offload_keeps_up, offloading(**load)) in (Status.PASSED, Status.NOT_APPLICABLE)


def test_only_offload_on_a_gpu_is_judged() -> None:
    busy = SmokeLoad(samples=20, cpu_percent=99.0, gpu_percent=1.0)
    assert status(family.offload_keeps_up, h.smoke_run(load=busy)) is Status.NOT_APPLICABLE
    cpu = h.smoke_run("zero2-offload", offload="optimizer to cpu", accelerator="cpu", load=busy)
    assert status(family.offload_keeps_up, cpu) is Status.NOT_APPLICABLE


def test_a_disk_that_is_mostly_idle_is_told_with_both_rates() -> None:
    finding = told(family.swap_is_fast, swapping(step_seconds=9.0))
    assert "moved 1.8 GiB in 9.00 s of steps, 0.21 GB/s" in finding.message
    assert "2.00 GB/s written and 5.00 GB/s read" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("ds_nvme_tune --nvme_dir '/mnt/my nvme'",)


@pytest.mark.parametrize(
    "swap",
    [
        {"written_bytes": 20 * MIB, "read_bytes": 20 * MIB},
        {"written_bytes": None, "read_bytes": None},
        {"plain_write_bytes_per_s": None},
        {"step_seconds": None},
        {"step_seconds": 3.0},
    ],
)
def test_few_bytes_or_unknown_rates_say_nothing_of_the_disk(swap: dict[str, Any]) -> None:
    assert status(family.swap_is_fast, swapping(**{"step_seconds": 9.0, **swap})) is Status.PASSED


def test_a_folder_that_refuses_direct_io_is_named_with_its_filesystem() -> None:
    finding = told(family.swap_is_direct, swapping(direct=False, filesystem="tmpfs"))
    assert "/mnt/my nvme on tmpfs" in finding.message
    assert finding.cause == "nvme-no-odirect"
    assert status(family.swap_is_direct, swapping(direct=None)) is Status.PASSED
    assert status(family.swap_is_direct, h.smoke_run()) is Status.NOT_APPLICABLE


def test_a_run_that_swapped_nothing_proves_nothing_about_the_disk() -> None:
    finding = told(family.swap_files_appear, swapping(files=0, swapped_bytes=0))
    assert "0 files of 0 bytes" in finding.message
    assert "stage 3" in finding.message
    assert status(family.swap_files_appear, swapping(files=None, swapped_bytes=None)) is Status.PASSED


def test_what_a_run_left_is_removed_by_a_quoted_command_however_it_ended() -> None:
    left = h.aftermath(left_behind=("/mnt/my nvme/dsdoctor-1", "/dev/shm/nccl-aB3"))
    finding = told(family.nothing_is_left, h.fallen_run(aftermath=left), h.smoke_run(aftermath=h.aftermath()))
    assert "/dev/shm/nccl-aB3" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("rm -rf -- '/mnt/my nvme/dsdoctor-1' /dev/shm/nccl-aB3",)
    assert finding.remedy.safety == "careful"
