"""Does it fit, by how much, what is the largest that does, and which strategy costs least."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from dsdoctor.fit.items import Account
from dsdoctor.fit.memory import Need, need
from dsdoctor.fit.rehearsal import reserved
from dsdoctor.fit.room import Room
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.strategies import STRATEGIES, Strategy, Traffic, traffic
from dsdoctor.fit.training import Training, trained

Word = Literal["fits", "tight", "unknown", "no"]  # from good to bad
ORDER: Final[tuple[Word, ...]] = ("fits", "tight", "unknown", "no")
# Margins of "fits", from the 116 trainings in fixtures/fit, 79 of them said before they were measured. No GPU needed 2 % more
# than is said now; yet a training ran out with 6.7 % more room than its tensors needed at once: they did not fit into the holes.
GPU_SLACK: Final = 0.08
CACHE_SLACK: Final = 0.05  # more room than torch's allocator is said to reserve: those that got it ran
HOST_SLACK: Final = 0.10  # RAM was up to 9 % more than said: of small models, where libraries are most of it
STEP: Final = 128  # tokens: the largest sequence is looked for in steps of so many
GIB: Final = 1 << 30


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Of one kind of memory."""

    place: Literal["gpu", "host", "nvme"]
    word: Word
    need: int
    room: int | None
    easy: int | None = (
        None  # with this much nothing is short: on a GPU what torch's allocator keeps, as nvidia-smi shows it
    )

    @property
    def spare(self) -> int | None:
        """Bytes left over; negative: bytes that are missing."""
        return None if self.room is None else self.room - self.need


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy on this machine."""

    need: Need
    answers: tuple[Answer, ...]
    traffic: Traffic
    word: Word
    reason: str  # one sentence
    zero_init: bool = False  # only when the model is made inside deepspeed.zero.Init

    @property
    def plan(self) -> Strategy:
        return self.need.plan


class Largest(msgspec.Struct, frozen=True, kw_only=True):
    """That fits; 0 when not even one does."""

    micro_batch: int  # at the sequence that was asked for
    sequence: int  # at a micro batch of one


def answer(place: Literal["gpu", "host", "nvme"], account: Account, room: int | None, easy: int | None) -> Answer:
    word: Word
    if not account.bytes:
        word = "fits"
    elif room is None:
        word = "unknown"
    elif account.bytes > room:
        word = "no"
    else:
        word = "fits" if (easy or account.bytes) <= room else "tight"
    return Answer(place=place, word=word, need=account.bytes, room=room, easy=easy)


def fit(shape: ModelShape, training: Training, plan: Strategy, room: Room) -> Fit:
    """As asked; with zero.Init where ZeRO-3 fits better so."""
    plain = _fit(shape, training, plan, room)
    if plan.stage < 3 or training.zero_init or plain.word in ("fits", "unknown"):
        return plain
    inside = _fit(shape, msgspec.structs.replace(training, zero_init=True), plan, room)
    return min(plain, inside, key=lambda found: ORDER.index(found.word))


def _fit(shape: ModelShape, training: Training, plan: Strategy, room: Room) -> Fit:
    needed = need(shape, training, plan)
    host = answer("host", needed.host, room.host, with_slack(needed.host.bytes, HOST_SLACK))
    nvme = answer("nvme", needed.nvme, room.nvme, None)
    kept = None
    if (
        room.gpu is not None and needed.gpu.bytes <= room.gpu and "no" not in (host.word, nvme.word)
    ):  # else nobody needs to know
        kept = with_slack(reserved(shape, training, plan) + needed.gpu.of("runtime"), CACHE_SLACK)
        kept = max(kept, with_slack(needed.gpu.bytes, GPU_SLACK))
    answers = (answer("gpu", needed.gpu, room.gpu, kept), host, nvme)
    word = max((a.word for a in answers), key=ORDER.index)
    moved = traffic(plan, shape.parameters, trained(shape, training), training)
    inside = training.zero_init and plan.stage == 3
    reason = _reason(answers, word) + (", with the model made inside deepspeed.zero.Init" if inside else "")
    return Fit(need=needed, answers=answers, traffic=moved, word=word, reason=reason, zero_init=inside)


def with_slack(bytes_: int, slack: float) -> int:
    return int(bytes_ * (1 + slack))


PLACES: Final = {"gpu": "GPU memory", "host": "RAM", "nvme": "space on NVMe"}


def _reason(answers: tuple[Answer, ...], word: Word) -> str:
    worst = min((a for a in answers if a.word == word), key=lambda a: (a.spare or 0) if a.room else 0)
    name = PLACES[worst.place]
    match word:
        case "unknown":
            return f"{name}: {worst.need / GIB:.1f} GiB are needed, how much is free is not known"
        case "no":
            return f"{name}: {worst.need / GIB:.1f} GiB are needed, {-(worst.spare or 0) / GIB:.1f} GiB are missing"
        case "tight":
            return f"{name}: {worst.need / GIB:.1f} GiB are needed, only {(worst.spare or 0) / GIB:.1f} GiB stay free"
        case _:
            return f"{(answers[0].spare or 0) / GIB:.1f} GiB of GPU memory stay free"


def fits(shape: ModelShape, training: Training, room: Room) -> tuple[Fit, ...]:
    """Every strategy that makes sense here, the best first: those that fit by traffic, then tight ones, then the rest."""
    every = [fit(shape, training, plan, room) for plan in STRATEGIES]
    return tuple(sorted(every, key=lambda f: (ORDER.index(f.word), f.traffic.cost, f.plan.stage)))


def best(found: tuple[Fit, ...]) -> Fit | None:
    """The cheapest that fits, or at least is tight."""
    return next((f for f in found if f.word in ("fits", "tight")), None)


def largest(shape: ModelShape, training: Training, plan: Strategy, room: Room) -> Largest:
    def with_batch(count: int) -> Training:
        return msgspec.structs.replace(training, micro_batch=count)

    def with_sequence(count: int) -> Training:
        return msgspec.structs.replace(training, micro_batch=1, sequence=STEP * count)

    def most(make: Callable[[int], Training], limit: int) -> int:
        """The sums alone are cheap: they say where to begin; torch's allocator is rehearsed near the edge only."""
        above = highest(lambda count: may_fit(shape, make(count), plan, room), limit)
        return highest_below(lambda count: fit(shape, make(count), plan, room).word == "fits", above)

    return Largest(micro_batch=most(with_batch, 4096), sequence=STEP * most(with_sequence, 8192))


