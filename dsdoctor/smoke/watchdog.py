"""How long the ranks of a run may be silent. Pure: it is told what it should know."""

from collections.abc import Iterable

# Seconds without an event of any rank. Seen: a cold import from a network folder takes minutes, a step of the tiny model
# milliseconds, its first step on a GPU one second, ZeRO-3 initialisation some seconds.
_SILENT_S = (("import ", 180.0), ("rendezvous", 60.0), ("initialize", 120.0), ("first step", 60.0), ("start", 60.0))
OTHERWISE_S = 45.0
BUILD_IDLE_S = 60.0  # a build that neither computes nor reads for so long waits for something that will not come


def building(phase: str | None) -> bool:
    """True while an op is compiled or loaded ("load" compiles, too, when torch finds the op stale)."""
    return phase is not None and phase.startswith(("compile ", "load "))


def patience_s(phases: Iterable[str | None]) -> float:
    """How long all ranks together may be silent: as long as the most patient of their phases. None is before the first."""
    return max((_of(phase) for phase in phases), default=OTHERWISE_S)


def _of(phase: str | None) -> float:
    name = phase or "start"
    return next((seconds for begin, seconds in _SILENT_S if name.startswith(begin)), OTHERWISE_S)
