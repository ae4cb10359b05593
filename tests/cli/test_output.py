"""Files, widths, colours and encodings."""

import json
from pathlib import Path

import pytest

from tests.cli.program import broken, dsdoctor, record


def shown(tmp_path: Path, *args: object, **variables: str) -> str:
    return dsdoctor("check", "--snapshot", record(tmp_path, broken()), *args, cwd=tmp_path, **variables).stdout


def test_a_pipe_gets_no_colour_unless_forced(tmp_path: Path) -> None:
    assert "\x1b" not in shown(tmp_path)
    assert "\x1b[31;1m[ERROR]" in shown(tmp_path, FORCE_COLOR="1")
    assert "\x1b[31;1m[ERROR]" in shown(tmp_path, CLICOLOR_FORCE="1")
    assert "\x1b" not in shown(tmp_path, FORCE_COLOR="0")
    assert "\x1b" not in shown(tmp_path, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b" not in shown(tmp_path, TERM="dumb")


def test_escapes_in_the_facts_do_not_reach_the_terminal(tmp_path: Path) -> None:
    for variables in ({}, {"FORCE_COLOR": "1"}):
        text = shown(tmp_path, "-v", **variables)
        assert "Found no NVIDIA driver on your system" in " ".join(text.split())
        assert "\x1b]" not in text
        assert "owned" not in text


@pytest.mark.parametrize(("columns", "limit"), [("60", 60), ("500", 120), ("junk", 100), ("0", 100), ("-5", 100)])
def test_columns_sets_the_width_of_prose(tmp_path: Path, columns: str, limit: int) -> None:
    lines = shown(tmp_path, COLUMNS=columns).splitlines()
    prose = [line for line in lines if not line.startswith("       ")]  # commands stay whole
    assert max(map(len, prose)) <= limit
    assert max(map(len, lines)) > 50


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_a_stdout_that_knows_few_characters_is_enough(tmp_path: Path, encoding: str) -> None:
    text = shown(tmp_path, "-v", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert text.startswith("Ubuntu")
    if encoding == "ascii":
        assert text.isascii()
        assert "\\u2022" not in text
    assert "\\u2022" not in shown(tmp_path, "-v", "-o", "-", PYTHONIOENCODING="ascii", PYTHONUTF8="0")


def test_output_goes_to_the_file_and_nothing_to_stdout(tmp_path: Path) -> None:
    for form in ("json", "html"):
        assert shown(tmp_path, "--format", form, "-o", "report", FORCE_COLOR="1") == ""
    assert (tmp_path / "report").read_text("utf-8").startswith("<!doctype html>")


def test_a_text_file_has_no_colour_even_when_forced(tmp_path: Path) -> None:
    shown(tmp_path, "-o", "report.txt", FORCE_COLOR="1")
    assert "\x1b" not in (tmp_path / "report.txt").read_text("utf-8")


def test_output_dash_is_stdout(tmp_path: Path) -> None:
    assert json.loads(shown(tmp_path, "--json", "-o", "-"))["schema_version"] == 1
    assert not (tmp_path / "-").exists()
