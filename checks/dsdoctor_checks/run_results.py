"""What is right and wrong with the numbers of a run that came to its end. Pure functions for checks and capabilities."""

import math
from collections.abc import Sequence
from itertools import combinations

from dsdoctor.api import SmokeRun

_EPSILON = 1e-12
_RANKS = {"fp32": 1e-5}  # relative difference of one batch's loss over ranks that hold the same weights
_RANKS_HALF = 1e-2
_STAGES = {"fp32": 1e-3}  # the stages add up in another order
_STAGES_HALF = 3e-2
OWN_RATE_ALLOWS = 1.02


def ended(runs: Sequence[SmokeRun]) -> tuple[SmokeRun, ...]:
    """Runs whose numbers are there to be judged."""
    return tuple(run for run in runs if run.outcome == "ok")


def good(run: SmokeRun) -> bool:
    """It came to its end with right numbers, so it proves what it did."""
    proved = len(run.losses) > 1 or (not run.steps and run.collectives)
    wrong = loss_problem(run) or ranks_differ(run) or partition_problem(run) or wrong_collectives(run)
    return run.outcome == "ok" and bool(proved) and not wrong and all(proof.ok for proof in run.proofs)


def loss_problem(run: SmokeRun) -> str | None:
    """What is wrong with the losses, or None: they must be finite and, on the one fixed batch, fall."""
    if not run.steps:
        return None if run.collectives else "ended without a loss"
    bad = next((step for step in run.steps if step.loss is None), None)
    if bad is not None:
        return f"gave a loss that is no finite number in step {bad.number}"
    first, last = run.losses[0], run.losses[-1]
    if run.config is not None and last <= first * OWN_RATE_ALLOWS:
        return None  # a user's own warmup may begin with a rate of nothing
    if len(run.losses) > 1 and last >= first:
        return (
            f"did not learn: the loss went from {first:.4g} to {last:.4g} in {len(run.losses)} steps on a fixed batch"
        )
    return None


def overflowed(run: SmokeRun) -> str | None:
    """fp16 skips a step that overflows and halves its scale: when it skipped all, nothing was learned and nothing is broken."""
    scales = [step.loss_scale for step in run.steps if step.loss_scale is not None]
    still = len(run.losses) == len(run.steps) and len(set(run.losses)) == 1
    if len(scales) < 2 or scales[-1] >= scales[0] or not still:
        return None
    return f"skipped all {len(run.steps)} steps: fp16 gradients overflowed, and the loss scale fell from {scales[0]:g} to {scales[-1]:g}"


def ranks_differ(run: SmokeRun) -> str | None:
    """The losses of one common batch after the last step, when they are not the same on all ranks."""
    known = [(rank.loss, rank.rank) for rank in run.ranks if rank.loss is not None]
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda pair: (not math.isfinite(pair[0]), pair))
    (low, first), (high, second) = ordered[0], ordered[-1]
    if math.isfinite(high) and difference(low, high) <= _RANKS.get(run.dtype or "", _RANKS_HALF):
        return None
    return f"rank {first} has a loss of {low:.6g} on a common batch, and rank {second} {high:.6g}"


def stages_differ(first: SmokeRun, second: SmokeRun) -> str | None:
    """The first step in which two ZeRO stages part."""
    allowed = _STAGES.get(first.dtype or "", _STAGES_HALF)
    for number, (one, other) in enumerate(zip(first.steps, second.steps, strict=True), 1):
        if one.loss is not None and other.loss is not None and difference(one.loss, other.loss) > allowed:
            return f"{first.recipe} has a loss of {one.loss:.5g} in step {number}, and {second.recipe} {other.loss:.5g}"
    return None


def comparable(runs: Sequence[SmokeRun]) -> list[tuple[SmokeRun, SmokeRun]]:
    """Pairs of ZeRO stages that trained the same: model, batch, dtype, ranks, device, steps."""
    plain = [r for r in ended(runs) if r.recipe in ("zero1", "zero2", "zero3") and r.config is None and r.steps]
    return [(a, b) for a, b in combinations(plain, 2) if _terms(a) == _terms(b) and a.recipe != b.recipe]


def _terms(run: SmokeRun) -> tuple[object, ...]:
    return run.dtype, run.world_size, run.accelerator, len(run.steps)


def partition_problem(run: SmokeRun) -> str | None:
    """Over several ranks a ZeRO stage leaves each a part of the states, and ZeRO-3 of the parameters, too."""
    if run.world_size < 2 or not run.stage or run.parallel:
        return None
    kinds = [("optimizer states", [rank.held_state_elements for rank in run.ranks])]
    if run.stage == 3 and run.config is None:  # a user's threshold may keep a tiny model whole
        kinds.append(("parameters", [rank.held_parameter_elements for rank in run.ranks]))
    whole = max((rank.parameter_elements or 0 for rank in run.ranks), default=0)
    return next((problem for name, held in kinds if (problem := _parts(run, name, held, whole))), None)


def _parts(run: SmokeRun, name: str, held: Sequence[int | None], whole: int) -> str | None:
    known = [count for count in held if count is not None]
    if not whole or len(known) < run.world_size:
        return None
    if max(known) >= whole:
        return (
            f"does not partition its {name}: rank {held.index(max(known))} holds {max(known):,} of {whole:,} elements"
        )
    total, padding = sum(known), whole // 10 + 1024 * run.world_size
    if run.config is None and not whole <= total <= whole + padding:  # a user's config may keep groups of its own
        return f"holds {total:,} elements of its {name} on all ranks together, and the model has {whole:,}"
    return None


def wrong_collectives(run: SmokeRun) -> tuple[str, ...]:
    return tuple(collective.name for collective in run.collectives if not collective.correct)


def difference(one: float, other: float) -> float:
    """Relative to the larger."""
    return abs(one - other) / max(abs(one), abs(other), _EPSILON)
