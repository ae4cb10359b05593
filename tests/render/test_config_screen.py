"""The screen of `dsdoctor config`: order, excerpts with their marks, and what it comes to."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsdoctor.config_examination import look
from dsdoctor.facts import RunPlan
from dsdoctor.readers import ds_config
from dsdoctor.readers.ds_config import Source
from dsdoctor.render.config import render
from dsdoctor.render.excerpt import Mark, add_excerpt, lines_of
from dsdoctor.render.page import Page
from dsdoctor.request import Request


def screen(*texts: str, ranks: int | None = None, width: int = 100, **how: Any) -> str:
    request = Request(config="ds.json", run_plan=RunPlan(gpus_per_node=ranks) if ranks else None)
    files = [
        look(request, "0.19.8", source=Source(ds_config.parse(text, f"ds{number}.json"), text))
        for number, text in enumerate(texts, 1)
    ]
    return render(files, width=width, **how)


def heads(told: str) -> list[str]:
    return [line.split(" ")[0] for line in told.splitlines() if line.startswith("ds1.json:")]


def marked(line: str, *marks: Mark, width: int = 80) -> tuple[str, str]:
    """The line as shown, and its marks, both without the gutter."""
    page = Page(width, color=False, unicode=True)
    add_excerpt(page, lines_of(line), marks)
    shown, under = page.lines
    return shown[6:], under[6:]


def test_findings_stand_in_the_order_of_the_file_and_advice_comes_last() -> None:
    told = screen(
        '{\n"zero_optimisation": {},\n"train_batch_size": "8",\n"fp16": {"enabled": false, "hysteresis": 2},\n"optmizer": {}\n}'
    )
    assert heads(told) == ["ds1.json:2:1:", "ds1.json:3:1:", "ds1.json:5:1:", "ds1.json:"]
    assert "what stands in line 4 has no effect" in told


def test_a_place_is_said_once() -> None:
    told = screen('{"train_batch_size": 8,\n "ofload": 1,\n "ofload": 1}')
    assert told.count("ds1.json:3:2") == 2, "two findings, each with its place before it"
    assert "line 3 and says 1" in told


def test_both_twins_are_marked() -> None:
    lines = screen('{\n  "train_batch_size": 8,\n  "train_batch_size": 16\n}').splitlines()
    assert lines[1:5] == [
        '  2 |   "train_batch_size": 8,',
        "    |   ------------------",
        '  3 |   "train_batch_size": 16',
        "    |   ^^^^^^^^^^^^^^^^^^",
    ]


def test_an_equation_shows_all_its_sides() -> None:
    told = screen('{"train_batch_size": 9,\n"train_micro_batch_size_per_gpu": 2\n}', ranks=2)
    assert '1 | {"train_batch_size": 9,' in told
    assert '2 | "train_micro_batch_size_per_gpu": 2' in told


def test_a_long_line_is_cut_around_its_mark() -> None:
    line = json.dumps({f"key{n}": n for n in range(200)})
    shown, under = marked(line, Mark(1, line.index('"key150"') + 1))
    assert len(shown) <= 80
    assert shown[under.index("^") :].startswith('"key150"')
    assert under.strip() == "^" * len('"key150"')
    assert (shown[0], shown[-1]) == ("\u2026", "\u2026")


def test_a_mark_stands_under_its_key_whatever_is_before_it() -> None:
    for before in ("\t\t", "\u4e2d\u6587 ", "e\u0301 ", "\x1b[31m", "\u202e", "token=abcdefghijklmnop, "):
        shown, under = marked(f'{before}"key": 1', Mark(1, len(before) + 1))
        columns = sum(
            0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) == "W" else 1
            for c in shown[: shown.index('"key"')]
        )
        assert under.index("^") == columns, before
        assert not {"\x1b", "\u202e"} & set(shown)
        assert "abcdefgh" not in shown


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.integers(1, 5), st.integers(1, 320), st.integers(1, 130), st.booleans())
def test_no_text_breaks_an_excerpt(text: str, line: int, column: int, width: int, word: bool) -> None:
    page = Page(width, color=False, unicode=True)
    add_excerpt(page, lines_of(text), [Mark(line, column, word), Mark(line, column + 3, word, False)])
    assert all(shown.isprintable() for shown in page.lines)


def test_a_sound_file_is_one_line_and_what_it_was_judged_for() -> None:
    told = screen('{"train_micro_batch_size_per_gpu": 1}', ranks=2, width=200).splitlines()
    assert told[0].startswith("ds1.json: nothing is wrong (")
    assert "2 ranks" in told[0]
    assert told[1].startswith("To judge more, give --snapshot FILE")
    assert len(told) == 2


def test_several_files_have_a_line_each_and_one_sum() -> None:
    told = screen('{"train_batch_size": 8}', '{"train_batch_size": "8"}', '{"train_batch_size": 0}')
    assert "ds1.json: nothing is wrong" in told
    assert "2 errors in 2 of 3 files. --fix mends 1 of them." in told
    assert told.count("udged for") == 1


def test_a_broken_file_asks_for_nothing_and_lists_nothing_undecided() -> None:
    told = screen('{"train_batch_size": 8')
    assert "To judge more" not in told
    assert "Not decided" not in told


def test_verbose_has_evidence_and_what_passed() -> None:
    told = screen('{"train_batch_size": "8"}', verbosity=1)
    assert "cause: config-number-as-string, proof: declared" in told
    assert "CFG002   No key of the config stands twice" in told
    assert "CFG008   nothing is offloaded to NVMe" in told


@pytest.mark.parametrize("unicode", [True, False])
def test_a_plain_terminal_gets_plain_characters(unicode: bool) -> None:
    line = json.dumps({f"key{n}": n for n in range(200)} | {"train_batch_size": "8"})
    assert screen(line, unicode=unicode).isascii() is not unicode
