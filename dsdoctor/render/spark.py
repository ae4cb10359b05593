"""Curves and bars made of characters, for terminals with and without Unicode."""

from collections.abc import Sequence

from dsdoctor.render.quantity import Number, finite, known

_BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_ASCII = "_.-=+*%#"
_FULL, _EMPTY = {True: "\u2588", False: "#"}, {True: "\u2591", False: "."}
_PULSE = 4  # cells of the piece that wanders


def sparkline(
    values: Sequence[Number], width: int, *, unicode: bool = True, low: float | None = None, high: float | None = None
) -> str:
    """At most ``width`` characters, oldest first; each shows the largest of the values that share it, a gap none.

    ``low`` and ``high``: what the lowest and the highest character mean, else the smallest and the largest value.
    """
    if width < 1 or not finite(values):
        return ""
    cells = [finite(cell) for cell in _shared(values, width)]
    peaks = [max(cell) if cell else None for cell in cells]
    numbers = [peak for peak in peaks if peak is not None]
    bottom = min(numbers) if low is None else low
    top = max(numbers) if high is None else high
    return "".join(" " if peak is None else _character(peak, bottom, top, unicode) for peak in peaks)


def bar(share: Number, width: int, *, unicode: bool = True) -> str:
    """A bar that is ``share`` (0 to 1) full."""
    full = round(min(max(share, 0.0), 1.0) * width) if share is not None and known(share) else 0
    return _FULL[unicode] * full + _EMPTY[unicode] * (width - full)


def slice_of(start: float, share: float, width: int, *, unicode: bool = True) -> str:
    """A bar with one full piece: ``share`` of the whole from ``start`` on, and never less than one character."""
    first = min(int(min(max(start, 0.0), 1.0) * width), width - 1)
    length = min(max(round(min(max(share, 0.0), 1.0) * width), 1), width - first)
    return _EMPTY[unicode] * first + _FULL[unicode] * length + _EMPTY[unicode] * (width - first - length)


def pulse(seconds: float, width: int, *, unicode: bool = True) -> str:
    """A bar whose end nobody knows: a piece of it goes to and fro, four cells a second."""
    piece = min(_PULSE, width)
    way = max(width - piece, 1)
    step = int(max(seconds, 0.0) * 4) % (2 * way)
    first = min(step if step <= way else 2 * way - step, width - piece)
    return _EMPTY[unicode] * first + _FULL[unicode] * piece + _EMPTY[unicode] * (width - first - piece)


def _shared(values: Sequence[Number], width: int) -> list[Sequence[Number]]:
    """``values`` over at most ``width`` cells; of fewer values each has a cell of its own."""
    cells = min(width, len(values))
    ends = [len(values) * n // cells for n in range(cells + 1)]
    return [values[ends[n] : ends[n + 1]] for n in range(cells)]


def _character(value: float, low: float, high: float, unicode: bool) -> str:
    ramp = _BLOCKS if unicode else _ASCII
    if high <= low:  # nothing changed: a flat line, at the bottom when it is zero
        return ramp[0 if high <= 0 else len(ramp) // 2]
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return ramp[min(int(share * len(ramp)), len(ramp) - 1)]
