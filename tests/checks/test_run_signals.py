"""RUN001 where a rank was ended by a signal: the numbers around it tell one cause from another."""

from typing import Any

import pytest
from dsdoctor_checks import run as family

from dsdoctor import healthy as h
from dsdoctor.facts import SmokeAftermath, SmokeRun
from dsdoctor.model import Finding, Status
from dsdoctor.testing import verdict

MIB, GIB = 1 << 20, 1 << 30
SEGFAULT = """Fatal Python error: Segmentation fault

Thread 0x00007f1c2a7fc640 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait
  File "/usr/lib/python3.11/threading.py", line 629 in wait

Current thread 0x00007f1c9b2c4740 (most recent call first):
  File "/env/lib/python3.11/site-packages/deepspeed/ops/adam/cpu_adam.py", line 176 in step
  File "/env/lib/python3.11/site-packages/deepspeed/runtime/zero/stage3.py", line 1116 in _optimizer_step
"""
OOM = "[8123.4] Memory cgroup out of memory: Killed process 4242 (python) total-vm:31457280kB, anon-rss:8388608kB"


def run(signal: str, *, world_size: int = 1, output: str | None = None, after: SmokeAftermath | None = None,
        **rank: Any) -> SmokeRun:  # fmt: skip
    rank = {"signal": signal, "last_phase": "first step", **rank}
    return h.fallen_run(outcome="signal", world_size=world_size, output_tail=output, aftermath=after, rank=rank)


def told(sick: SmokeRun) -> Finding:
    found = verdict(family.runs_end, h.healthy(h.smoke(sick)))
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    assert finding.remedy is not None
    assert str(sick.ranks[sick.fell_first or 0].signal) in finding.message
    assert "first step" in finding.message or "import" in finding.message
    return finding


@pytest.mark.parametrize(
    ("numbers", "proof"),
    [
        ({"oom_kills": 2}, "2 OOM kills"),
        ({"oom_kills": 1, "least_available_bytes": 3 * MIB, "memory_limit_bytes": 8 * GIB}, "3 MiB stayed free, the limit is 8.0 GiB"),
        ({"oom_kills": None, "kernel_log": OOM}, "Killed process 4242"),
        ({"oom_kills": None, "least_available_bytes": 90 * MIB, "memory_limit_bytes": 8 * GIB}, "90 MiB"),
    ],
)  # fmt: skip
def test_a_kill_by_the_kernel_is_proved_by_numbers(numbers: dict[str, Any], proof: str) -> None:
    finding = told(run("SIGKILL", after=h.aftermath(**numbers)))
    assert finding.cause == "rc-minus-9-host-oom"
    assert proof in finding.message


def test_a_kill_where_memory_stayed_free_came_from_somebody_else() -> None:
    finding = told(run("SIGKILL", after=h.aftermath(least_available_bytes=7 * GIB, kernel_log="")))
    assert finding.cause == "run-killed"
    assert "no OOM kill" in finding.message
    assert "7.0 GiB" in finding.message
    assert "kernel's log has no OOM line" in finding.message


def test_a_kill_without_any_number_is_called_the_usual_one_and_says_what_is_not_known() -> None:
    for after in (None, SmokeAftermath()):
        finding = told(run("SIGKILL", after=after))
        assert finding.cause == "rc-minus-9-host-oom"
        assert "could be read" in finding.message
        assert finding.remedy is not None
        assert "dmesg" in " ".join(finding.remedy.commands)


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_polite_signal_comes_from_another_program(signal: str) -> None:
    assert told(run(signal)).cause == "run-killed"


@pytest.mark.parametrize(
    ("total", "free", "cause"),
    [
        (64 << 10, 0, "shm-too-small"),
        (64 * MIB, 30 * MIB, "shm-too-small"),
        (512 * MIB, 4096, "shm-too-small"),
        (64 * GIB, 4096, "shm-no-space"),
        (64 * GIB, 62 * GIB, "rc-minus-11-segfault"),
        (None, None, "shm-too-small"),
    ],
)
def test_a_bus_error_is_told_by_the_room_in_dev_shm(total: int | None, free: int | None, cause: str) -> None:
    finding = told(run("SIGBUS", after=h.aftermath(shm_total_bytes=total, shm_least_free_bytes=free)))
    assert finding.cause == cause
    assert "/dev/shm" in finding.message


