"""While the examination runs, when it fails, and when it is interrupted."""

import sys
import threading
from pathlib import Path

import pytest

from dsdoctor.events import Event, Observer
from dsdoctor.examination import ExaminationError
from dsdoctor.model import Report
from dsdoctor.probes import runner
from dsdoctor.request import Request
from tests.tui import reports
from tests.tui.screen import SIZES, doctor, lines, reads, text

every_size = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40", "60x20"])


@every_size
async def test_progress_shows_what_still_runs_before_what_is_done(size: tuple[int, int]) -> None:
    go_on = threading.Event()

    def examine(request: Request, observe: Observer) -> Report:
        for name in ("host", "patient", "gpus"):
            observe(Event(kind="probe-started", name=name))
        observe(Event(kind="probe-ended", name="host", outcome="ok", seconds=0.1))
        observe(Event(kind="probe-ended", name="gpus", outcome="timed-out", seconds=10.0))
        go_on.wait(30)
        return reports.sick()

    app = doctor(reports.sick(), examine=examine)
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "2 done, 1 at work", "10.0 s  gpus", "importing torch", "q stops")
        rows = [line for line in lines(app) if " s  " in line]
        assert "at work" in rows[0]
        assert "patient" in rows[0]
        assert any("done" in row and "host" in row for row in rows[1:])
        assert any("timed-out" in row for row in rows[1:])
        go_on.set()
        await reads(pilot, "PROBLEMS")


@every_size
async def test_a_smoke_run_is_shown_live_above_what_was_examined(size: tuple[int, int]) -> None:
    go_on = threading.Event()

    def examine(request: Request, observe: Observer) -> Report:
        for name in ("host", "gpus"):
            observe(Event(kind="probe-started", name=name))
            observe(Event(kind="probe-ended", name=name, outcome="ok", seconds=0.1))
        observe(Event(kind="judging", name="checks"))
        observe(Event(kind="smoke-started", name="zero1", detail="1 of 5"))
        observe(Event(kind="smoke-ended", name="zero1", outcome="hung", seconds=66.0))
        observe(Event(kind="smoke-started", name="zero2", detail="2 of 5"))
        observe(Event(kind="smoke-phase", name="import torch", detail="importing torch"))
        observe(Event(kind="smoke-phase", name="steps"))
        observe(Event(kind="smoke-step", name="zero2", values={"number": 4, "steps": 10, "loss": 0.9, "ms": 9.0}))
        observe(Event(kind="smoke-sample", name="zero2", values={"gpu_bytes": 2.0**30, "cpu_percent": 92.0}))
        go_on.wait(30)
        return reports.sick()

    app = doctor(reports.sick(), examine=examine)
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(
            pilot, "Training a tiny model: zero2 (2 of 5)", "before: zero1 hung in 66 s", "4 of 10", "1.0 GiB", "92 %", "loss", "gpus:",
        )  # fmt: skip
        seen = lines(app)
        assert next(n for n, line in enumerate(seen) if "4 of 10" in line) < next(
            n for n, line in enumerate(seen) if "gpus:" in line
        )
        go_on.set()
        await reads(pilot, "PROBLEMS")


async def test_events_that_look_like_markup_are_shown_as_they_are() -> None:
    go_on = threading.Event()

    def examine(request: Request, observe: Observer) -> Report:
        observe(Event(kind="probe-started", name="[red]odd\x1b[31m"))
        go_on.wait(30)
        return reports.healthy()

    app = doctor(reports.healthy(), examine=examine)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        assert "\x1b" not in await reads(pilot, "[red]odd:")
        go_on.set()
        await reads(pilot, "HEALTHY")


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_leaving_while_a_probe_runs_ends_its_children(key: str, tmp_path: Path) -> None:
    up, ended, ran = tmp_path / "up", threading.Event(), []
    child = f"import pathlib, time; pathlib.Path({str(up)!r}).touch(); time.sleep(300)"

    def examine(request: Request, observe: Observer) -> Report:
        observe(Event(kind="probe-started", name="patient"))
        ran.append(runner.run([sys.executable, "-c", child], 300))
        ended.set()
        return reports.healthy()

    app = doctor(reports.healthy(), examine=examine)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "1 at work")
        while not up.exists():
            await pilot.pause(0.05)
        await pilot.press(key)
    assert ended.wait(10)
    assert ran[0].ending != "timed-out"
    assert not ran[0].ok
    assert app.return_value == 130


