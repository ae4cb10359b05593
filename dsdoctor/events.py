"""What an observer is told while an examination runs. An observer is any callable that takes an Event."""

from collections.abc import Callable
from typing import Literal

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is a probe's section, a check's code, a smoke phase or an op; ``seconds`` since that thing began."""

    kind: Literal["probe-started", "probe-ended", "judging", "smoke-phase", "op-started", "op-ended", "note"]
    name: str
    outcome: str | None = None  # "ok", or an UnavailableKind
    seconds: float | None = None
    detail: str | None = None


Observer = Callable[[Event], None]


def nobody(event: Event) -> None:
    """The observer that looks away."""
