"""Pane 7: what is asked is written there, and the answer follows each change."""

import msgspec
import pytest

from dsdoctor.model import Report
from dsdoctor.request import ExaminationError
from dsdoctor.tui.fit_question import KEPT, question
from tests.render.fit_reports import cards
from tests.tui import reports
from tests.tui.screen import SIZES, doctor, reads, text

FORM = {"model": "7B", "sequence": "", "micro-batch": "1", "gpus": "", "dtype": "best", "optimizer": "adamw", "activations": KEPT}  # fmt: skip


def examined(count: int = 2, free: int = 79, ram: int = 500) -> Report:
    facts = msgspec.structs.replace(cards(count, free, ram), origin="node7.json")
    return reports.report(reports.PASSING, facts=facts)


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40", "60x20"])
async def test_the_answer_follows_what_is_asked(size: tuple[int, int]) -> None:
    app = doctor(examined())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("7")
        await reads(pilot, "7B", "GiB of each GPU")
        await pilot.press("enter", "end", "backspace", "0", "0", "B", "enter")
        await reads(pilot, "Nothing fits here")
        await pilot.press("enter", "end", "backspace", "backspace", "backspace", "x")
        await reads(pilot, "7x: there is no such file")


async def test_choices_turn_and_the_command_that_asks_the_same_is_copied() -> None:
    app = doctor(examined())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("7")
        await reads(pilot, "all activations kept")
        await pilot.press("enter", *["tab"] * 6, "space")
        await reads(pilot, "computed again in backward")
        await pilot.press("escape", "c")
        await reads(pilot, "2 commands copied: dsdoctor fit")
        asked = "dsdoctor fit --params 7B --activation-checkpointing --snapshot node7.json --write ds_config.json"
        assert app.clipboard.splitlines()[0] == asked
        assert "1 Checks" in text(app)


async def test_another_examination_is_another_machine() -> None:
    app = doctor(examined())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("7")
        await reads(pilot, "79.0 GiB free")
        app.screen.show(examined(free=31))  # type: ignore[attr-defined]
        await reads(pilot, "31.0 GiB free")


def test_the_form_is_a_question() -> None:
    asked = question({**FORM, "model": "models/m 1", "gpus": "4", "dtype": "fp16", "optimizer": "lion"}, "this machine")
    assert (asked.model, asked.params, asked.gpus, asked.dtype) == ("models/m 1", None, 4, "fp16")
    assert asked.command == "dsdoctor fit --model 'models/m 1' --gpus 4 --dtype fp16 --optimizer lion"


@pytest.mark.parametrize(
    ("field", "value"), [("gpus", "0"), ("gpus", "x"), ("sequence", "-5"), ("micro-batch", "9" * 30), ("model", " ")]
)
def test_what_is_no_question_is_one_sentence(field: str, value: str) -> None:
    with pytest.raises(ExaminationError, match=r"\.$"):
        question({**FORM, field: value}, "this machine")


async def test_a_click_on_the_tab_asks_too() -> None:
    app = doctor(examined())
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.click("#--content-tab-tab-7")
        await reads(pilot, "GiB of each GPU")


async def test_a_report_that_gives_way_takes_its_answer_with_it() -> None:
    app = doctor(examined())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("7")
        await pilot.pause(0.3)  # it is being computed
        await pilot.press("R")
        await reads(pilot, "HEALTHY", "1 Checks")
        await pilot.pause(0.5)
