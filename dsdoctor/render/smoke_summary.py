"""A smoke run in a word, in a row and in a sentence: the same for text, pages and the TUI."""

from dsdoctor.facts import Smoke, SmokeRank, SmokeRun
from dsdoctor.render.plain import one_line
from dsdoctor.render.quantity import known, loss, milliseconds, seconds, size

COLUMNS = ("recipe", "outcome", "ranks", "dtype", "loss", "first step", "steady steps", "peak VRAM", "time")
CAUTION = (
    "A smoke run is no benchmark: the model is tiny and the steps are few, so times are given with their spread "
    "(median, least and most) and say nothing about your training."
)
_WORDS = {
    "signal": "killed",
    "timed-out": "timed out",
    "not-started": "not started",
    "not-applicable": "not applicable",
}


def word(run: SmokeRun) -> str:
    """How it went, in one word or two. "wrong": it came to its end, and something in it is not as it should be."""
    if run.outcome == "ok" and wrong(run):
        return "wrong"
    return outcome_word(run.outcome)


def outcome_word(outcome: str) -> str:
    return _WORDS.get(outcome, outcome)


def wrong(run: SmokeRun) -> bool:
    """A proof failed, a collective gave wrong sums, or a loss is no number."""
    odd = [not proof.ok for proof in run.proofs] + [not known(step.loss) for step in run.steps]
    return any(odd) or any(not collective.correct for collective in run.collectives)


def sound(run: SmokeRun) -> bool:
    return run.outcome == "ok" and not wrong(run)


def cells(run: SmokeRun) -> tuple[str, ...]:
    """What ``COLUMNS`` name, "" where nothing is known."""
    if run.outcome == "not-applicable":
        return (one_line(run.recipe), word(run), *("" for _ in COLUMNS[2:]))
    first, steady = steps(run)
    row = (
        run.recipe,
        word(run),
        ranks(run),
        run.dtype or "",
        losses(run),
        first,
        steady,
        peak(run),
        seconds(run.seconds),
    )
    return tuple(one_line(cell) for cell in row)


def ranks(run: SmokeRun) -> str:
    """ "2 x H200" """
    device = (run.device or run.accelerator or "").removeprefix("NVIDIA ")
    return f"{run.world_size} x {device}" if device else str(run.world_size)


def losses(run: SmokeRun) -> str:
    """ "1.09 -> 0.72" """
    found = run.losses
    if not found:
        return ""
    return f"{loss(found[0])} -> {loss(found[-1])}" if len(found) > 1 else loss(found[0])


def steps(run: SmokeRun) -> tuple[str, str]:
    """What the first step took, and the spread of the others."""
    first = seconds(run.steps[0].ms / 1000) if run.steps and known(run.steps[0].ms) else ""
    return first, milliseconds([step.ms for step in run.steps[1:]])


def largest(run: SmokeRun) -> SmokeRank | None:
    """The rank whose allocator held most; None when no rank said."""
    told = [rank for rank in run.ranks if known(rank.peak_bytes)]
    return max(told, key=lambda rank: rank.peak_bytes or 0, default=None)


def peak(run: SmokeRun) -> str:
    """ "41 MiB in first step" """
    rank = largest(run)
    if rank is None:
        return ""
    return f"{size(rank.peak_bytes)} in {rank.peak_phase}" if rank.peak_phase else size(rank.peak_bytes)


def sentence(smoke: Smoke) -> str:
    """ "zero2 ok (1.09 -> 0.72), zero3-nvme hung" """
    return ", ".join(map(short, smoke.runs)) or "no recipe was run"


def short(run: SmokeRun) -> str:
    told = losses(run)
    return one_line(f"{run.recipe} {word(run)}" + (f" ({told})" if told else ""))
