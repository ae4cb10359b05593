"""RUN001 where a run stood still: which rank waits where, and which one it waits for. Stacks as faulthandler writes them."""

import re
from typing import Any

import msgspec
import pytest
from dsdoctor_checks import run as family

from dsdoctor import healthy as h
from dsdoctor.facts import SmokeRank, SmokeRun, SmokeStep
from dsdoctor.model import Finding, Status
from dsdoctor.testing import verdict

SITE = "/env/lib/python3.11/site-packages"
IN_BARRIER = f"""Thread 0x00007f2bb5833b80 (most recent call first):
  File "{SITE}/torch/distributed/distributed_c10d.py", line 5356 in barrier
  File "{SITE}/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/w/dsdoctor_smoke/zero.py", line 96 in step
"""
IN_REDUCE = f"""Thread 0x00007f2bb5833b80 (most recent call first):
  File "{SITE}/torch/distributed/distributed_c10d.py", line 3002 in all_reduce
  File "{SITE}/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "{SITE}/deepspeed/comm/torch.py", line 258 in all_reduce
  File "{SITE}/deepspeed/comm/comm.py", line 524 in all_reduce
  File "{SITE}/deepspeed/comm/comm.py", line 116 in log_wrapper
  File "/w/dsdoctor_smoke/zero.py", line 96 in step
"""
ASLEEP = """Thread 0x00007f0c1d0b7b80 (most recent call first):
  File "/w/dsdoctor_smoke/zero.py", line 91 in step
  File "/w/dsdoctor_smoke/tiny.py", line 140 in take_steps
"""
CHANNELS = "rank 0: host:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"


def rank(number: int, **changes: Any) -> SmokeRank:
    plain: dict[str, Any] = {
        "ending": "hung",
        "exit_code": None,
        "loss": None,
        "last_phase": "first step",
        "silent_s": 61.0,
    }
    return h.smoke_rank(number, **{**plain, **changes})


def hung(*ranks: SmokeRank, **changes: Any) -> SmokeRun:
    plain: dict[str, Any] = {"outcome": "hung", "world_size": len(ranks), "losses": (), "fell_first": None, "ranks": ranks,
                             "seconds": 70.0, "limit_s": 60.0}  # fmt: skip
    return h.smoke_run(**{**plain, **changes})


def told(run: SmokeRun) -> Finding:
    found = verdict(family.runs_end, h.healthy(h.smoke(run)))
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    assert finding.remedy is not None
    return finding


def test_silence_and_the_end_of_time_are_told_apart() -> None:
    silent = told(hung(rank(0)))
    assert silent.cause == "smoke-hangs"
    assert "it said nothing for 61 s in: first step" in silent.message
    late = told(hung(rank(0, ending="timed-out", silent_s=None), outcome="timed-out", limit_s=600.0))
    assert "did not end after 600 s; it stopped in: first step" in late.message


def test_a_run_that_was_at_work_when_its_time_was_over_did_not_hang() -> None:
    ranks = [rank(n, ending="timed-out", silent_s=0.1, last_phase="steps", stack=IN_REDUCE) for n in (0, 1)]
    finding = told(hung(*ranks, outcome="timed-out", limit_s=200.0, losses=(1.0, 0.9, 0.8)))
    assert finding.cause == "smoke-out-of-time"
    assert "within 200 s" in finding.message
    assert "still at work in: steps (3 steps taken)" in finding.message
    building = rank(0, ending="timed-out", silent_s=170.0, last_phase="compile cpu_adam")
    assert told(hung(building, outcome="timed-out")).cause == "smoke-out-of-time"
    silent = told(hung(ranks[0], rank(1, ending="timed-out", silent_s=45.0), outcome="timed-out"))
    assert silent.cause == "smoke-hangs"
    assert "rank 1 stopped in: first step" in silent.message


def test_the_rank_that_was_silent_for_longest_is_named() -> None:
    finding = told(hung(rank(0, silent_s=61.0), rank(1, silent_s=75.0, last_phase="initialize")))
    assert "rank 1 said nothing for 75 s in: initialize" in finding.message


def test_a_rank_that_skips_a_collective_is_named_by_those_that_wait_for_it() -> None:
    finding = told(hung(rank(0, stack=IN_REDUCE), rank(1, stack=ASLEEP)))
    assert finding.cause == "nccl-watchdog-timeout"
    assert "the others wait in all_reduce for rank 1" in finding.message
    assert "step (/w/dsdoctor_smoke/zero.py:91)" in finding.message
    assert [e.where for e in finding.evidence][:2] == ["rank 0, hung, in first step", "rank 1, hung, in first step"]


def test_a_rank_that_waits_for_its_gpu_waits_for_the_collective_queued_there() -> None:
    stack = f"""Current thread 0x00007f2bb5833b80 (most recent call first):
  File "{SITE}/torch/cuda/__init__.py", line 1040 in synchronize
  File "{SITE}/deepspeed/accelerator/cuda_accelerator.py", line 79 in synchronize
  File "{SITE}/deepspeed/runtime/zero/stage3.py", line 1290 in step
"""
    finding = told(hung(rank(0, stack=stack), rank(1, stack=ASLEEP)))
    assert finding.cause == "nccl-watchdog-timeout"
    assert "wait in synchronize for rank 1" in finding.message


