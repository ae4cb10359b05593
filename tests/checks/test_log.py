"""LOG001 and LOG002: what the lines of a log name, and what they leave open."""

from typing import Any

from dsdoctor_checks.log import end_is_explained, no_known_failure

from dsdoctor.facts import Log, LogException, LogExit, LogMatch, LogPlace
from dsdoctor.model import Severity, Status
from dsdoctor.testing import machine, verdict


def place(line: int, text: str = "", rank: int | None = None) -> LogPlace:
    return LogPlace(file="train.log", line=line, text=text, rank=rank)


def match(line: int, cause: str | None = "ninja-missing", role: str = "root", **changes: Any) -> LogMatch:
    fields: dict[str, Any] = {
        "signature": f"known-{line}",
        "role": role,
        "cause": cause if role == "root" else None,
        "place": place(line, "ninja: not found", 1),
        "reason": "ninja is not there",
        "remedy": {"order": "Install ninja {0}", "pip": ["ninja"]},
        "groups": ("now",),
    }
    return LogMatch(**{**fields, **changes})


def test_a_line_that_names_a_cause_is_a_finding_with_its_place_and_its_command() -> None:
    found = verdict(no_known_failure, machine(Log(matches=(match(7),))))
    (finding,) = found.findings
    assert (found.severity, finding.cause) == (Severity.ERROR, "ninja-missing")
    assert "train.log:7, rank 1" in finding.message
    assert finding.evidence[0].where == "train.log:7"
    assert finding.remedy is not None
    assert finding.remedy.order == "Install ninja now"
    assert "pip install" in finding.remedy.commands[0]


def test_of_several_lines_with_one_cause_the_surest_speaks_and_all_are_evidence() -> None:
    log = Log(matches=(match(3, weight=4, reason="perhaps"), match(9, weight=9, reason="surely")))
    (finding,) = verdict(no_known_failure, machine(log)).findings
    assert finding.message.startswith("surely")
    assert [evidence.where for evidence in finding.evidence] == ["train.log:3", "train.log:9"]


def test_masks_collateral_and_noise_name_nothing() -> None:
    log = Log(matches=tuple(match(n, role=role) for n, role in enumerate(("mask", "collateral", "harmless"))))
    assert verdict(no_known_failure, machine(log)).status is Status.PASSED


def test_last_words_with_one_usual_cause_name_it_as_a_possibility() -> None:
    log = Log(matches=(match(4, role="mask", hides=("rc-minus-9-host-oom",)),))
    found = verdict(end_is_explained, machine(log))
    assert (found.severity, found.findings[0].cause) == (Severity.WARNING, "rc-minus-9-host-oom")
    assert found.findings[0].message.startswith("possibly")


def test_last_words_that_may_hide_several_causes_are_no_guess() -> None:
    log = Log(matches=(match(4, role="mask", hides=("ninja-missing", "rc-minus-9-host-oom")),))
    found = verdict(end_is_explained, machine(log))
    assert (found.status, found.findings) == (Status.UNKNOWN, ())
    assert "not recognised" in str(found.reason)


def test_an_unknown_exception_is_told_and_not_guessed() -> None:
    raised = LogException(place=place(12), type="my.Error", message="seven")
    found = verdict(end_is_explained, machine(Log(exceptions=(raised,))))
    assert found.status is Status.UNKNOWN
    assert "my.Error: seven (train.log:12)" in str(found.reason)


def test_an_end_without_words_is_told_by_its_code() -> None:
    ended = LogExit(place=place(2, "exits with return code = 77"), code=77)
    assert "return code = 77 (train.log:2)" in str(verdict(end_is_explained, machine(Log(exits=(ended,)))).reason)


def test_a_quiet_log_leaves_nothing_open() -> None:
    assert verdict(end_is_explained, machine(Log())).status is Status.PASSED
    assert verdict(end_is_explained, machine(Log(matches=(match(1),)))).status is Status.NOT_APPLICABLE
