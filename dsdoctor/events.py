"""What an observer is told while an examination runs. An observer is any callable that takes an Event."""

from collections.abc import Callable
from typing import Literal

import msgspec

Kind = Literal[
    "probe-started", "probe-ended", "judging", "op-started", "op-ended", "note",
    "smoke-started",  # name: recipe, detail: "2 of 5"
    "smoke-phase",  # name: phase of the leading rank, detail: the same in words
    "smoke-step",  # name: recipe, values: number, steps (asked for), loss, ms
    "smoke-sample",  # name: recipe, values: any of gpu_bytes, torch_bytes, gpu_percent, rss_bytes, cpu_percent
    "smoke-ended",  # name: recipe, outcome: a SmokeOutcome
]  # fmt: skip


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is a probe's section, a check's code, a recipe, a phase or an op; ``seconds`` since that thing began."""

    kind: Kind
    name: str
    outcome: str | None = None  # "ok", an UnavailableKind, a SmokeOutcome
    seconds: float | None = None
    detail: str | None = None
    values: dict[str, float] = {}


Observer = Callable[[Event], None]


def nobody(event: Event) -> None:
    """The observer that looks away."""