def test_the_numbers_of_dev_shm_are_in_the_message() -> None:
    small = told(run("SIGBUS", after=h.aftermath(shm_total_bytes=64 << 10, shm_least_free_bytes=0)))
    assert "/dev/shm has 64 KiB, of which 0 bytes stayed free" in small.message


def test_a_segfault_names_the_newest_frame_of_the_thread_that_crashed() -> None:
    finding = told(run("SIGSEGV", stack=SEGFAULT))
    assert finding.cause == "rc-minus-11-segfault"
    assert "step (/env/lib/python3.11/site-packages/deepspeed/ops/adam/cpu_adam.py:176)" in finding.message
    assert any("cpu_adam.py" in evidence.text for evidence in finding.evidence)
    assert "no Python frame" in told(run("SIGSEGV")).message


def test_the_kernel_names_the_library_of_a_segfault() -> None:
    log = "[812.1] python[4242]: segfault at 10 ip 00007f1c sp 00007ffd error 4 in cpu_adam.so[7f1c2a000000+1a000] likely on CPU 3"
    finding = told(run("SIGSEGV", after=h.aftermath(kernel_log=log)))
    assert "places it in cpu_adam.so" in finding.message
    assert any(evidence.where == "kernel log" for evidence in finding.evidence)


def test_a_crash_in_an_import_is_one_of_the_import() -> None:
    assert told(run("SIGSEGV", last_phase="import torch")).cause == "import-crashes"
    assert told(run("SIGBUS", last_phase="import torch", after=h.aftermath())).cause == "import-crashes"


def test_an_illegal_instruction_is_an_op_for_another_processor() -> None:
    assert told(run("SIGILL", stack=SEGFAULT)).cause == "cpu-adam-illegal-instruction"


MLOCK = """mlock failed to allocate 40000000 bytes with error no 12 msg Cannot allocate memory
python: deepspeed_pin_tensor.cpp:48: at::Tensor deepspeed_pin_tensor_t::alloc(int64_t, const c10::TensorOptions&): Assertion `nullptr != pinned_buffer' failed."""


@pytest.mark.parametrize(
    ("output", "cause", "words"),
    [
        (MLOCK, "memlock-limit", "mlock failed to allocate 40000000 bytes"),
        ("terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered", "rc-minus-11-segfault", "illegal memory access"),
        ("free(): invalid next size (fast)", "rc-minus-11-segfault", "free(): invalid next size"),
        ("*** stack smashing detected ***: terminated", "rc-minus-11-segfault", "stack smashing"),
        ("python: deepspeed_aio_common.cpp:109: void _do_io_submit_block(...): Assertion `submit_ret > 0' failed.", "nvme-no-odirect", "submit_ret > 0"),
        ("", "rc-minus-11-segfault", "no Python frame"),
    ],
)  # fmt: skip
def test_an_abort_is_told_by_the_words_before_it(output: str, cause: str, words: str) -> None:
    finding = told(run("SIGABRT", output=output))
    assert finding.cause == cause
    assert words in finding.message


def test_a_locked_memory_limit_is_not_taken_for_a_lack_of_memory() -> None:
    """Both say "Cannot allocate memory"."""
    finding = told(run("SIGABRT", output=MLOCK, after=h.aftermath()))
    assert finding.cause == "memlock-limit"


def test_a_signal_that_no_row_knows_is_still_told() -> None:
    finding = told(run("SIGSYS"))
    assert finding.cause == "rc-minus-11-segfault"


def test_the_rank_and_those_torn_down_after_it_are_told_apart() -> None:
    finding = told(run("SIGKILL", world_size=2, after=h.aftermath(oom_kills=1)))
    assert "rank 0 fell first, it was ended by SIGKILL" in finding.message
    assert "rank 1 was only torn down after it" in finding.message
