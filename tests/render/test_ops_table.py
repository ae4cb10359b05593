"""The table of ops: where ds_report errs, each reason once, at any width, and nothing of a machine's that acts."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.model import OpVerdict, Proof, Report
from dsdoctor.render import ops, text
from dsdoctor.testing import load_machine
from tests.render.reports import failing, finding, report

MACHINES = sorted(p.parent for p in (Path(__file__).parents[2] / "fixtures/ops").glob("*/facts.json"))
KNOWLEDGE = load_knowledge()
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b5m[red]x[/red]\n::error::fake \ud800"


def op(name: str = "fused_adam", state: str = "builds", said: str | None = "okay", **rest: Any) -> OpVerdict:
    differs = (said, state) in (("okay", "fails"), ("installed", "fails"), ("no", "builds"))
    return OpVerdict(name=name, state=state, said=said, differs=differs, **rest)  # type: ignore[arg-type]


def of(*verdicts: OpVerdict) -> Report:
    """A report with these ops, and with one cause that has a title: nvcc-missing."""
    return msgspec.structs.replace(report(failing("CUDA001", finding())), ops=verdicts)


def recorded(folder: Path) -> Report:
    return diagnose(load_machine(folder), KNOWLEDGE)


def row(shown: str, name: str) -> str:
    return next(line for line in shown.splitlines() if line[2:].split()[:1] == [name])


def test_marks_are_where_ds_report_errs_and_nowhere_else() -> None:
    verdicts = (
        op("one", "fails", because="why"),
        op("two", "builds", "no"),
        op("three"),
        op("four", "fails", "no", because="why"),
        op("five", "unknown", because="why"),
        op("six", "fails", "installed", because="why"),
    )
    shown = ops.render(of(*verdicts), width=80)
    marked = {line.split()[1] for line in shown.splitlines() if line.startswith("* ")}
    assert marked == {"one", "two", "six"}
    assert "ds_report is wrong about 3 of them" in shown


def test_a_row_says_both_words_the_proof_and_the_seconds() -> None:
    verdicts = (op("quick", proof=Proof.RAN, seconds=30.94), op("gone", "fails", "no", because="why"))
    shown = ops.render(of(*verdicts), width=80)
    assert row(shown, "quick").split() == ["quick", "[OKAY]", "builds", "ran", "30.9"]
    assert row(shown, "gone").split() == ["gone", "[NO]", "fails", "declared"]


def test_an_unknown_op_has_no_proof_and_a_reason() -> None:
    shown = ops.render(of(op("dim", "unknown", because="torch was not imported")), width=80)
    assert row(shown, "dim").split() == ["dim", "[OKAY]", "unknown"]
    assert "torch was not imported" in shown


def test_columns_that_would_be_empty_are_not_there() -> None:
    header = ops.render(of(op(said=None)), width=80).splitlines()[0].split()
    assert header == ["op", "dsdoctor", "proof"]


def test_one_cause_is_told_once_with_its_title_and_all_its_ops() -> None:
    names = [f"op{i}" for i in range(9)]
    sick = [op(name, "fails", cause="nvcc-missing", because=f"{name} found no nvcc", features=("A",)) for name in names]
    shown = ops.render(of(*sick), width=200)
    assert shown.count("The CUDA compiler is missing (cause: nvcc-missing)") == 1
    assert ", ".join(names) in shown
    assert "seen: op0 found no nvcc" in shown
    assert "op1 found no nvcc" not in shown


def test_without_a_named_cause_the_reason_stands_for_itself() -> None:
    shown = ops.render(of(op(state="fails", cause="op-build-fails", because="error: no moon")), width=80)
    assert "error: no moon" in shown
    assert "seen:" not in shown


def test_few_ops_say_what_uses_them() -> None:
    shown = ops.render(of(op("dc", "fails", because="why", features=("compile.deepcompile",))), width=80)
    assert "dc (for compile.deepcompile)" in shown


def test_what_is_needed_here_says_what_asks() -> None:
    place = "optimizer.type = AdamW (ds_config.json:4:5)"
    shown = ops.render(of(op(wanted=place), op("dc", "fails", because="why")), width=80)
    section = shown.split("Needed here\n")[1].split("\n\n")[0]
    assert section.split() == ["fused_adam", "builds", *place.split()]


@pytest.mark.parametrize(
    ("verdicts", "step"),
    [
        ((op(state="fails", wanted="x", cause="nvcc-missing", because="y"),), "`dsdoctor check`"),
        ((op(wanted="x"), op("dc", "fails", because="y")), "`dsdoctor ops --build fused_adam`"),
        ((op(wanted="x", proof=Proof.RAN),), "was built and loaded"),
        ((op("dc", "fails", cause="nvcc-missing", because="y"),), "`dsdoctor explain nvcc-missing`"),
    ],
)
def test_the_last_line_says_what_to_do(verdicts: tuple[OpVerdict, ...], step: str) -> None:
    assert step in ops.render(of(*verdicts), width=200).splitlines()[-1]


def test_logs_and_notes_are_shown_once() -> None:
    note = "DeepSpeed 0.20.0 is newer than dsdoctor's table"
    verdicts = (
        op("one", note=note),
        op("two", note=note, state="fails", because="why", log="logs/two.txt"),
        op("three", because="it was compiled when DeepSpeed was installed", said="installed"),
    )
    shown = ops.render(of(*verdicts), width=200)
    assert shown.count(note) == 1
    assert f"{note}: one, two" in shown
    assert "log: logs/two.txt" in shown
    assert "installed: three" in shown
    assert "[YES]" in row(shown, "three")


def test_the_grades_that_are_used_are_explained() -> None:
    shown = ops.render(of(op(proof=Proof.RAN), op("two", proof=Proof.PROBED)), width=200)
    assert "ran = " in shown
    assert "probed = " in shown
    assert "declared = " not in shown


def test_no_op_is_one_sentence() -> None:
    assert ops.render(of(), width=80).startswith("No op is known here")


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_recorded_machines_keep_to_the_width(folder: Path, width: int) -> None:
    shown = ops.render(recorded(folder), width=width)
    long = [line for line in shown.splitlines() if len(line) > width]
    assert [line for line in long if len(line.split()) > 1] == [], "only a path of its own line may be longer"
    for name in (o.name for o in recorded(folder).ops):
        assert row(shown, name)


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_colour_changes_no_word(folder: Path) -> None:
    coloured = ops.render(recorded(folder), width=80, color=True)
    assert "\x1b[31mfails" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == ops.render(recorded(folder), width=80)


@pytest.mark.parametrize("state", ["builds", "fails", "unknown"])
def test_text_of_a_machine_neither_escapes_nor_breaks_a_line(state: str) -> None:
    rest: dict[str, Any] = {
        "because": HOSTILE,
        "features": (HOSTILE,),
        "wanted": HOSTILE,
        "note": HOSTILE,
        "log": HOSTILE,
    }
    for name in ("fused_adam", HOSTILE):
        shown = ops.render(of(op(name, state, cause=HOSTILE, **rest)), width=80)
        for bad in ("\x1b", "\x07", "\x9b", "\ud800", "\n::error::", "owned"):
            assert bad not in shown, repr(bad)
        assert "[red]x[/red]" in shown


def test_ascii_terminals_get_ascii() -> None:
    assert ops.render(of(op(state="fails", because="why")), unicode=False).isascii()


def test_the_report_says_in_one_line_that_ds_report_errs() -> None:
    verdicts = tuple(op(f"op{i}", "fails", because="why") for i in range(6))
    shown = text.render(of(*verdicts, op("fine")), width=120)
    assert "ds_report is wrong about 6 of 7 ops (op0, op1, op2, op3, ...): see `dsdoctor ops`." in shown
    assert "ds_report is wrong" not in text.render(of(op("fine")), width=120)
    assert "ds_report is wrong" not in text.render(of(*verdicts), width=120, verbosity=-1)
