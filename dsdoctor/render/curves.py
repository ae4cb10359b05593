"""The curves of a smoke run: what was measured over time and per step, and the phases behind it."""

from collections.abc import Iterator
from typing import TypeGuard

import msgspec

from dsdoctor.facts import SmokeCurves, SmokePhase, SmokeRun
from dsdoctor.render.quantity import Number, finite, known

_DRAWN = 1e300  # beyond it, sums of two numbers are no numbers
_MEASURED = (  # title, unit, series: name and field of SmokeCurves
    ("VRAM", "bytes", (("NVML", "gpu_bytes"), ("torch", "torch_bytes"))),
    ("GPU", "percent", (("used", "gpu_percent"),)),
    ("Host memory", "bytes", (("of the ranks", "rss_bytes"),)),
    ("CPU", "percent", (("all cores", "cpu_percent"), ("busiest core", "busiest_core_percent"))),
    ("Disk", "bytes/s", (("read", "read_bytes_per_s"), ("written", "write_bytes_per_s"))),
)


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One line: points in order of x. A y of None is a gap."""

    name: str
    points: tuple[tuple[float, float | None], ...]

    @property
    def values(self) -> tuple[float | None, ...]:
        return tuple(y for _, y in self.points)

    @property
    def peak(self) -> float:
        return max(finite(self.values))


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that share their axes; each has at least one number."""

    title: str
    unit: str  # "bytes", "percent", "bytes/s", "loss"
    along: str  # what x is
    series: tuple[Series, ...]


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A phase of rank 0 on the axis of time. ``open``: it did not end."""

    name: str
    start: float
    end: float
    open: bool = False


def charts(run: SmokeRun) -> tuple[Chart, ...]:
    """What there is to draw: series without any number are left out, and so are charts without a series."""
    drawn = [*_measured(run.curves)] if run.curves else []
    return (*drawn, *_losses(run))


def _measured(curves: SmokeCurves) -> Iterator[Chart]:
    for title, unit, names in _MEASURED:
        series = [(name, _points(curves.seconds, getattr(curves, field))) for name, field in names]
        there = tuple(Series(name=name, points=points) for name, points in series if finite(y for _, y in points))
        if there:
            yield Chart(title=title, unit=unit, along="seconds since the run began", series=there)


def _losses(run: SmokeRun) -> Iterator[Chart]:
    points = _points(tuple(float(step.number) for step in run.steps), run.losses)
    if finite(y for _, y in points):
        yield Chart(title="Loss", unit="loss", along="step", series=(Series(name="loss", points=points),))


def _points(xs: tuple[float, ...], ys: tuple[Number, ...]) -> tuple[tuple[float, float | None], ...]:
    """Pairs as far as both go; without a time there is no place for a point."""
    return tuple((x, float(y) if _drawn(y) else None) for x, y in zip(xs, ys, strict=False) if _drawn(x))


def _drawn(value: Number) -> TypeGuard[float | int]:
    return known(value) and abs(value) < _DRAWN


def bands(run: SmokeRun) -> tuple[Band, ...]:
    """The phases of the leading rank; one that did not end lasts to the end of the run."""
    return tuple(band for phase in led(run) if (band := _band(phase, run.seconds)) is not None)


def led(run: SmokeRun) -> tuple[SmokePhase, ...]:
    """The phases of rank 0, or of the least rank that has some."""
    leader = min((phase.rank for phase in run.phases), default=0)
    return tuple(phase for phase in run.phases if phase.rank == leader)


def _band(phase: SmokePhase, whole: float | None) -> Band | None:
    lasted = phase.seconds if _drawn(phase.seconds) else None
    end = phase.start_s + lasted if lasted is not None else whole
    if not _drawn(end) or not _drawn(phase.start_s) or end < phase.start_s:
        return None
    return Band(name=phase.name, start=phase.start_s, end=end, open=lasted is None)
