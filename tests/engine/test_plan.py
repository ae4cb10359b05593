"""Findings become few causes, roots first, and steps that name what they clear."""

from dsdoctor.knowledge import CauseInfo
from dsdoctor.model import Finding, Remedy, Severity, Status, Verdict
from dsdoctor.plan import make_plan, rank_causes

TABLE = {
    "driver-too-old": CauseInfo(title="The driver is too old", layer="driver", why="w", remedy="Update the driver", explains=("no-gpu",)),
    "no-gpu": CauseInfo(title="No GPU is usable", layer="gpu", why="w", remedy="See the driver"),
    "ninja-missing": CauseInfo(title="ninja is missing", layer="python", why="w", remedy="Install ninja"),
    "shm-small": CauseInfo(title="Small /dev/shm", layer="memory", why="w", remedy="Enlarge it"),
}  # fmt: skip


def failed(
    code: str,
    *causes: str,
    severity: Severity = Severity.ERROR,
    commands: tuple[str, ...] = (),
    ignored: str | None = None,
) -> Verdict:
    findings = tuple(
        Finding(
            message=f"{cause} was found",
            cause=cause,
            remedy=Remedy(order=f"Mend {cause}", commands=commands) if commands else None,
        )
        for cause in causes
    )
    return Verdict(
        code=code, title="t", family="T", status=Status.FAILED, severity=severity, findings=findings, ignored=ignored
    )


def test_symptoms_hang_under_their_root_and_get_no_step() -> None:
    verdicts = [failed("GPU002", "no-gpu"), failed("GPU001", "driver-too-old")]
    causes = rank_causes(verdicts, TABLE)
    assert [c.cause for c in causes] == ["driver-too-old", "no-gpu"]
    assert causes[1].explained_by == "driver-too-old"
    plan = make_plan(causes, verdicts, TABLE)
    assert [(s.cause, s.clears) for s in plan] == [("driver-too-old", ("GPU001", "GPU002"))]


def test_a_mere_warning_explains_no_error() -> None:
    verdicts = [failed("GPU002", "no-gpu"), failed("GPU001", "driver-too-old", severity=Severity.WARNING)]
    assert rank_causes(verdicts, TABLE)[0].cause == "no-gpu"


def test_errors_come_before_warnings_and_low_layers_before_high_ones() -> None:
    verdicts = [
        failed("MEM001", "shm-small", severity=Severity.WARNING),
        failed("PY001", "ninja-missing"),
        failed("GPU001", "driver-too-old"),
    ]
    assert [c.cause for c in rank_causes(verdicts, TABLE)] == ["driver-too-old", "ninja-missing", "shm-small"]


def test_one_cause_seen_by_two_checks_is_one_step() -> None:
    verdicts = [
        failed("CXX001", "ninja-missing", commands=("pip install ninja",)),
        failed("OPS001", "ninja-missing", commands=("pip install ninja",)),
    ]
    plan = make_plan(rank_causes(verdicts, TABLE), verdicts, TABLE)
    assert len(plan) == 1
    assert plan[0].commands == ("pip install ninja",)
    assert plan[0].clears == ("CXX001", "OPS001")


def test_causes_mended_by_the_same_commands_are_one_step() -> None:
    verdicts = [
        failed("A001", "ninja-missing", commands=("pip install x",)),
        failed("B001", "no-gpu", commands=("pip install x",)),
    ]
    plan = make_plan(rank_causes(verdicts, TABLE), verdicts, TABLE)
    assert [s.number for s in plan] == [1]
    assert set(plan[0].clears) == {"A001", "B001"}


def test_ignored_findings_and_notes_ask_for_nothing() -> None:
    verdicts = [failed("A001", "ninja-missing", ignored="known"), failed("B001", "no-gpu", severity=Severity.INFO)]
    causes = rank_causes(verdicts, TABLE)
    assert [c.cause for c in causes] == ["no-gpu"]
    assert make_plan(causes, verdicts, TABLE) == ()


def test_a_finding_without_remedy_falls_back_to_the_table_and_is_manual() -> None:
    verdicts = [failed("GPU001", "driver-too-old")]
    step = make_plan(rank_causes(verdicts, TABLE), verdicts, TABLE)[0]
    assert (step.order, step.safety, step.commands) == ("Update the driver", "manual", ())


def test_causes_that_explain_each_other_do_not_vanish() -> None:
    table = {
        "a": CauseInfo(title="a", layer="torch", why="w", remedy="r", explains=("b",)),
        "b": CauseInfo(title="b", layer="ops", why="w", remedy="r", explains=("a",)),
    }
    verdicts = [failed("A001", "a"), failed("B001", "b")]
    assert [c.cause for c in rank_causes(verdicts, table) if c.explained_by is None] == ["a"]
