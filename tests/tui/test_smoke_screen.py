"""Smoke runs on the screen: which ran, how each went, and all about the selected one."""

import threading
from pathlib import Path

import msgspec
import pytest

from dsdoctor.events import Event
from dsdoctor.facts import Smoke, SmokeProof, SmokeRun, Unavailable
from dsdoctor.model import Report
from tests.render import smoke_runs
from tests.tui import reports
from tests.tui.screen import SIZES, doctor, lines, reads, text

every_size = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40", "60x20"])
WIDE = (120, 40)
RECORDED = Path(__file__).parents[2] / "fixtures/smoke/cpu-2-ranks"


def trained(*runs: SmokeRun) -> Report:
    return reports.report(reports.PASSING, facts=reports.snapshot(smoke=smoke_runs.smoke(*runs), unavailable={}))


@every_size
async def test_every_run_has_a_line_with_its_word(size: tuple[int, int]) -> None:
    app = doctor(trained())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "HEALTHY", "6 Smoke")
        await pilot.press("6")
        await reads(pilot, "HUNG      zero1")
        rows = [line.partition("\u2502")[0].split()[:2] for line in lines(app)[5:11]]
        assert rows == [
            ["OK", "zero2"],
            ["OK", "zero3-nvme"],
            ["OK", "comm"],
            ["N/A", "moe"],
            ["KILLED", "zero3"],
            ["HUNG", "zero1"],
        ]


@every_size
async def test_the_selected_run_is_told_in_full(size: tuple[int, int]) -> None:
    app = doctor(trained(smoke_runs.nvme(), smoke_runs.killed()))
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6", "enter")
        seen = await reads(
            pilot, "zero3-nvme (ZeRO-Infinity", "1.09 -> 0.72", "140 ms (118-140)", "41 MiB in first step"
        )
        for _ in range(6):
            await pilot.press("pagedown")
            await pilot.wait_for_scheduled_animations()
            seen += text(app)
        words = " ".join(seen.replace("\u2502", " ").split())
        for part in (
            "import deepspeed",
            "VRAM (NVML)",
            "up to 900 MiB",
            "Loss",
            "CPU-bound: CPU 92 %",
            "2.0 GB/s read",
            "no benchmark",
        ):
            assert part in words, part
        assert "\u2588" in seen
        await pilot.press("escape", "down", "enter")
        await reads(pilot, "rank 1 fell first: SIGKILL", "torn down")


@every_size
async def test_a_recorded_run_is_shown_as_it_was(size: tuple[int, int]) -> None:
    recorded = msgspec.json.decode((RECORDED / "runs.json").read_bytes(), type=Smoke)
    app = doctor(trained(*recorded.runs))
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6", "down", "enter")
        await reads(pilot, "zero3 (ZeRO-3", "2 ranks on cpu, fp32", "1.09 -> 0.722", "132 ms", "55 ms (36-107)")
        for _ in range(3):
            await pilot.press("pagedown")
            await pilot.wait_for_scheduled_animations()
        await pilot.press("end")
        await reads(pilot, "16544 of 33088")


@every_size
async def test_without_a_run_it_says_how_to_make_one(size: tuple[int, int]) -> None:
    app = doctor(reports.healthy())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6")
        assert "Reason" not in await reads(pilot, "No smoke run yet: start dsdoctor with --smoke", "`dsdoctor smoke`")


async def test_a_run_that_could_not_be_made_says_why() -> None:
    why = Unavailable(kind="depends", detail="torch does not import")
    app = doctor(reports.report(reports.PASSING, facts=reports.snapshot(unavailable={"smoke": why})))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6")
        await reads(pilot, "No smoke run yet", "Reason: torch does not import")


async def test_its_command_is_copied_and_there_is_no_check_to_look_at_again() -> None:
    app = doctor(trained())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6", "down", "c")
        await reads(pilot, "1 command copied: dsdoctor smoke zero3-nvme")
        assert app.clipboard == "dsdoctor smoke zero3-nvme\n"
        await pilot.press("r")
        await reads(pilot, "Select a check first")


async def test_examining_anew_keeps_the_selected_recipe() -> None:
    coming = [trained(), trained(smoke_runs.zero2(), smoke_runs.hung(outcome="failed", recipe="zero1"))]
    app = doctor(coming[0])
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6", "end")
        await reads(pilot, "zero1 (ZeRO-1")
        screen = app.screen
        screen.show(coming[1])  # type: ignore[attr-defined]
        await reads(pilot, "FAILED    zero1", "zero1 (ZeRO-1")


@every_size
async def test_a_recheck_that_trains_tells_how_far_it_is(size: tuple[int, int]) -> None:
    go_on = threading.Event()

    def recheck(before: Report, code: str) -> Report:
        app._watch(Event(kind="smoke-started", name="zero2", detail="1 of 1"))
        app._watch(Event(kind="smoke-phase", name="steps"))
        app._watch(Event(kind="smoke-step", name="zero2", values={"number": 4, "steps": 10, "loss": 0.9, "ms": 9.0}))
        go_on.wait(30)
        app._watch(Event(kind="smoke-ended", name="zero2", outcome="ok"))
        return before

    app = doctor(reports.sick(), recheck=recheck)
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "PROBLEMS", "CUDA012")
        await pilot.press("r")
        await reads(pilot, "smoke run of zero2 (1 of 1): steps, 4 of 10")
        go_on.set()
        await reads(pilot, "CUDA012 is still ERROR")


async def test_the_text_follows_the_width_of_the_terminal() -> None:
    app = doctor(trained(smoke_runs.comm()))
    async with app.run_test(size=(80, 60), notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6")
        narrow = await reads(pilot, "all_gather")
        await pilot.resize_terminal(140, 60)
        wide = await reads(pilot, "all_gather      32 MiB   180         202     214   right")
        assert "all_gather: message 32 MiB" in narrow
        assert "all_gather: message" not in wide


@every_size
async def test_hostile_text_and_missing_numbers_wreck_no_screen(size: tuple[int, int]) -> None:
    app = doctor(trained(smoke_runs.hostile(), smoke_runs.empty()))
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6")
        seen = await reads(pilot, "FAILED")
        await pilot.press("enter")
        for _ in range(8):
            await pilot.press("pagedown")
            await pilot.wait_for_scheduled_animations()
            seen += text(app)
        assert "[red]x[/red]" in seen
        assert not set(seen) & set("\x1b\x07\u202e")
        assert "owned" not in seen
        assert "None" not in seen


async def test_without_colours_how_it_went_is_still_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = doctor(
        trained(
            msgspec.structs.replace(smoke_runs.zero2(), proofs=(SmokeProof(name="falls", ok=False, detail="1 to 1"),))
        )
    )
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("6")
        await reads(pilot, "WRONG     zero2", "not so: falls: 1 to 1")