def may_fit(shape: ModelShape, training: Training, plan: Strategy, room: Room) -> bool:
    """Without the rehearsal, which can only take away: is every sum, with its margin, below what is there?"""
    if plan.stage == 3:  # zero.Init needs less at the start and the same afterwards
        training = msgspec.structs.replace(training, zero_init=True)
    needed = need(shape, training, plan)
    pairs = (
        (needed.gpu.bytes, GPU_SLACK, room.gpu),
        (needed.host.bytes, HOST_SLACK, room.host),
        (needed.nvme.bytes, 0.0, room.nvme),
    )
    return all(
        not bytes_ or (there is not None and with_slack(bytes_, slack) <= there) for bytes_, slack, there in pairs
    )


def highest_below(works: Callable[[int], bool], above: int) -> int:
    """The highest that works, when nothing beyond ``above`` does: looked for from there, for it is near mostly."""
    if above < 1 or works(above):
        return max(0, above)
    step, high = max(1, above // 16), above
    while (low := high - step) >= 1 and not works(low):
        high, step = low, 2 * step
    low = max(0, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def highest(works: Callable[[int], bool], limit: int) -> int:
    """The highest number up to the limit for which it works, when it works for all below; 0 for none."""
    if not works(1):
        return 0
    low, high = 1, 2
    while high <= limit and works(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low
