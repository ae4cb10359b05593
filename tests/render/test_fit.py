"""What `dsdoctor fit` shows: a line with a bar for each strategy, an answer, and nothing that a terminal cannot take."""

import re
from collections.abc import Callable

import msgspec
import pytest

from dsdoctor.fit.report import FitReport
from dsdoctor.fit.strategies import STRATEGIES
from dsdoctor.render.fit import render
from dsdoctor.render.fit_bars import KINDS, Brush, Scale, bar
from dsdoctor.render.fit_words import again, count
from tests.render import fit_reports

EVERY = [fit_reports.fits, fit_reports.tight, fit_reports.nothing, fit_reports.unknown, fit_reports.needs_a_drive]
every = pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
WIDTHS = (60, 80, 100, 120)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
NAMES = {plan.name for plan in STRATEGIES}


def table(text: str) -> dict[str, str]:
    """Strategy → its line."""
    lines = (line for line in text.splitlines() if line.startswith(("fits ", "tight ", "no ", "unknown ")))
    return {line.split()[1]: line for line in lines}


@every
@pytest.mark.parametrize("width", WIDTHS)
def test_each_strategy_has_one_line_that_is_not_too_long(make: Callable[[], FitReport], width: int) -> None:
    report = make()
    text = render(report, width=width)
    rows = table(text)
    assert set(rows) == NAMES
    assert [line.split()[0] for line in rows.values()] == [fit.word for fit in report.fits]
    commands = ("  dsdoctor ", "      dsdoctor ")  # never cut: they are there to be copied
    assert [line for line in text.splitlines() if len(line) > width and not line.startswith(commands)] == []


@every
def test_an_ascii_terminal_without_colour_can_show_it(make: Callable[[], FitReport]) -> None:
    text = render(make(), width=100, unicode=False, verbosity=2)
    assert text.isascii()
    assert "\x1b" not in text


@every
def test_colour_changes_no_letter_of_the_words(make: Callable[[], FitReport]) -> None:
    plain, coloured = (render(make(), width=100, color=color) for color in (False, True))
    assert "\x1b[7;" in coloured
    assert [len(line) for line in COLOURS.sub("", coloured).splitlines()] == [len(line) for line in plain.splitlines()]


def test_the_answer_names_the_cheapest_that_fits_and_what_stays_free() -> None:
    report = fit_reports.fits()
    text = " ".join(render(report).split())
    chosen = report.chosen
    assert chosen is not None
    assert f"Use {chosen.plan.title}: of all that fit it moves the least data" in text
    assert f"{(chosen.answers[0].spare or 0) / 2**30:.1f} GiB of each GPU stay free" in text
    assert f"a micro batch of {report.largest and report.largest.micro_batch}" in text
    assert "estimated number of parameters" in text
    assert report.caveats
    assert all(caveat in text for caveat in report.caveats)
    assert "dsdoctor fit --params 7B --write ds_config.json" in text


def test_a_bar_passes_its_mark_only_when_the_need_does() -> None:
    report = fit_reports.fits()
    for fit in report.fits:
        row = table(render(report, width=120))[fit.plan.name]
        drawn = re.split(r"\s+", row, maxsplit=3)[3]
        needed = drawn.partition("\u2502")[2][:3].strip(" \u00b7")
        assert bool(re.match("[A-Z]", needed)) is ((fit.answers[0].spare or 0) < 0), row


def test_a_tight_answer_says_what_is_short_and_what_gives_room() -> None:
    text = render(fit_reports.tight())
    assert "is tight: " in text
    assert "With more room to spare" in text
    assert "--write" in text


def test_nothing_fits_names_the_nearest_and_what_would_do() -> None:
    report = fit_reports.nothing()
    text = " ".join(render(report).split())
    assert f"({report.nearest}) comes nearest" in text
    assert "are missing" in text
    assert "--write" not in text
    for way in report.ways:
        assert way.change in text
        assert again(report.command, way.options) in text


def test_an_unknown_machine_is_neither_yes_nor_no() -> None:
    text = " ".join(render(fit_reports.unknown()).split())
    assert "Whether it fits is not known" in text
    assert "--vram" in text
    assert "\u2502" not in text


def test_only_the_drive_is_not_known() -> None:
    report = fit_reports.needs_a_drive()
    text = " ".join(render(report).split())
    assert report.outcome == "unknown"
    assert "may fit: space on NVMe" in text
    assert "name a folder with --nvme" in text


def test_what_fits_only_inside_zero_init_says_so() -> None:
    report = fit_reports.report(fit_reports.cards(8, 79, 250), params="30B")
    marked = [fit for fit in report.fits if fit.zero_init]
    assert marked
    text = render(report, width=100)
    rows = table(text)
    assert all(f"{fit.plan.name} * " in rows[fit.plan.name] for fit in marked)
    assert sum(" * " in row for row in rows.values()) == len(marked)
    assert report.choice in {fit.plan.name for fit in marked}
    assert "has to be made inside deepspeed.zero.Init" in " ".join(text.split())
    asked = fit_reports.report(fit_reports.cards(8, 79, 250), params="30B", zero_init=True)
    assert " * " not in render(asked)


def test_a_named_strategy_is_told_item_by_item() -> None:
    report = fit_reports.report(strategy="zero2-cpu")
    text = " ".join(render(report, width=200).split())
    chosen = report.chosen
    assert chosen is not None
    for item in (*chosen.need.gpu.items, *chosen.need.host.items):
        assert f"{item.name}: {item.why}{'' if item.exact else ' (estimated)'}" in text
    assert "Each GPU, " in text
    assert "RAM of a node, " in text


def test_text_of_a_file_reaches_no_screen_as_an_escape() -> None:
    report = fit_reports.fits()
    model = msgspec.structs.replace(
        report.model, source="\x1b[2Jmodel\u202e", family="\x1b]0;x\x07", notes=("\x1b[31mred",)
    )
    odd = msgspec.structs.replace(report, model=model, command="dsdoctor fit --model '\x1b[2J'")
    assert "\x1b" not in render(odd)
    assert "\u202e" not in render(odd)


@pytest.mark.parametrize("cells", [1, 8, 23, 60])
@pytest.mark.parametrize("room", [None, 0, 1, 40 << 30, 1 << 50])
def test_every_bar_has_its_length(cells: int, room: int | None) -> None:
    for report in (fit_reports.fits(), fit_reports.nothing()):
        scale = Scale(cells, room, [fit.need.gpu.bytes for fit in report.fits])
        for fit in report.fits:
            drawn = bar(fit.need.gpu, fit.answers[0].easy, scale, Brush(False, True))
            assert len(drawn) == cells + (room is not None)


def test_kinds_have_letters_and_colours_of_their_own() -> None:
    for column in zip(*KINDS.values(), strict=True):
        assert len(set(column)) == len(KINDS)


def test_an_option_that_is_there_is_replaced() -> None:
    assert again("dsdoctor fit --micro-batch 16 --gpus 2", ("--micro-batch 4", "--zero-init")) == (
        "dsdoctor fit --micro-batch 4 --gpus 2 --zero-init"
    )


@pytest.mark.parametrize(
    ("number", "says"),
    [(999, "999"), (109_482_240, "109 million"), (70_553_706_496, "70.6 billion"), (10**12, "1 trillion")],
)
def test_counts_are_said_as_people_do(number: int, says: str) -> None:
    assert count(number) == says
