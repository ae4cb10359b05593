"""The three batch sizes and the number of ranks: one equation, and numbers that would solve it. Of the family CFG (see config.py).

Source of the rules: deepspeed 0.19.8, runtime/config.py (_set_batch_related_parameters, _batch_assertion), read and run 2026-11-30.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from dsdoctor.api import DsConfig, Evidence, Finding, Gpus, Remedy, RunPlan, Severity, check, not_applicable, unknown
from dsdoctor_checks.config_keys import Clash, on, parsed, told, whole

_BATCH, _MICRO, _STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
_NAMES = _BATCH, _MICRO, _STEPS
_SHARE = "tensor_parallel.autotp_size", "pipeline.stages"
_SEQUENCE = "sequence_parallel_size"
_EXPERTS = "expert_parallel"


class Sizes(NamedTuple):
    """Global batch, micro batch and accumulation steps; None where the config is silent."""

    batch: int | None
    micro: int | None
    steps: int | None


def solve(given: Sizes, ranks: int) -> Sizes:
    """What DeepSpeed makes of the sizes on ``ranks`` data-parallel ranks; None stays where it cannot know."""
    batch, micro, steps = given
    if batch is None:
        steps = 1 if steps is None else steps
        return Sizes(micro and micro * steps * ranks, micro, steps)
    if micro is None:
        steps = 1 if steps is None else steps
        return Sizes(batch, batch // ranks // steps if steps else 0, steps)
    return Sizes(batch, micro, (batch // micro // ranks if micro else 0) if steps is None else steps)


def holds(given: Sizes, ranks: int) -> bool:
    """True when the equation is true, with every size at least 1."""
    batch, micro, steps = solve(given, ranks)
    return bool(batch and micro and steps) and batch == (micro or 0) * (steps or 0) * ranks


def ways_out(given: Sizes, ranks: int) -> list[str]:
    """Settings that would satisfy the equation, the smallest change first."""
    batch, micro, steps = given
    ways = []
    if batch and batch % ranks == 0:
        share = batch // ranks
        if micro and share % micro == 0:
            ways.append(f"{_STEPS} {share // micro}")
        if steps and share % steps == 0:
            ways.append(f"{_MICRO} {share // steps}")
        if micro and share % micro:
            fits = max(n for n in range(1, min(micro, share) + 1) if share % n == 0)
            ways.append(f"{_MICRO} {fits} with {_STEPS} {share // fits}")
    unit = (micro or 1) * (steps or 1) * ranks
    if batch and micro and not steps:
        ways.append(f"{_BATCH} {max(1, round(batch / unit)) * unit}")
    elif batch:
        ways.append(f"{_BATCH} {unit if micro else max(1, round(batch / unit)) * unit}")
    return ways


def _share(config: DsConfig) -> int:
    """How many ranks hold one copy of the model together: tensor and pipeline parallel sizes."""
    product = 1
    for key in _SHARE:
        product *= min(max(whole(config.get(key)) or 1, 1), 10**6)
    return product


def _all_ranks(plan: RunPlan | None, gpus: Gpus | None) -> int:
    listed = gpus is not None and gpus.read_from != "torch"  # torch was asked for the name of one
    return plan.ranks if plan and plan.ranks else len(gpus.devices) if gpus and listed else 0


def _data_ranks(config: DsConfig, every: int) -> list[int]:
    """Numbers of data-parallel ranks that DeepSpeed may count: it knows of tensor and pipeline parallelism only from an mpu."""
    ranks, share = every // max(whole(config.get(_SEQUENCE)) or 1, 1), _share(config)
    return [n for n in dict.fromkeys((ranks // share if ranks % share == 0 else 0, ranks)) if n > 0]


def _any_ranks(given: Sizes) -> str | None:
    """Why no number of ranks can satisfy the equation."""
    batch, micro, steps = given
    if batch is None and micro is None:
        return f"neither {_BATCH} nor {_MICRO} is given"
    product = (micro or 1) * (steps or 1)
    if batch and product > 0 and batch % product:
        words = " x ".join(str(n) for n in (micro, steps) if n is not None)
        return f"{_BATCH} {batch} is no multiple of {words}, so no number of GPUs fits"
    return None


def _sides(given: Sizes, ranks: int) -> str:
    batch, micro, steps = solve(given, ranks)
    parts = [f"{micro}{'' if given.micro is not None else ' (computed)'}"]
    parts.append(f"{steps}{'' if given.steps is not None else ' (computed)'}")
    return f"{_BATCH} {batch} is not {_MICRO} {parts[0]} x {_STEPS} {parts[1]} x {ranks} ranks"


def _sizes(config: DsConfig) -> Sizes:
    given: list[Any] = [parsed(config).get(key) for key in _NAMES]
    if "auto" in given:
        not_applicable("a batch size is auto, filled in by Hugging Face")
    return Sizes(*(whole(value) for value in given))


@check("CFG010", "The batch sizes agree", causes=["batch-size-equation"], guards=["config"])
def batch_sizes_agree(config: DsConfig, plan: RunPlan | None, gpus: Gpus | None) -> Iterator[Finding]:
    """train_batch_size = micro batch x accumulation steps x data-parallel ranks, else "Check batch related parameters"."""
    given = _sizes(config)
    impossible, ranks = _any_ranks(given), _data_ranks(config, _all_ranks(plan, gpus))
    if impossible:
        order = _order(given, ranks[0] if ranks else 1)
        yield told(config, Clash(_NAMES, impossible, order, "batch-size-equation"))
        return
    if not ranks or any(holds(given, n) for n in ranks):
        return
    said = (
        f"({plan.named_by})" if plan and plan.ranks else f"(this machine has {len(gpus.devices) if gpus else 0} GPUs)"
    )
    sure = plan is not None and plan.ranks is not None and len(ranks) == 1
    yield told(
        config,
        Clash(
            _NAMES,
            f"{_sides(given, ranks[0])} {said}{_other_ranks(given)}",
            _order(given, ranks[0]),
            "batch-size-equation",
            Severity.ERROR if sure else Severity.WARNING,
        ),
    )


def _other_ranks(given: Sizes) -> str:
    if not (given.batch and given.micro and given.steps):
        return ""
    return f"; it would fit {given.batch // (given.micro * given.steps)} ranks"


def _order(given: Sizes, ranks: int) -> str:
    ways = ways_out(given, ranks)
    if not ways:
        return f"Give {_MICRO} and {_STEPS}, and leave {_BATCH} out: DeepSpeed computes it"
    return f"Set {', or '.join(ways)}; or leave {_BATCH} out: DeepSpeed computes it"


@check(
    "CFG044",
    "The ranks can be shared out among the kinds of parallelism",
    causes=["config-conflict"],
    guards=["config"],
)
def ranks_divide(config: DsConfig, plan: RunPlan | None, gpus: Gpus | None) -> Iterator[Finding]:
    """The number of ranks is a multiple of the tensor, pipeline and sequence parallel sizes, else no group can be formed."""
    ranks = _all_ranks(plan, gpus)
    if not any(key in parsed(config).values for key in ("tensor_parallel", "pipeline", _SEQUENCE, _EXPERTS)):
        not_applicable("the config asks for data parallelism only")
    if not ranks:
        unknown("the number of ranks is not known")
    said = plan.named_by if plan and plan.ranks else "the GPUs here"
    sure = Severity.ERROR if plan and plan.ranks else Severity.WARNING
    experts = [f"{_EXPERTS}.autoep_size"] if on(config.get(f"{_EXPERTS}.enabled")) else []
    for key in (*_SHARE, _SEQUENCE, *experts):
        size = whole(parsed(config).get(key))
        if size is not None and size > 0 and ranks % size:
            what = (
                f"{key} is {size}, which does not divide the {ranks} rank{'s' if ranks > 1 else ''} of the run ({said})"
            )
            fits = ", ".join(str(n) for n in range(1, min(ranks, 64) + 1) if ranks % n == 0)
            yield told(config, Clash((key,), what, f"Set {key} to one of {fits}", severity=sure))


@check(
    "CFG018",
    "The run has no more processes than this machine has GPUs",
    causes=["more-processes-than-gpus"],
    severity=Severity.WARNING,
)
def processes_have_gpus(plan: RunPlan | None, gpus: Gpus | None) -> Iterator[Finding]:
    """DeepSpeed's launcher starts as many ranks as it is told; the one without a GPU dies with "invalid device ordinal"."""
    if plan is None or plan.gpus_per_node is None:
        not_applicable("nobody said how many GPUs the run has")
    if gpus is None:
        unknown("the GPUs were not examined")
    here = len(gpus.devices)
    if here and plan.gpus_per_node > here:
        yield Finding(
            message=f"the run wants {plan.gpus_per_node} GPUs per node ({plan.named_by}); this machine has {here}",
            cause="more-processes-than-gpus",
            evidence=(Evidence(where="NVML", text=f"{here} GPUs"),),
            remedy=Remedy(order=f"Start at most {here} processes here", safety="manual"),
        )
