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
CACHE_SLACK: Final = 0.05  # how far the rehearsal of torch's allocator was off, mostly
HOST_SLACK: Final = 0.10
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
    needed = need(shape, training, plan)
    kept = None
    if room.gpu is not None and needed.gpu.bytes <= room.gpu:  # elsewhere nobody needs to know
        kept = max(needed.gpu.bytes, reserved(shape, training, plan) + needed.gpu.of("runtime"))
        kept = int(kept * (1 + CACHE_SLACK))
    answers = (
        answer("gpu", needed.gpu, room.gpu, kept),
        answer("host", needed.host, room.host, int(needed.host.bytes * (1 + HOST_SLACK))),
        answer("nvme", needed.nvme, room.nvme, None),
    )
    word = max((a.word for a in answers), key=ORDER.index)
    moved = traffic(plan, shape.parameters, trained(shape, training), training)
    return Fit(need=needed, answers=answers, traffic=moved, word=word, reason=_reason(answers, word))


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
    def with_batch(count: int) -> bool:
        return fit(shape, msgspec.structs.replace(training, micro_batch=count), plan, room).word == "fits"

    def with_sequence(count: int) -> bool:
        return (
            fit(shape, msgspec.structs.replace(training, micro_batch=1, sequence=128 * count), plan, room).word
            == "fits"
        )

    return Largest(micro_batch=highest(with_batch, 4096), sequence=128 * highest(with_sequence, 8192))


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
