"""Where nothing fits: which single change would make it fit, else which changes together. Each is tried, none is guessed."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from dsdoctor.fit.fits import Fit, Word, fit
from dsdoctor.fit.memory import Need, need
from dsdoctor.fit.report import Way
from dsdoctor.fit.room import Room
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.strategies import STRATEGIES, Strategy, traffic
from dsdoctor.fit.training import Training, trained

LEAST_SEQUENCE: Final = 512
RANK: Final = 16
MOST_NODES: Final = 16
NODE: Final = 8  # GPUs of a usual one
SHOWN: Final = 4

Change = tuple[str, tuple[str, ...], Training]


def ways(shape: ModelShape, training: Training, room: Room) -> tuple[Way, ...]:
    """Where nothing fits. Single changes that do; without any, the least that does together."""
    found = _working(shape, _single(training), room)
    if not found:
        together = _together(training)
        more = (_joined(together, change) for change in (*_adapters(together[2]), *_spread(together[2])))
        found = _working(shape, [together], room) if together[1] else []
        found = found or _working(shape, more, room)
    return tuple(found[:SHOWN])


def easier(shape: ModelShape, training: Training, room: Room) -> tuple[Way, ...]:
    """Where it is tight: changes of a kind that leaves the results as they are, with which it is not."""
    changes = (*_recomputed(training), *_smaller(training), *_spread(training))
    return tuple(_working(shape, changes, room, wanted=("fits",))[:SHOWN])


def _working(
    shape: ModelShape, changes: Iterable[Change], room: Room, wanted: tuple[Word, ...] = ("fits", "tight")
) -> list[Way]:
    """Of the changes that add GPUs the first that does: with still more it fits as well."""
    found: list[Way] = []
    enough = False
    for words, options, training in changes:
        adds = any(option.startswith("--gpus") for option in options)
        choice = None if adds and enough else cheapest(shape, training, room)
        if choice is not None and choice.word in wanted:
            enough = enough or adds
            spare = choice.answers[0].spare
            found.append(Way(change=words, options=options, strategy=choice.plan.name, word=choice.word, spare=spare))
    return found


def cheapest(shape: ModelShape, training: Training, room: Room) -> Fit | None:
    """What ``best(fits(...))`` finds, with a close look at those only that may win."""

    def cost(plan: Strategy) -> tuple[float, int]:
        return traffic(plan, shape.parameters, trained(shape, training), training).cost, plan.stage

    tight = None
    for plan in sorted(STRATEGIES, key=cost):
        if _has_room(need(shape, training, plan), room):
            found = fit(shape, training, plan, room)
            if found.word == "fits":
                return found
            tight = tight or found
    return tight


def _has_room(needed: Need, room: Room) -> bool:
    pairs = ((needed.gpu, room.gpu), (needed.host, room.host), (needed.nvme, room.nvme))
    return all(not account.bytes or (free is not None and account.bytes <= free) for account, free in pairs)


def _single(training: Training) -> Iterator[Change]:
    yield from _recomputed(training)
    yield from _born_in_parts(training)
    yield from _narrower(training)
    yield from _smaller(training)
    yield from _shorter(training)
    yield from _adapters(training)
    yield from _spread(training)


def _recomputed(training: Training) -> Iterator[Change]:
    if not training.checkpointing:
        yield (
            "compute activations again in backward",
            ("--activation-checkpointing",),
            _with(training, checkpointing=True),
        )


def _born_in_parts(training: Training) -> Iterator[Change]:
    if not training.zero_init:
        yield "make the model inside deepspeed.zero.Init", ("--zero-init",), _with(training, zero_init=True)


def _narrower(training: Training) -> Iterator[Change]:
    if training.dtype == "fp32":
        yield "train in bf16", ("--dtype bf16",), _with(training, dtype="bf16")


def _smaller(training: Training) -> Iterator[Change]:
    if training.micro_batch > 1:
        steps = training.accumulation * training.micro_batch
        options = ("--micro-batch 1", f"--accumulation {steps}")
        words = f"a micro batch of 1, accumulated {steps} times: the same global batch"
        yield words, options, _with(training, micro_batch=1, accumulation=steps)


def _shorter(training: Training) -> Iterator[Change]:
    length = training.sequence // 2
    if length >= LEAST_SEQUENCE:
        yield f"sequences of {length} tokens", (f"--seq {length}",), _with(training, sequence=length)


def _adapters(training: Training) -> Iterator[Change]:
    if not training.lora_rank:
        yield f"train LoRA adapters of rank {RANK} only", (f"--lora-rank {RANK}",), _with(training, lora_rank=RANK)


def _spread(training: Training) -> Iterator[Change]:
    """More GPUs of the same kind: first in this node, then in more nodes."""
    count = training.gpus_per_node
    while count < NODE:
        count = min(NODE, 2 * count)
        yield f"{count} such GPUs in each node", (f"--gpus {count}",), _with(training, gpus_per_node=count)
    nodes = training.nodes
    while nodes < MOST_NODES:
        nodes = min(MOST_NODES, 2 * nodes)
        words = f"{nodes} such nodes with {count} GPUs each"
        yield words, (f"--gpus {count}", f"--nodes {nodes}"), _with(training, gpus_per_node=count, nodes=nodes)


def _together(training: Training) -> Change:
    """All that costs time only, not results."""
    change: Change = ("", (), training)
    for kind in (_recomputed, _born_in_parts, _narrower, _smaller):
        for more in kind(change[2]):
            change = _joined(change, more)
    return change


def _joined(first: Change, second: Change) -> Change:
    return ", and ".join(word for word in (first[0], second[0]) if word), (*first[1], *second[1]), second[2]


def _with(training: Training, **changed: object) -> Training:
    return msgspec.structs.replace(training, **changed)


def nearest(found: tuple[Fit, ...]) -> Fit | None:
    """Of those that do not fit the one that lacks least, in proportion."""

    def lack(fit: Fit) -> float:
        return max((a.need / max(1, a.room) for a in fit.answers if a.room is not None), default=0.0)

    return min((fit for fit in found if fit.word == "no"), key=lack, default=None)
