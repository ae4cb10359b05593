"""A chart as inline SVG: lines on labelled axes, the phases behind them as bands. Colours come from the page's style."""

import math
from collections.abc import Iterator
from html import escape

from dsdoctor.render.curves import Band, Chart, Series
from dsdoctor.render.plain import one_line
from dsdoctor.render.quantity import finite, percent, rate, seconds, size

STYLE = """
svg.chart{width:100%;height:auto;max-width:45rem;font:12px system-ui,sans-serif}svg.chart text{fill:currentColor}
.axis{stroke:currentColor;stroke-width:1}.grid{stroke:currentColor;stroke-opacity:.12}
.band{fill:currentColor;fill-opacity:.04}.band.odd{fill-opacity:.1}.open{fill:#d9480f;fill-opacity:.18}
.s0{stroke:#1c6fd1;fill:#1c6fd1}.s1{stroke:#d9480f;fill:#d9480f}polyline{fill:none!important;stroke-width:1.6;stroke-linejoin:round}
@media(prefers-color-scheme:dark){.s0{stroke:#74b0ff;fill:#74b0ff}.s1{stroke:#ff9a5c;fill:#ff9a5c}}"""
_SAY = {"bytes": size, "percent": percent, "bytes/s": rate, "loss": "{:.6g}".format}
_WIDTH, _HEIGHT = 720, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 12, 30, 40
_UP, _ACROSS = 4, 8  # ticks, about
_ROOM_FOR_A_NUMBER = 14  # of a band


class Axis:
    """From ``low`` to ``high`` in values, from ``start`` to ``end`` on the picture; a tick every ``step``."""

    def __init__(self, low: float, high: float, step: float, start: float, end: float) -> None:
        self.low, self.high, self.step = low, max(high, low + step * 0.01), step
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        span = self.high - self.low  # 0 when the numbers are so large that a step is lost in them
        share = (min(max(value, self.low), self.high) - self.low) / span if span else 0.0
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [n * self.step for n in range(first, last + 1)]


def draw(chart: Chart, bands: tuple[Band, ...] = ()) -> str:
    """The chart; ``bands`` only where its x is time."""
    timed = chart.unit != "loss"
    x, y = _axes(chart, bands if timed else ())
    said = escape(f"{chart.title}: {', '.join(one_line(series.name) for series in chart.series)}, along {chart.along}")
    inside = [
        *(_bands(bands, x) if timed else ()),
        *_grid(chart, x, y),
        *(part for number, series in enumerate(chart.series) for part in _line(series, number, x, y)),
        *_names(chart),
    ]
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{said}">'
        + "".join(inside)
        + "</svg>"
    )


def _axes(chart: Chart, bands: tuple[Band, ...]) -> tuple[Axis, Axis]:
    xs = [x for series in chart.series for x, _ in series.points] + [band.end for band in bands]
    ys = finite(y for series in chart.series for y in series.values)
    counts = chart.unit == "loss"  # steps are counted, and a loss has no natural zero
    start = min(xs) if counts else min(0.0, *xs)
    across = max(_round(max(xs) - start, _ACROSS), 1.0 if counts else 0.0)
    least = min(ys) if counts else min(0.0, *ys)
    most = max(100.0, *ys) if chart.unit == "percent" else max(ys)
    flat = most - least <= max(abs(most) * 1e-9, 1e-300)
    step = (abs(most) / 2 or 1.0) if flat else _round(most - least, _UP, powers=chart.unit == "bytes")
    low, high = math.floor(least / step) * step, math.ceil(most / step) * step
    return (
        Axis(start, max(xs), across, _LEFT, _WIDTH - _RIGHT),
        Axis(low, max(high, low + step), step, _HEIGHT - _BOTTOM, _TOP),
    )


def _round(span: float, ticks: int, *, powers: bool = False) -> float:
    """A round distance for about so many ticks: 1, 2 or 5 times a power of ten, of bytes a power of two."""
    if not span > 0:
        return 1.0
    wanted = span / ticks
    if powers:
        return float(2.0 ** math.ceil(math.log2(wanted) - 1e-9))
    ten = float(10.0 ** math.floor(math.log10(wanted)))
    return next((n * ten for n in (1, 2, 5) if n * ten >= wanted * 0.999), 10 * ten)


def _bands(bands: tuple[Band, ...], x: Axis) -> Iterator[str]:
    for number, band in enumerate(bands, 1):
        start, end = x.at(band.start), x.at(band.end)
        kind = "band open" if band.open else "band odd" if number % 2 else "band"
        lasted = "did not end" if band.open else seconds(band.end - band.start)
        yield (
            f'<rect class="{kind}" x="{start:.1f}" y="{_TOP}" width="{max(end - start, 0.5):.1f}" height="{_HEIGHT - _TOP - _BOTTOM}">'
            f"<title>{escape(one_line(band.name))}, {lasted}</title></rect>"
        )
        if end - start >= _ROOM_FOR_A_NUMBER:
            yield f'<text x="{(start + end) / 2:.1f}" y="{_TOP + 12}" text-anchor="middle" opacity=".6">{number}</text>'


def _grid(chart: Chart, x: Axis, y: Axis) -> Iterator[str]:
    say, bottom, right = _SAY[chart.unit], _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value in y.ticks():
        at = y.at(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{say(value)}</text>'
    for value in x.ticks():
        yield f'<text x="{x.at(value):.1f}" y="{bottom + 15}" text-anchor="middle">{value:g}</text>'
    yield f'<path class="axis" fill="none" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>'
    yield f'<text x="{(_LEFT + right) / 2:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(chart.along)}</text>'


def _line(series: Series, number: int, x: Axis, y: Axis) -> Iterator[str]:
    """Its pieces between gaps; a piece of one point is a dot."""
    for piece in _pieces(series):
        places = [(x.at(a), y.at(b)) for a, b in piece]
        if len(places) == 1:
            yield f'<circle class="s{number}" cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="2.5"/>'
        else:
            yield f'<polyline class="s{number}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}"/>'


def _pieces(series: Series) -> Iterator[list[tuple[float, float]]]:
    piece: list[tuple[float, float]] = []
    for x, y in (*series.points, (0.0, None)):
        if y is not None:
            piece.append((x, y))
        elif piece:
            yield piece
            piece = []


def _names(chart: Chart) -> Iterator[str]:
    """The title, and the series when there are several, each in its colour."""
    yield f'<text x="{_LEFT}" y="16" font-weight="600">{escape(chart.title)}</text>'
    if len(chart.series) < 2:
        return
    at = _LEFT + 8 * len(chart.title) + 24
    for number, series in enumerate(chart.series):
        name = one_line(series.name)
        yield f'<rect class="s{number}" x="{at}" y="10" width="14" height="3"/><text x="{at + 19}" y="16">{escape(name)}</text>'
        at += 7 * len(name) + 44
