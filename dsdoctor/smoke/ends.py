"""How each rank ended, which fell first, and the run's facts from all that was heard. Pure."""

import signal
from collections.abc import Mapping
from typing import Literal

from dsdoctor.facts import SmokePhase, SmokeRank, SmokeRun
from dsdoctor.facts.smoke import RankEnding, SmokeOutcome
from dsdoctor.probes.processes import signal_name
from dsdoctor.probes.runner import Ran
from dsdoctor.smoke.launch import codes
from dsdoctor.smoke.order import Job
from dsdoctor.smoke.story import Story

Verdict = Literal["ended", "fallen", "hung", "timed-out"]  # why the watching ended
TAIL_CHARACTERS = 6000
TOGETHER_S = 2.0  # what others raise within so long of a rank's death by signal is an echo of it
_ENDED = -signal.SIGTERM  # how a launcher ends the others
_FELL = ("signal", "failed", "exited")


class Ends:
    """Deaths as they are noticed. Times are time.monotonic."""

    def __init__(self) -> None:
        self.died_at: dict[int, float] = {}
        self.fell_at: float | None = None  # when the first rank was seen to have failed

    def died(self, rank: int, at: float, *, well: bool) -> None:
        if rank not in self.died_at:
            self.died_at[rank] = at
            if not well:
                self.fell(at)

    def fell(self, at: float) -> None:
        if self.fell_at is None:
            self.fell_at = at


def told(
    job: Job,
    story: Story,
    ends: Ends,
    verdict: Verdict,
    ran: Mapping[int | None, Ran],
    stacks: Mapping[int, str],
    *,
    ended: float,
    patience_s: float | None = None,
) -> SmokeRun:
    """The facts of a run whose processes have all ended. ``ran`` is by rank, or None -> the launcher."""
    ranks = _ranks(story, ends, verdict, ran, stacks, ended)
    first = _first(ranks, story, ends)
    outcome = _outcome(story, ranks, verdict, ran, first)
    return SmokeRun(
        recipe=job.recipe.name,
        outcome=outcome,
        because=story.not_applicable,
        launcher=job.launcher,
        config=job.config_path if job.config is not None else None,
        **{"world_size": job.ranks, "accelerator": "cuda" if job.use_gpu else "cpu", **story.setup},
        phases=_phases(story, first),
        steps=tuple(story.steps),
        ranks=tuple(ranks),
        fell_first=first,
        proofs=tuple(story.proofs.values()),
        collectives=tuple(story.collectives.values()),
        swap=story.swap,
        output_tail=None if outcome in ("ok", "not-applicable") else output(ran, first),
        seconds=round(ended - story.began, 2),
        limit_s=patience_s if outcome in ("hung", "timed-out") else None,
    )


def output(ran: Mapping[int | None, Ran], first: int | None) -> str | None:
    """The last of what the rank that fell first printed; without one, of every rank."""
    chosen = {rank: one for rank, one in ran.items() if rank in (first, None)} or dict(ran)
    each = TAIL_CHARACTERS // max(1, len(chosen))
    texts = [(rank, f"{one.stdout}\n{one.stderr}".strip()[-each:]) for rank, one in chosen.items()]
    if len(texts) == 1:
        return texts[0][1] or None
    return "\n".join(f"[rank {rank}]\n{text}" for rank, text in texts if text) or None


def _ranks(
    story: Story, ends: Ends, verdict: Verdict, ran: Mapping[int | None, Ran], stacks: Mapping[int, str], ended: float
) -> list[SmokeRank]:
    pids = {rank: one.pid for rank, one in story.ranks.items() if one.pid is not None}
    by_launcher: dict[int, int] = {}
    if None in ran:
        launcher = ran[None]
        first = min((r for r in ends.died_at if not story.ranks[r].done), key=lambda r: ends.died_at[r], default=None)
        by_launcher = codes(launcher.stdout + launcher.stderr, pids, first)
    found = []
    for rank, one in story.ranks.items():
        own = ran.get(rank)
        code = own.code if own is not None and rank in ends.died_at else by_launcher.get(rank)
        ending = _ending(story, rank, rank in ends.died_at, code, verdict, launched=own is not None)
        alive = ending in ("hung", "timed-out", "torn-down")
        found.append(
            SmokeRank(
                rank=rank,
                ending=ending,
                exit_code=code,
                signal=signal_name(-code) if code is not None and code < 0 else None,
                last_phase=one.phase,
                silent_s=round(max(0.0, ended - one.spoke_at), 1) if alive and one.spoke_at is not None else None,
                stack=stacks.get(rank),
                **story.rank_facts(rank),
            )
        )
    return found


def _ending(story: Story, rank: int, died: bool, code: int | None, verdict: Verdict, *, launched: bool) -> RankEnding:
    one = story.ranks[rank]
    if code is not None and code < 0 and code != _ENDED:
        return "signal"
    if one.error is not None:
        return "failed"
    if one.done and (not died or code in (0, None)):
        return "ok"
    if one.pid is None and not launched:
        return "not-started"
    if died and launched:
        return "exited" if code != _ENDED else "torn-down"
    if verdict in ("hung", "timed-out"):
        return "hung" if verdict == "hung" else "timed-out"
    if code is not None and code != _ENDED:
        return "exited"
    return "torn-down"


def _first(ranks: list[SmokeRank], story: Story, ends: Ends) -> int | None:
    """The rank that fell first. A death by signal is seen a moment after the errors that it causes elsewhere."""
    fallen = [one for one in ranks if one.ending in _FELL]

    def when(one: SmokeRank) -> float:
        error = story.ranks[one.rank].error
        if one.ending == "failed" and error is not None:
            return error[2]
        return ends.died_at.get(one.rank, float("inf")) - (TOGETHER_S if one.ending == "signal" else 0.0)

    return min(fallen, key=when).rank if fallen else None


def _outcome(
    story: Story, ranks: list[SmokeRank], verdict: Verdict, ran: Mapping[int | None, Ran], first: int | None
) -> SmokeOutcome:
    if first is not None:
        outcomes: dict[RankEnding, SmokeOutcome] = {"signal": "signal", "failed": "failed", "exited": "exited"}
        return outcomes[next(one.ending for one in ranks if one.rank == first)]
    if verdict in ("hung", "timed-out"):
        return "hung" if verdict == "hung" else "timed-out"
    if story.not_applicable is not None:
        return "not-applicable"
    return "ok" if all(one.ending == "ok" for one in ranks) else "exited"


def _phases(story: Story, first: int | None) -> tuple[SmokePhase, ...]:
    shown = {0} if first is None else {0, first}
    return tuple(phase for rank in sorted(shown) for phase in story.ranks[rank].told_phases(rank))
