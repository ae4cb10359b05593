"""What `explain` says about a check and about a cause."""

import pytest

from dsdoctor.render.explanation import Unknown, explain
from dsdoctor.render.plain import clean, one_line
from tests.render.reports import failing, finding, knowledge, passing

KNOWLEDGE = knowledge(failing("CUDA001", finding(), title="The CUDA compiler fits torch"), passing)


def test_a_check_in_any_case_tells_title_reason_cause_and_mend() -> None:
    shown = explain(KNOWLEDGE, "cuda001")
    assert shown.startswith("CUDA001: The CUDA compiler fits torch\n\nSay why.\n")
    assert "severity error; looks at Host" in shown
    assert "a failure takes away: gpu" in shown
    assert "cause nvcc-missing: The CUDA compiler is missing" in shown
    assert "  mend: Install nvcc." in shown


def test_a_cause_tells_who_sees_it_and_what_it_explains() -> None:
    shown = explain(KNOWLEDGE, "NVCC-missing")
    assert shown.startswith("nvcc-missing: The CUDA compiler is missing\n\nWhy: Ops are compiled by nvcc")
    assert "layer toolkit; seen by CUDA001" in shown
    assert "only its symptoms: op-build-failed" in shown
    assert "public reports: DeepSpeed#1" in shown
    assert "seen by no check yet" in explain(KNOWLEDGE, "op-build-failed")


@pytest.mark.parametrize(("name", "near"), [("CUDA01", "CUDA001"), ("nvcc-mising", "nvcc-missing")])
def test_an_unknown_name_gets_the_nearest(name: str, near: str) -> None:
    with pytest.raises(Unknown, match=f"{name} is no check and no cause; did you mean {near}"):
        explain(KNOWLEDGE, name)


def test_lines_keep_to_the_width() -> None:
    assert max(len(line) for line in explain(KNOWLEDGE, "nvcc-missing", width=50).splitlines()) <= 50


@pytest.mark.parametrize(
    ("dirty", "tidy"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\x08c\x7f", "abc"),
        ("\u202egnp\u2069", "gnp"),
        ("caf\u00e9 \u4e2d", "caf\u00e9 \u4e2d"),
        ("bad \udcff byte", "bad  byte"),
    ],
)
def test_clean_takes_away_what_steers_a_terminal(dirty: str, tidy: str) -> None:
    assert clean(dirty) == tidy


def test_clean_keeps_lines_and_one_line_joins_them() -> None:
    assert clean("a\n\tb") == "a\n\tb"
    assert one_line("a\n\t b\n") == "a b"
