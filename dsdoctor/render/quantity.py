"""Numbers as a person reads them. A number that is not known is the empty string, one that is no number is named."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TypeGuard

Number = float | int | None


def known(value: Number) -> TypeGuard[float | int]:
    """A number that can be drawn and compared: neither missing nor NaN nor infinite."""
    try:
        return value is not None and math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False


def finite(values: Iterable[Number]) -> list[float]:
    """The numbers among ``values``."""
    return [float(value) for value in values if known(value)]


def size(value: Number) -> str:
    """Memory: "41 MiB"."""
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def amount(value: Number) -> str:
    """What was moved: "134 MB"."""
    return _scaled(value, 1000, ("B", "kB", "MB", "GB", "TB", "PB"))


def rate(value: Number) -> str:
    """Bytes in a second: "1.1 GB/s"."""
    return f"{amount(value)}/s" if known(value) else ""


def seconds(value: Number) -> str:
    """ "9.1 ms", "1.8 s", "125 s"."""
    if not known(value):
        return ""
    return f"{_digits(value * 1000)} ms" if abs(value) < 1 else f"{_digits(value)} s"


def percent(value: Number) -> str:
    return f"{value:.0f} %" if known(value) else ""


def loss(value: Number) -> str:
    """Three digits; "NaN" and "inf" are losses too."""
    if value is None:
        return ""
    return {"nan": "NaN"}.get(f"{value:.3g}", f"{value:.3g}")


def spread(values: Sequence[Number], unit: str, scale: float = 1.0) -> str:
    """Median and what lies around it: "9.1 ms (8.9-9.6)"; of one number that it is one."""
    numbers = [value * scale for value in finite(values)]
    if not numbers:
        return ""
    middle = f"{_digits(statistics.median(numbers))} {unit}"
    return f"{middle} ({_digits(min(numbers))}-{_digits(max(numbers))})" if len(numbers) > 1 else f"{middle} (once)"


def milliseconds(values: Sequence[Number]) -> str:
    """The spread of times given in milliseconds, in the unit of their median."""
    numbers = finite(values)
    long = bool(numbers) and statistics.median(numbers) >= 1000
    return spread(numbers, "s", 0.001) if long else spread(numbers, "ms")


def counted(number: int, noun: str) -> str:
    """ "1 rank", "2 ranks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _scaled(value: Number, base: int, units: tuple[str, ...]) -> str:
    if not known(value):
        return ""
    number, index = float(value), 0
    while abs(number) >= base - 0.5 and index < len(units) - 1:
        number, index = number / base, index + 1
    return f"{_digits(number) if index else f'{number:.0f}'} {units[index]}"


def _digits(number: float) -> str:
    """Two digits at least, no more than a reader can use: "0.35", "9.1", "134"."""
    size = abs(number)
    if size >= 9.95:
        return f"{number:.0f}"
    return f"{number:.1f}" if size >= 0.95 else f"{number:.2g}"
