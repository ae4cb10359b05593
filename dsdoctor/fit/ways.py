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


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do otherwise. Of one kind the first that works is enough: what comes after it costs more."""

    kind: str
    words: str
    options: tuple[str, ...]
    training: Training


def ways(shape: ModelShape, training: Training, room: Room) -> tuple[Way, ...]:
    """Where nothing fits. Single changes that do; without any, the least that does together."""
    found = _working(shape, _single(training), room)
    if not found and (together := _together(training)):
        more = (_joined(together, change) for change in (*_adapters(together.training), *_spread(together.training)))
        found = _working(shape, [together], room) or _working(shape, more, room)
    return tuple(found[:SHOWN])


def easier(shape: ModelShape, training: Training, room: Room) -> tuple[Way, ...]:
    """Where it is tight: changes of a kind that leaves the results as they are, with which it is not."""
    changes = (*_recomputed(training), *_smaller(training), *_spread(training))
    return tuple(_working(shape, changes, room, wanted=("fits",))[:SHOWN])


def _working(
    shape: ModelShape, changes: Iterable[Change], room: Room, wanted: tuple[Word, ...] = ("fits", "tight")
) -> list[Way]:
    found: dict[str, Way] = {}
    for change in changes:
        if change.kind in found:
            continue
        choice = cheapest(shape, change.training, room)
        if choice is not None and choice.word in wanted:
            found[change.kind] = Way(
                change=change.words,
                options=change.options,
                strategy=choice.plan.name,
                word=choice.word,
                spare=choice.answers[0].spare,
                zero_init=choice.zero_init and not change.training.zero_init,
            )
    return list(found.values())


def cheapest(shape: ModelShape, training: Training, room: Room) -> Fit | None:
    """What ``best(fits(...))`` finds, with a close look at those only that may win."""

    def cost(plan: Strategy) -> tuple[float, int]:
        return traffic(plan, shape.parameters, trained(shape, training), training).cost, plan.stage

    tight = None
    for plan in sorted(STRATEGIES, key=cost):
        inside = msgspec.structs.replace(training, zero_init=True) if plan.stage == 3 else training  # needs least
        if _has_room(need(shape, inside, plan), room):
            found = fit(shape, training, plan, room)
            if found.word == "fits":
                return found
            tight = tight or (found if found.word == "tight" else None)
    return tight


def _has_room(needed: Need, room: Room) -> bool:
    pairs = ((needed.gpu, room.gpu), (needed.host, room.host), (needed.nvme, room.nvme))
    return all(not account.bytes or (free is not None and account.bytes <= free) for account, free in pairs)


def _single(training: Training) -> Iterator[Change]:
    yield from _recomputed(training)
    yield from _narrower(training)
    yield from _smaller(training)
    yield from _shorter(training)
    yield from _adapters(training)
    yield from _spread(training)


def _recomputed(training: Training) -> Iterator[Change]:
    if not training.checkpointing:
        yield _change(
            training, "compute activations again in backward", ("--activation-checkpointing",), checkpointing=True
        )


def _narrower(training: Training) -> Iterator[Change]:
    if training.dtype == "fp32":
        yield _change(training, "train in bf16", ("--dtype bf16",), dtype="bf16")


def _smaller(training: Training) -> Iterator[Change]:
    """The same global batch in smaller pieces."""
    batch, steps = training.micro_batch, training.accumulation
    while batch > 1 and batch % 2 == 0:
        batch, steps = batch // 2, steps * 2
        words = f"a micro batch of {batch}, accumulated {steps} times: the same global batch"
        options = (f"--micro-batch {batch}", f"--accumulation {steps}")
        yield _change(training, words, options, micro_batch=batch, accumulation=steps)
    if batch > 1:
        words, options = "a micro batch of 1", ("--micro-batch 1", f"--accumulation {steps * batch}")
        yield _change(training, words, options, micro_batch=1, accumulation=steps * batch)


def _shorter(training: Training) -> Iterator[Change]:
    length = training.sequence // 2
    while length >= LEAST_SEQUENCE:
        yield _change(training, f"sequences of {length:,} tokens", (f"--seq {length}",), sequence=length)
        length //= 2


def _adapters(training: Training) -> Iterator[Change]:
    if not training.lora_rank:
        yield _change(training, f"train LoRA adapters of rank {RANK} only", (f"--lora-rank {RANK}",), lora_rank=RANK)


def _spread(training: Training) -> Iterator[Change]:
    """More GPUs of the same kind: first in this node, then in more nodes."""
    count, nodes = training.gpus_per_node, training.nodes
    while count < NODE:
        count = min(NODE, 2 * count)
        yield _change(training, f"{count} such GPUs in each node", (f"--gpus {count}",), gpus_per_node=count)
    while nodes < MOST_NODES:
        nodes = min(MOST_NODES, 2 * nodes)
        words, options = f"{nodes} such nodes with {count} GPUs each", (f"--gpus {count}", f"--nodes {nodes}")
        yield _change(training, words, options, gpus_per_node=count, nodes=nodes)


def _together(training: Training) -> Change | None:
    """All that costs time only, not results."""
    change: Change | None = None
    for kind in (_recomputed, _narrower, _smaller):
        for more in list(kind(change.training if change else training))[-1:]:
            change = _joined(change, more) if change else more
    return change


def _joined(first: Change, second: Change) -> Change:
    return Change(
        kind=second.kind,
        words=f"{first.words}; {second.words}",
        options=(*first.options, *second.options),
        training=second.training,
    )


def _change(training: Training, words: str, options: tuple[str, ...], **changed: object) -> Change:
    made = msgspec.structs.replace(training, **changed)
    return Change(kind=options[0].partition(" ")[0], words=words, options=options, training=made)


def nearest(found: tuple[Fit, ...]) -> Fit | None:
    """Of those that do not fit the one that lacks least, in proportion."""

    def lack(fit: Fit) -> float:
        return max((a.need / max(1, a.room) for a in fit.answers if a.room is not None), default=0.0)

    return min((fit for fit in found if fit.word == "no"), key=lack, default=None)