async def test_after_leaving_no_further_probe_starts() -> None:
    go_on, left, started = threading.Event(), threading.Event(), []

    def probe(observe: Observer) -> None:
        try:
            go_on.wait(30)
            observe(Event(kind="probe-started", name="late"))
            started.append("late")
        except SystemExit:  # as threading itself takes it
            return
        finally:
            left.set()

    def examine(request: Request, observe: Observer) -> Report:
        threading.Thread(target=probe, args=(observe,)).start()
        go_on.wait(30)
        return reports.healthy()

    app = doctor(reports.healthy(), examine=examine)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "Examining this machine")
        await pilot.press("q")
    go_on.set()
    assert left.wait(10)
    assert started == []


@every_size
async def test_a_crash_is_one_sentence_and_can_be_tried_again(size: tuple[int, int]) -> None:
    outcomes: list[Report | Exception] = [ZeroDivisionError("division [by] zero"), reports.healthy()]

    def examine(request: Request, observe: Observer) -> Report:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    app = doctor(reports.healthy(), examine=examine)
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = await reads(
            pilot, "There is no report.", "a fault of", "dsdoctor", "ZeroDivisionError:", "division [by]"
        )
        assert "Traceback" not in screen
        await pilot.press("R")
        await reads(pilot, "HEALTHY")
        await pilot.press("q")
    assert app.return_value == 0


async def test_a_users_mistake_is_told_in_its_own_words_and_exits_2() -> None:
    def examine(request: Request, observe: Observer) -> Report:
        raise ExaminationError("facts.json cannot be read: No such file or directory")

    app = doctor(reports.healthy(), examine=examine)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await reads(pilot, "facts.json cannot be read: No such file or directory")
        assert "fault of dsdoctor" not in screen
        await pilot.press("q")
    assert app.return_value == 2


async def test_examining_anew_shows_the_new_report() -> None:
    coming = [reports.sick(), reports.healthy()]
    app = doctor(reports.sick(), examine=lambda request, observe: coming.pop(0))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "PROBLEMS")
        await pilot.press("R")
        assert "PROBLEMS" not in await reads(pilot, "HEALTHY")


async def test_anew_is_not_offered_while_a_job_runs() -> None:
    go_on, calls = threading.Event(), []

    def recheck(before: Report, code: str) -> Report:
        calls.append(code)
        go_on.wait(30)
        return before

    app = doctor(reports.sick(), recheck=recheck)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "PROBLEMS", "R Anew")
        await pilot.press("r")
        await reads(pilot, "Looking again at what CUDA012 is about")
        await pilot.press("R", "r")
        await reads(pilot, "Still looking at CUDA012")
        assert "R Anew" not in text(app)
        go_on.set()
        await reads(pilot, "CUDA012 is still ERROR", "R Anew")
    assert calls == ["CUDA012"]


async def test_help_over_the_progress_gives_way_to_the_report() -> None:
    go_on = threading.Event()

    def examine(request: Request, observe: Observer) -> Report:
        go_on.wait(30)
        return reports.sick()

    app = doctor(reports.sick(), examine=examine)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "Examining this machine")
        await pilot.press("question_mark")
        await reads(pilot, "Keys")
        go_on.set()
        await reads(pilot, "PROBLEMS", "CUDA012")


async def test_a_partial_report_is_marked() -> None:
    app = doctor(reports.report(reports.PASSING, interrupted=True))
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        await reads(pilot, "INTERRUPTED HEALTHY")
