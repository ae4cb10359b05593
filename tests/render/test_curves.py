"""What can be drawn of a smoke run, as characters and as pictures: every number finite, gaps as gaps, labels there."""

import math
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsdoctor.facts import SmokeCurves, SmokePhase, SmokeRun, SmokeStep
from dsdoctor.render import svg
from dsdoctor.render.curves import bands, charts
from dsdoctor.render.quantity import amount, loss, milliseconds, percent, rate, seconds, size
from dsdoctor.render.spark import bar, pulse, slice_of, sparkline
from tests.render import smoke_runs

numbers = st.one_of(st.none(), st.floats(), st.integers(-(2**63), 2**63))
some = st.lists(numbers, max_size=20)


def run(**fields: object) -> SmokeRun:
    return SmokeRun(recipe="zero2", outcome="ok", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (size(0), "0 B"), (size(1023), "1023 B"), (size(1536), "1.5 KiB"), (size(41 << 20), "41 MiB"), (size(int(1.23 * 2**30)), "1.2 GiB"),
        (size(None), ""), (size(math.nan), ""), (amount(134_266_880), "134 MB"), (amount(999_999), "1.0 MB"),
        (rate(1.1e9), "1.1 GB/s"), (rate(None), ""), (rate(math.inf), ""), (seconds(0.0091), "9.1 ms"), (seconds(1.84), "1.8 s"),
        (seconds(125.2), "125 s"), (seconds(0.00035), "0.35 ms"), (seconds(0.0), "0 ms"), (percent(91.6), "92 %"), (percent(math.nan), ""),
        (loss(1.0912), "1.09"), (loss(0.00012), "0.00012"), (loss(math.nan), "NaN"), (loss(math.inf), "inf"), (loss(None), ""),
        (milliseconds([9.1, 8.9, 9.6]), "9.1 ms (8.9-9.6)"), (milliseconds([1800.0, 2500.0]), "2.1 s (1.8-2.5)"),
        (milliseconds([9.1]), "9.1 ms (once)"), (milliseconds([]), ""), (milliseconds([math.nan, None]), ""),
    ],
)  # fmt: skip
def test_numbers_are_said_as_a_person_reads_them(said: str, expected: str) -> None:
    assert said == expected


def test_a_sparkline_shows_peaks_and_leaves_gaps() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
    assert sparkline([1, None, math.nan, 2], 4, unicode=False) == "_  #"
    assert sparkline([0, 0, 9, 0, 0, 0], 2, unicode=False) == "#_", "a peak between two cells is not lost"
    assert sparkline([50.0], 5, unicode=False, low=0.0, high=100.0) == "+"
    assert sparkline([5, 5, 5], 3, unicode=False) == "+++"
    assert sparkline([0, 0], 3, unicode=False) == "__"
    assert sparkline([], 5) == sparkline([None, math.nan], 5) == sparkline([1], 0) == ""


@given(some, st.integers(-2, 40), st.booleans())
def test_no_numbers_break_a_sparkline_or_a_bar(values: list[float | None], width: int, unicode: bool) -> None:
    assert len(sparkline(values, width, unicode=unicode)) <= max(width, 0)
    for value in values:
        if width > 0:
            assert len(bar(value, width, unicode=unicode)) == width


@given(st.floats(-10, 1e6), st.floats(-10, 1e6), st.integers(1, 60))
def test_bars_keep_their_width_and_a_slice_is_always_seen(start: float, share: float, width: int) -> None:
    assert len(pulse(start, width)) == width
    drawn = slice_of(start, share, width, unicode=False)
    assert len(drawn) == width
    assert "#" in drawn
    assert re.fullmatch(r"\.*#+\.*", drawn)


def test_a_pulse_moves() -> None:
    assert len({pulse(at / 4, 12) for at in range(16)}) == 9


def test_series_without_a_number_are_not_drawn() -> None:
    curves = SmokeCurves(seconds=(0.0, 1.0), gpu_bytes=(None, None), cpu_percent=(math.nan, None), rss_bytes=(None, 5))
    assert [chart.title for chart in charts(run(curves=curves))] == ["Host memory"]
    assert charts(run()) == ()
    assert charts(run(steps=(SmokeStep(number=1, loss=math.nan, ms=1.0),))) == ()


