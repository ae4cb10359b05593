"""A smoke run while it runs, as the CLI and the TUI show it: pure lines, any width, any order of events."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsdoctor.events import Event, Kind
from dsdoctor.render.live import Live
from tests.render.smoke_runs import HOSTILE

GIB = float(1 << 30)


def started(recipe: str = "zero2", place: str | None = "2 of 5", at: float = 0.0) -> Live:
    live = Live()
    live.see(Event(kind="smoke-started", name=recipe, detail=place), at)
    return live


def phase(live: Live, name: str, at: float, words: str | None = None) -> None:
    live.see(Event(kind="smoke-phase", name=name, detail=words), at)


def step(live: Live, number: int, loss: float, at: float) -> None:
    live.see(
        Event(kind="smoke-step", name="zero2", values={"number": number, "steps": 10, "loss": loss, "ms": 9.1}), at
    )


def sample(live: Live, at: float, **values: float) -> None:
    live.see(Event(kind="smoke-sample", name="zero2", values=values), at)


def line(live: Live, label: str, at: float) -> str:
    return next(text for text in live.lines(80, at) if text.split()[:1] == label.split()[:1])


def test_before_anything_runs_there_is_nothing_to_show() -> None:
    live = Live()
    assert live.lines(80, 0.0) == []
    assert not live.running
    live.see(Event(kind="probe-started", name="torch"), 1.0)
    live.see(Event(kind="op-started", name="cpu_adam"), 1.0)
    assert live.lines(80, 2.0) == []


def test_it_says_which_recipe_of_how_many_and_for_how_long() -> None:
    assert started().lines(80, 12.4)[0] == "smoke run of zero2 (2 of 5), 12 s"
    assert started(place=None).lines(80, 3.0)[0] == "smoke run of zero2, 3 s"


def test_in_brief_it_is_one_sentence() -> None:
    live = started()
    assert live.brief(1.0) == "smoke run of zero2 (2 of 5)"
    phase(live, "rendezvous", 1.0, "waiting for the others")
    assert live.brief(3.0) == "smoke run of zero2 (2 of 5): waiting for the others, 2.0 s"
    phase(live, "steps", 3.0)
    step(live, 4, 0.9, 4.0)
    assert live.brief(5.0) == "smoke run of zero2 (2 of 5): steps, 4 of 10, 2.0 s"
    assert Live().brief(0.0) == ""


def test_phases_have_bars_with_their_time_and_the_last_one_pulses() -> None:
    live = started()
    phase(live, "import torch", 0.5, "importing torch")
    phase(live, "rendezvous", 2.6)
    assert re.search("importing torch +\u2588{20} +2.1 s$", line(live, "importing", 3.0))
    assert re.search(r"rendezvous +[\u2588\u2591]{20} +0.4 s$", line(live, "rendezvous", 3.0))
    assert line(live, "rendezvous", 3.0).count("\u2588") == 4
    assert line(live, "rendezvous", 4.0).split()[1] != line(live, "rendezvous", 3.0).split()[1]


def test_news_of_the_same_phase_change_its_words_and_not_its_time() -> None:
    live = started()
    phase(live, "compile cpu_adam", 1.0)
    phase(live, "compile cpu_adam", 9.0, "compiling cpu_adam, file 2 of 3")
    assert len(live.lines(80, 10.0)) == 2
    assert "9.0 s" in line(live, "compiling", 10.0)


def test_a_phase_that_goes_on_after_another_keeps_its_time_and_stands_last() -> None:
    live = started()
    phase(live, "rendezvous", 1.0)
    phase(live, "load deepspeed_shm_comm", 1.5)
    phase(live, "rendezvous", 2.0)
    assert [text.split("  ")[1] for text in live.lines(80, 3.0)[1:]] == ["load deepspeed_shm_comm", "rendezvous"]
    assert "2.0 s" in line(live, "rendezvous", 3.0)
    phase(live, "initialize", 4.0)
    assert line(live, "rendezvous", 9.0).endswith("3.0 s")


def test_after_the_last_step_its_phase_is_over() -> None:
    live = started()
    phase(live, "steps", 1.0)
    step(live, 9, 0.8, 2.0)
    assert "9 of 10" in line(live, "steps", 2.0)
    step(live, 10, 0.7, 3.0)
    assert re.search("█{20}  2.0 s$", line(live, "steps", 60.0))


def test_steps_fill_the_bar_of_their_phase() -> None:
    live = started()
    phase(live, "first step", 1.0)
    step(live, 1, 1.09, 2.0)
    phase(live, "steps", 2.0)
    assert "1 of 10" in line(live, "steps", 2.1)
    for number in range(2, 6):
        step(live, number, 1.09 - number / 10, 2.0 + number)
    assert re.search("steps +\u2588{10}\u2591{10}  5 of 10, 6.0 s", line(live, "steps", 8.0))
    phase(live, "save", 9.0)
    assert "of 10" not in line(live, "save", 9.5), "what comes after the steps is not measured in steps"


def test_memory_processor_and_loss_are_sparklines_with_their_last_number() -> None:
    live = started()
    for n in range(48):
        sample(live, n / 10, gpu_bytes=n * GIB / 47, torch_bytes=GIB / 2, cpu_percent=n * 2.0, gpu_percent=3.0)
    step(live, 1, 1.09, 5.0)
    step(live, 2, 0.72, 5.1)
    assert re.search("VRAM +\u2581.*\u2588  1.0 GiB \\(torch 512 MiB\\)$", line(live, "VRAM", 6.0))
    assert re.search("CPU +\u2581.*\u2588  94 %, GPU 3 %$", line(live, "CPU", 6.0))
    assert re.search("loss +\u2588\u2581 +1.09 -> 0.72, a step 9.1 ms$", line(live, "loss", 6.0))


def test_without_a_gpu_the_memory_is_that_of_the_host() -> None:
    live = started()
    sample(live, 1.0, rss_bytes=GIB, cpu_percent=50.0)
    assert line(live, "memory", 2.0).endswith("1.0 GiB")
    assert not [text for text in live.lines(80, 2.0) if "VRAM" in text or "GPU" in text]


def test_recipes_that_ended_stay_in_one_line_and_their_curves_go() -> None:
    live = started("zero1", "1 of 2")
    step(live, 1, 1.0, 1.0)
    live.see(Event(kind="smoke-ended", name="zero1", outcome="ok", seconds=11.0), 11.0)
    assert not live.running
    assert live.lines(80, 12.0) == ["before: zero1 ok in 11 s"]
    live.see(Event(kind="smoke-started", name="zero3", detail="2 of 2"), 12.0)
    assert live.lines(80, 13.0) == ["smoke run of zero3 (2 of 2), 1 s", "before: zero1 ok in 11 s"]
    live.see(Event(kind="smoke-ended", name="zero3", outcome="signal"), 20.0)
    assert live.lines(80, 21.0) == ["before: zero1 ok in 11 s, zero3 killed in 8.0 s"]


def test_on_a_low_screen_the_first_phases_become_one_line() -> None:
    live = started()
    for n in range(9):
        phase(live, f"phase {n}", float(n))
    sample(live, 9.0, cpu_percent=5.0)
    assert [text.split("  ")[1] for text in live.lines(80, 9.0, height=6)[1:]] == [
        "6 phases before 6.0 s", "phase 6", "phase 7", "phase 8", "CPU",
    ]  # fmt: skip


def test_a_loss_that_is_no_number_is_shown_as_that() -> None:
    live = started()
    step(live, 1, math.nan, 1.0)
    assert "NaN" in line(live, "loss", 2.0)


def test_events_without_a_start_are_shown_all_the_same() -> None:
    live = Live()
    phase(live, "steps", 1.0)
    step(live, 3, 0.5, 2.0)
    assert "3 of 10" in line(live, "steps", 2.0)


@pytest.mark.parametrize("width", [20, 60, 80])
def test_text_of_the_machine_moves_no_terminal(width: int) -> None:
    live = started(HOSTILE, HOSTILE)
    phase(live, HOSTILE, 1.0, HOSTILE)
    live.see(Event(kind="smoke-ended", name=HOSTILE, outcome=HOSTILE), 2.0)
    live.see(Event(kind="smoke-started", name=HOSTILE, detail=HOSTILE), 2.0)
    phase(live, HOSTILE, 3.0, HOSTILE)
    seen = "".join(live.lines(width, 4.0))
    assert not set(seen) & set("\x1b\x07\x9b\u202e\n")
    assert "owned" not in seen


KINDS: list[Kind] = ["smoke-started", "smoke-phase", "smoke-step", "smoke-sample", "smoke-ended", "note"]
values = st.dictionaries(
    st.sampled_from(["number", "steps", "loss", "ms", "gpu_bytes", "torch_bytes", "rss_bytes", "cpu_percent"]),
    st.floats(),
)
events = st.builds(
    Event, kind=st.sampled_from(KINDS), name=st.text(max_size=5), detail=st.none() | st.text(max_size=30), outcome=st.none() | st.text(max_size=5), values=values,
)  # fmt: skip


@given(st.lists(events, max_size=30), st.integers(1, 100), st.integers(1, 20), st.booleans())
def test_whatever_is_told_the_lines_fit(told: list[Event], width: int, height: int, unicode: bool) -> None:
    live = Live()
    for at, event in enumerate(told):
        live.see(event, float(at))
    lines = live.lines(width, 99.0, unicode=unicode, height=height)
    assert len(lines) <= height
    assert all(len(text) <= width for text in lines)
    assert bool(lines) or not live.running
