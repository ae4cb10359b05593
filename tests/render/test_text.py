"""The report for people, at any width, coloured or not, and what it does to hostile text."""

import pytest

from dsdoctor.render import text
from tests.render.reports import INSTALL, VERIFY, failing, finding, hostile, mixed, passing, report


@pytest.mark.parametrize("width", [40, 60, 80])
def test_commands_stand_whole_on_one_line_and_prose_keeps_to_the_width(width: int) -> None:
    lines = text.render(mixed(), width=width, verbosity=1).splitlines()
    assert [line.strip() for line in lines].count(INSTALL) == 1
    assert [line.strip() for line in lines].count(VERIFY) == 1
    assert [line for line in lines if len(line) > width and line.strip() not in (INSTALL, VERIFY)] == []


def test_first_lines_name_machine_patient_and_purpose() -> None:
    lines = text.render(mixed(), width=100).splitlines()
    assert lines[:3] == ["Ubuntu: 1 x NVIDIA H200", "  can:     train", "  cannot:  fly"]
    assert lines[3].startswith("patient: /home/user/env/bin/python (Python 3.12.3")
    assert lines[4].startswith("purpose: single-gpu (guessed: ")
    assert lines[6] == "1 error, 1 warning. Mend first: The CUDA compiler is missing."


def test_findings_come_worst_first() -> None:
    shown = text.render(mixed(), width=100)
    assert shown.index("[ERROR] CUDA001 CUDA_HOME is") < shown.index("[WARNING] CFG001") < shown.index("[INFO] MEM001")


def test_colour_is_there_only_when_asked_for() -> None:
    assert "\x1b" not in text.render(mixed(), color=False, verbosity=1)
    coloured = text.render(mixed(), color=True)
    assert "\x1b[31;1m[ERROR] CUDA001 \x1b[0m" in coloured
    assert f"\x1b[36m{INSTALL}\x1b[0m" in coloured


def test_without_unicode_the_page_is_ascii() -> None:
    assert text.render(mixed(), unicode=False, verbosity=1).isascii()
    assert "\u2022" in text.render(mixed(), unicode=True, verbosity=1)


def test_escapes_of_the_machine_do_not_reach_the_terminal_and_markup_stays_text() -> None:
    for color in (False, True):
        shown = text.render(hostile(), width=100, color=color, verbosity=1)
        for bad in ("\x1b]", "\x1b[31mred", "\x1b[2J", "\x07", "\x9b", "\x00", "\u202e", "\ud800", "owned"):
            assert bad not in shown
        assert "[red]x[/red]" in shown
    assert "\x1b" not in text.render(hostile(), verbosity=1)


def test_a_message_of_several_lines_stays_one_finding() -> None:
    assert "\n::error::fake" not in text.render(hostile(), width=60)


def test_quiet_keeps_only_summary_and_findings() -> None:
    shown = text.render(mixed(), width=100, verbosity=-1)
    assert shown.startswith("1 error, 1 warning.")
    assert "[ERROR] CUDA001" in shown
    assert "[WARNING] CFG001" in shown
    for word in ("[INFO]", "patient:", "Plan", "What can I run", INSTALL):
        assert word not in shown


def test_verbose_adds_evidence_proof_and_passed_checks() -> None:
    normal, verbose = (text.render(mixed(), width=100, verbosity=v) for v in (0, 1))
    for line in (
        "environment: CUDA_HOME=/usr/local/cuda-11.8",
        "    cause: nvcc-missing, proof: declared",
        "PY001    Python is there [declared]",
        "NET001   there is one node",
    ):
        assert line in verbose
        assert line not in normal


def test_unknown_checks_are_grouped_by_reason_and_a_crash_is_called_a_defect() -> None:
    shown = text.render(mixed(), width=100)
    assert "nvidia-smi gave no answer: GPU001, GPU002" in shown
    assert "a defect of dsdoctor: ZeroDivisionError: by zero: RUN001" in shown


def test_ignored_findings_are_named_with_the_reason_and_not_counted() -> None:
    shown = text.render(mixed({"CUDA001": "we build elsewhere"}), width=120)
    section = shown[shown.index("Ignored by your settings") :]
    assert "CUDA001 CUDA_HOME is /usr/local/cuda-11.8" in section
    assert "(reason: we build elsewhere)" in section
    assert "[ERROR]" not in shown
    assert "No error, 1 warning." in shown
    assert INSTALL not in shown


def test_capabilities_name_what_blocks_them_wide_and_narrow() -> None:
    assert "NVMe offload (ZeRO-Infinity)  blocked        by CUDA001" in text.render(mixed(), width=80)
    narrow = " ".join(text.render(mixed(), width=40).split())
    assert "blocked: NVMe offload (ZeRO-Infinity) (by CUDA001)" in narrow


def test_plan_tells_command_verify_and_what_it_clears() -> None:
    plan = text.render(mixed(), width=100).partition("\nPlan\n")[2]
    assert plan.startswith("  1. Install the CUDA compiler 12.8\n     why: CUDA_HOME is")
    assert f"     then check with:\n       {VERIFY}\n     clears CUDA001\n" in plan
    assert "2. Mend: config-bad [by hand]" in plan
    assert plan.endswith("\nNext: step 1, then run `dsdoctor check` again (`dsdoctor explain CUDA001` tells more).\n")


def test_healthy_machine_says_so() -> None:
    shown = text.render(report(passing))
    assert "Nothing is wrong: 1 checks passed." in shown
    assert "Nothing to mend." in shown
    assert "[ERROR]" not in shown


def test_a_command_of_several_lines_keeps_its_indent() -> None:
    from dsdoctor.model import Remedy

    remedy = Remedy(order="Do", commands=("cat <<X\nhello\nX",))
    assert "       cat <<X\n       hello\n       X\n" in text.render(report(failing("DS001", finding(remedy=remedy))))


def test_plugins_that_are_missing_are_named() -> None:
    import msgspec

    shown = text.render(msgspec.structs.replace(mixed(), problems=("plug-in x could not be loaded",), interrupted=True))
    assert "Left out\n  \u2022 plug-in x could not be loaded" in shown
    assert "Interrupted: this is what was known by then." in shown