def test_every_curve_of_a_whole_run_is_drawn_once() -> None:
    drawn = {chart.title: [series.name for series in chart.series] for chart in charts(smoke_runs.zero2())}
    assert drawn == {
        "VRAM": ["NVML", "torch"],
        "GPU": ["used"],
        "Host memory": ["of the ranks"],
        "CPU": ["all cores", "busiest core"],
        "Disk": ["read", "written"],
        "Loss": ["loss"],
    }


def test_bands_are_the_phases_of_the_leading_rank_and_an_open_one_lasts_to_the_end() -> None:
    found = bands(smoke_runs.killed())
    assert [band.name for band in found] == [
        "import torch",
        "import deepspeed",
        "rendezvous",
        "initialize",
        "first step",
    ]
    assert (found[-1].open, found[-1].end) == (True, 8.2)
    odd = run(
        phases=(
            SmokePhase(name="a", seconds=math.nan, start_s=math.nan),
            SmokePhase(name="b", seconds=None, start_s=9.0),
        ),
        seconds=3.0,
    )
    assert bands(odd) == ()


def drawn(of: SmokeRun) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg.draw(chart, bands(of))) for chart in charts(of)]


def coordinates(picture: ElementTree.Element) -> list[float]:
    found = []
    for element in picture.iter():
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"):
            found += [float(element.attrib[name])] if name in element.attrib else []
        found += [float(n) for pair in element.get("points", "").split() for n in pair.split(",")]
    return found


@given(
    st.lists(st.floats(), max_size=12), some, some,
    st.lists(st.tuples(st.integers(0, 2**62), st.floats()), max_size=8),
    st.lists(st.tuples(st.one_of(st.none(), st.floats()), st.floats()), max_size=6), st.one_of(st.none(), st.floats()),
)  # fmt: skip
def test_whatever_was_measured_the_picture_is_sound_and_keeps_to_its_frame(
    xs: list[float], gpu: list[Any], cpu: list[float | None], losses: list[tuple[int, float]],
    lasted: list[tuple[float | None, float]], whole: float | None,
) -> None:  # fmt: skip
    of = run(
        curves=SmokeCurves(
            seconds=tuple(xs), gpu_bytes=tuple(gpu), cpu_percent=tuple(cpu), read_bytes_per_s=tuple(cpu)
        ),
        steps=tuple(SmokeStep(number=n, loss=value, ms=1.0) for n, value in losses),
        phases=tuple(SmokePhase(name="p", seconds=s, start_s=start) for s, start in lasted),
        seconds=whole,
    )
    for picture in drawn(of):
        for number in coordinates(picture):
            assert math.isfinite(number)
            assert -1 <= number <= 721


def test_axes_have_units_and_names_and_bands_their_phase() -> None:
    memory = drawn(smoke_runs.zero2())[0]
    texts = ["".join(element.itertext()) for element in memory.iter("text")]
    assert {"VRAM", "NVML", "torch", "0 B", "512 MiB", "1.0 GiB", "seconds since the run began", "8"} <= set(texts)
    titles = [element.text for element in memory.iter("title")]
    assert titles[:2] == ["import torch, 2.1 s", "import deepspeed, 3.4 s"]
    last = drawn(smoke_runs.zero2())[-1]
    assert {"Loss", "step", "0.7", "1.1", "10"} <= {"".join(element.itertext()) for element in last.iter("text")}
    assert not list(last.iter("rect")), "steps are no seconds: no phase belongs behind them"


def test_a_gap_is_a_gap_and_a_lonely_sample_a_dot() -> None:
    curves = SmokeCurves(seconds=(0.0, 1.0, 2.0, 3.0, 4.0), rss_bytes=(5, 6, None, 7, None))
    picture = svg.draw(charts(run(curves=curves))[0])
    assert picture.count("<polyline") == 1
    assert picture.count("<circle") == 1


def test_names_of_phases_are_data() -> None:
    of = smoke_runs.zero2(phases=smoke_runs.phases((smoke_runs.HOSTILE, 9.0)))
    picture = svg.draw(charts(of)[0], bands(of))
    assert "<script" not in picture
    assert "\x1b" not in picture
    ElementTree.fromstring(picture)
