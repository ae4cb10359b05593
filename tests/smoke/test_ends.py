"""Which rank fell first and how each ended: the order of events decides, and what follows from a fall is no root."""

from typing import Any

import pytest

from dsdoctor.facts import SmokeRun
from dsdoctor.probes.runner import Ran
from dsdoctor.smoke.ends import Ends, Verdict, told
from dsdoctor.smoke.order import Job
from dsdoctor.smoke.recipes import BY_NAME
from dsdoctor.smoke.story import Story

BEGAN, ENDED = 100.0, 130.0


class Run:
    """Two ranks in their steps."""

    def __init__(self, ranks: int = 2, launcher: str = "none") -> None:
        self.story, self.ends, self.ran = Story(ranks, BEGAN), Ends(), {}  # type: Story, Ends, dict[int | None, Ran]
        self.job = Job(recipe=BY_NAME["zero2"], ranks=ranks, use_gpu=False, launcher=launcher)  # type: ignore[arg-type]
        for rank in range(ranks):
            self.say(rank, "hello", 100.5, pid=4000 + rank)
            self.say(rank, "begin", 101.0, name="steps")

    def say(self, rank: int, what: str, t: float, **values: Any) -> None:
        self.story.hear(rank, {"t": t, "what": what, **values})

    def die(self, rank: int, at: float, code: int, text: str = "") -> None:
        self.ends.died(rank, at, well=code == 0 and self.story.ranks[rank].done)
        ending: Any = "signalled" if code < 0 else "exited"
        self.ran[rank] = Ran(ending=ending, code=code, stderr=text)

    def kill(self, rank: int) -> None:
        """Ended by us."""
        self.ran[rank] = Ran(ending="signalled", code=-9, signal="SIGKILL")

    def told(self, verdict: Verdict = "ended", **rest: Any) -> SmokeRun:
        return told(self.job, self.story, self.ends, verdict, self.ran, {}, ended=ENDED, **rest)


def endings(run: SmokeRun) -> list[str]:
    return [rank.ending for rank in run.ranks]


def test_all_well() -> None:
    run = Run()
    for rank in (0, 1):
        run.say(rank, "done", 120.0)
        run.die(rank, 121.0, 0)
    found = run.told()
    assert (found.outcome, endings(found), found.fell_first, found.output_tail) == ("ok", ["ok", "ok"], None, None)


def test_a_rank_killed_by_a_signal_is_the_root_and_the_error_of_its_peer_is_not() -> None:
    run = Run()
    run.say(0, "error", 110.01, type="RuntimeError", text="Connection closed by peer [127.0.0.1]:4711")
    run.die(1, 110.05, -9, "rank 1's words")
    run.die(0, 110.4, 1)
    found = run.told()
    assert (found.outcome, found.fell_first, endings(found)) == ("signal", 1, ["failed", "signal"])
    assert (found.ranks[1].signal, found.ranks[1].exit_code, found.ranks[1].last_phase) == ("SIGKILL", -9, "steps")
    assert found.output_tail == "rank 1's words"


def test_a_rank_that_aborts_long_after_anothers_error_is_no_root() -> None:
    run = Run()
    run.say(1, "error", 110.0, type="ValueError", text="the root")
    run.die(1, 110.1, 1)
    run.die(0, 120.0, -6)
    assert (run.told().fell_first, run.told().outcome) == (1, "failed")


def test_ranks_that_were_ended_because_of_another_are_torn_down() -> None:
    run = Run()
    run.say(1, "error", 110.0, type="ValueError", text="the root")
    run.die(1, 110.1, 1)
    run.kill(0)
    found = run.told("fallen")
    assert (found.fell_first, endings(found)) == (1, ["torn-down", "failed"])
    assert (found.ranks[0].signal, found.ranks[0].exit_code) == (None, None)
    assert found.ranks[0].silent_s == 29.0


@pytest.mark.parametrize(("verdict", "limit"), [("hung", 60.0), ("timed-out", 600.0)])
def test_ranks_that_hang(verdict: Verdict, limit: float) -> None:
    run = Run()
    for rank in (0, 1):
        run.kill(rank)
    found = run.told(verdict, patience_s=limit)
    assert (found.outcome, endings(found), found.fell_first, found.limit_s) == (verdict, [verdict] * 2, None, limit)
    assert found.phases[0].seconds is None


def test_one_rank_had_ended_well_while_the_other_hangs() -> None:
    run = Run()
    run.say(1, "done", 105.0)
    run.die(1, 105.5, 0)
    run.kill(0)
    assert endings(run.told("hung")) == ["hung", "ok"]


def test_exit_without_a_word() -> None:
    run = Run()
    run.die(0, 110.0, 0)
    run.kill(1)
    found = run.told("fallen")
    assert (found.outcome, found.fell_first, endings(found)) == ("exited", 0, ["exited", "torn-down"])


def test_crash_after_the_last_word_is_not_ok() -> None:
    run = Run(1)
    run.say(0, "done", 110.0)
    run.die(0, 111.0, -11)
    assert (run.told().outcome, run.told().ranks[0].signal) == ("signal", "SIGSEGV")


def test_codes_are_taken_from_torchruns_summary() -> None:
    """Form of torch 2.13's ChildFailedError; the other rank was ended by torchrun with SIGTERM."""
    run = Run(launcher="torchrun")
    summary = "Root Cause (first observed failure):\n  rank      : 1 (local_rank: 1)\n  exitcode  : -11 (pid: 4001)\n"
    run.ends.died(1, 110.0, well=False)
    run.ends.died(0, 110.2, well=False)
    run.ran[None] = Ran(ending="exited", code=1, stderr=summary)
    found = run.told()
    assert (found.outcome, found.fell_first, endings(found)) == ("signal", 1, ["torn-down", "signal"])
    assert found.ranks[1].signal == "SIGSEGV"


def test_the_deepspeed_launcher_gives_the_code_of_the_rank_that_vanished_first() -> None:
    run = Run(launcher="deepspeed")
    run.ends.died(1, 110.0, well=False)
    run.ends.died(0, 111.0, well=False)
    words = "[INFO] [launch.py:253:sigkill_handler] Killing subprocess 4000\n[ERROR] [launch.py:260:sigkill_handler] ['/venv/bin/python', ...] exits with return code = -9\n"
    run.ran[None] = Ran(ending="exited", code=247, stdout=words)
    found = run.told()
    assert (found.outcome, found.fell_first, found.ranks[1].signal) == ("signal", 1, "SIGKILL")
    assert found.output_tail is not None
    assert "exits with return code = -9" in found.output_tail


def test_a_launcher_that_started_no_rank() -> None:
    run = Run(launcher="torchrun")
    run.story = Story(2, BEGAN)
    run.ran[None] = Ran(ending="exited", code=1, stderr="No module named torch.distributed.run")
    found = run.told()
    assert (found.outcome, endings(found)) == ("exited", ["not-started", "not-started"])
    assert found.output_tail == "No module named torch.distributed.run"


def test_recipe_that_says_it_cannot_run_here() -> None:
    run = Run(1)
    run.say(0, "not-applicable", 105.0, because="this accelerate refuses DeepSpeed on a CPU")
    run.say(0, "done", 105.1)
    run.die(0, 105.5, 0)
    found = run.told()
    assert (found.outcome, found.because) == ("not-applicable", "this accelerate refuses DeepSpeed on a CPU")