def test_a_rank_that_has_ended_is_the_one_that_is_waited_for() -> None:
    gone = rank(1, ending="ok", exit_code=0, last_phase="steps")
    finding = told(hung(rank(0, stack=IN_BARRIER), gone, rank(2, stack=IN_BARRIER)))
    assert finding.cause == "nccl-watchdog-timeout"
    assert "wait in barrier for rank 1, which had ended with success in steps" in finding.message


def test_a_rank_that_gives_no_stack_where_others_do_is_stopped_or_stuck() -> None:
    """As it was seen of a rank that had got SIGSTOP."""
    finding = told(hung(rank(0, stack=IN_REDUCE), rank(1)))
    assert finding.cause == "smoke-hangs"
    assert "rank 1 gave no stack when asked" in finding.message
    assert finding.remedy is not None
    assert "ps -eo" in finding.remedy.commands[0]


def test_where_no_stack_could_be_had_nobody_is_blamed() -> None:
    finding = told(hung(rank(0), rank(1)))
    assert finding.cause == "smoke-hangs"
    assert "no stack when asked" not in finding.message


def test_when_most_stand_elsewhere_nobody_is_blamed() -> None:
    finding = told(hung(rank(0, stack=ASLEEP), rank(1, stack=ASLEEP), rank(2, stack=IN_REDUCE)))
    assert finding.cause == "smoke-hangs"


def test_all_in_one_collective_over_peer_access_suspects_the_peer_access() -> None:
    both = (rank(0, stack=IN_REDUCE), rank(1, stack=IN_REDUCE))
    finding = told(hung(*both, aftermath=h.aftermath(nccl_words=CHANNELS)))
    assert finding.cause == "p2p-broken-consumer-gpu"
    assert finding.remedy is not None
    assert finding.remedy.commands == ("export NCCL_P2P_DISABLE=1", "dsdoctor smoke zero2 --ranks 2")
    assert any("via P2P" in evidence.text for evidence in finding.evidence)
    without = told(hung(*both, accelerator="cpu"))
    assert without.cause == "smoke-hangs"
    assert "all ranks wait in all_reduce" in without.message


def test_words_of_nccl_that_a_table_knows_come_first() -> None:
    words = "rank 1: host:7:9 [1] misc/socket.cc:1 NCCL WARN Bootstrap : no socket interface found"
    finding = told(hung(rank(0), rank(1), aftermath=h.aftermath(nccl_words=words)))
    assert finding.cause == "nccl-wrong-interface"
    assert "no socket interface found" in finding.message


def test_ranks_that_never_came_to_the_rendezvous_are_named() -> None:
    here = rank(0, last_phase="rendezvous")
    finding = told(hung(here, rank(1, last_phase="import deepspeed", ending="torn-down")))
    assert finding.cause == "smoke-hangs"
    assert "1 of 2 ranks came to the rendezvous" in finding.message
    assert "rank 1, which stands in import deepspeed" in finding.message
    died = rank(1, last_phase=None, ending="exited", exit_code=1)
    assert "rank 1, which had ended with exit code 1 in its start" in told(hung(here, died)).message


@pytest.mark.parametrize("phase", ["compile deepspeed_shm_comm", "load cpu_adam"])
def test_a_run_that_hangs_in_a_build_is_told_from_one_that_waits(phase: str) -> None:
    finding = told(hung(rank(0, last_phase=phase)))
    assert finding.cause == "jit-lock-hang"
    assert phase in finding.message
    assert finding.remedy is not None
    assert "lock" in finding.remedy.order


def test_a_rank_that_waits_for_one_that_builds_is_not_the_culprit() -> None:
    finding = told(hung(rank(0, stack=IN_BARRIER), rank(1, last_phase="compile cpu_adam")))
    assert finding.cause == "jit-lock-hang"
    assert "rank 1" in finding.message
    assert "compile cpu_adam" in finding.message


def test_the_lines_of_a_build_count_only_before_the_first_step() -> None:
    lines = "Using /c/torch_extensions as PyTorch extensions root..."
    assert told(hung(rank(0, last_phase="initialize"), output_tail=lines)).cause == "jit-lock-hang"
    trained = hung(rank(0, last_phase="steps"), output_tail=lines)
    stepped = msgspec.structs.replace(trained, steps=(SmokeStep(number=1, loss=1.0, ms=9.0),))
    assert told(stepped).cause == "smoke-hangs"


@pytest.mark.parametrize("phase", ["import torch", "import deepspeed"])
def test_an_import_that_stands_still_is_one_of_the_import(phase: str) -> None:
    assert told(hung(rank(0, last_phase=phase))).cause == "import-hangs"


def test_a_run_out_of_time_whose_rank_had_failed_tells_the_failure() -> None:
    failed = rank(0, ending="failed", error_type="AssertionError", error="More elements 9 than buffer size 4")
    assert told(hung(failed, rank(1), outcome="timed-out")).cause == "config-value-range"


def test_only_options_of_the_smoke_command_are_prescribed() -> None:
    """As issue 4 lists them."""
    known = {"--ranks", "--cpu", "--steps", "--dtype", "--nvme", "--config", "--launcher", "--timeout"}
    run = hung(rank(0), accelerator="cpu", config="/my project/ds.json")
    verify = told(run).remedy
    assert verify is not None
    assert verify.verify == "dsdoctor smoke zero2 --cpu --config '/my project/ds.json'"
    assert set(re.findall(r"--[\w-]+", verify.verify)) <= known
