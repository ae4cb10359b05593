"""The pure part of an examination: a snapshot and checks give verdicts, causes, a plan, and what can run: the report."""

from collections.abc import Iterable, Sequence
from typing import Literal

from dsdoctor import __version__, registry
from dsdoctor.facts import Purpose, Snapshot
from dsdoctor.judge import judge
from dsdoctor.knowledge import Knowledge
from dsdoctor.model import Capability, Check, Counts, OpVerdict, Platform, Report, Severity, Status, Verdict
from dsdoctor.plan import counted_findings, make_plan, rank_causes
from dsdoctor.request import ExaminationError, Request

Outcome = Literal["healthy", "warnings", "problems", "incomplete"]


def diagnose(snapshot: Snapshot, knowledge: Knowledge, request: Request = Request()) -> Report:  # noqa: B008
    """The pure part: verdicts, capabilities, causes and plan of a snapshot."""
    snapshot = snapshot.replace(purpose=_purpose(snapshot, knowledge, request))
    checks = select_checks(knowledge, request)
    settings = request.settings
    verdicts = judge(checks, snapshot, settings.severities, settings.ignored)
    causes = rank_causes(verdicts, knowledge.causes)
    story = None
    if snapshot.log is not None:
        from dsdoctor.triage import tell, weigh

        causes = weigh(causes, verdicts, snapshot.log)
        story = tell(snapshot.log, causes)
    plan = make_plan(causes, verdicts, knowledge.causes)
    ops, capabilities = ((), ()) if request.only else _abilities(snapshot, knowledge, checks, verdicts)
    counts = count(verdicts)
    describe = knowledge.describe_platform
    return Report(
        tool_version=__version__,
        outcome=_outcome(counts, verdicts),
        summary=_summary(
            counts, verdicts, [c.title for c in causes if c.explained_by is None and c.severity is Severity.ERROR]
        ),
        patient=_patient(snapshot),
        platform=describe(snapshot) if describe else Platform(headline="unknown platform"),
        counts=counts,
        facts=snapshot,
        verdicts=verdicts,
        capabilities=capabilities,
        ops=ops,
        causes=causes,
        plan=plan,
        story=story,
        problems=knowledge.problems,
    )


def _abilities(
    snapshot: Snapshot, knowledge: Knowledge, checks: Sequence[Check], verdicts: Sequence[Verdict]
) -> tuple[tuple[OpVerdict, ...], tuple[Capability, ...]]:
    """What will build and what can run, when all checks were made."""
    from dsdoctor.capabilities import assess
    from dsdoctor.op_verdicts import judge_ops

    ops = judge_ops(knowledge.ops(snapshot) if knowledge.ops else (), checks, verdicts, snapshot)
    return ops, assess(knowledge.capabilities, checks, verdicts, snapshot, ops)


def select_checks(knowledge: Knowledge, request: Request) -> tuple[Check, ...]:
    """The checks that the request asks for. Raises ExaminationError for an unknown code or family."""
    try:
        chosen = registry.select(knowledge.checks, request.only, request.skip)
    except registry.UnknownSelection as error:
        raise ExaminationError(str(error)) from None
    if not chosen:
        raise ExaminationError("--only and --skip together leave no check")
    return chosen


def _purpose(snapshot: Snapshot, knowledge: Knowledge, request: Request) -> Purpose | None:
    wanted = request.purpose or request.settings.purpose
    if wanted and wanted != "auto":
        return Purpose(name=wanted, because="--purpose" if request.purpose else "dsdoctor's settings", guessed=False)  # type: ignore[arg-type]
    if snapshot.purpose is not None:
        return snapshot.purpose
    return knowledge.guess_purpose(snapshot) if knowledge.guess_purpose else None


def _patient(snapshot: Snapshot) -> str:
    python = snapshot.python
    if python is None:
        return f"no interpreter ({snapshot.origin})"
    kind = {"system": "no virtual environment", "embedded": "embedded"}.get(python.environment, python.environment)
    return f"{python.executable} (Python {python.version}, {kind}; {python.chosen_because})"


def count(verdicts: Iterable[Verdict]) -> Counts:
    verdicts = tuple(verdicts)
    severities = [severity for severity, _, _ in counted_findings(verdicts)]
    by_status = {s.value: sum(v.status is s for v in verdicts) for s in Status}
    by_severity = {f"{s.value}s": sum(found is s for found in severities) for s in Severity}
    return Counts(**by_status, **by_severity)


def _outcome(counts: Counts, verdicts: Iterable[Verdict]) -> Outcome:
    if counts.errors:
        return "problems"
    if counts.warnings:
        return "warnings"
    undecided = any(v.status in (Status.UNKNOWN, Status.CRASHED) and v.severity is Severity.ERROR for v in verdicts)
    return "incomplete" if undecided or not counts.passed else "healthy"


def _summary(counts: Counts, verdicts: Iterable[Verdict], roots: list[str]) -> str:
    if counts.errors:
        plural = "s" if counts.errors > 1 else ""
        named = f"{roots[0]}" + (f" (and {len(roots) - 1} more)" if len(roots) > 1 else "") if roots else "see below"
        return f"{counts.errors} error{plural}, {counts.warnings} warning{'s' if counts.warnings != 1 else ''}. Mend first: {named}."
    if counts.warnings:
        return f"No error, {counts.warnings} warning{'s' if counts.warnings != 1 else ''}."
    unknown = counts.unknown + counts.crashed
    if _outcome(counts, verdicts) == "incomplete":
        return f"Nothing wrong in what could be looked at, but {unknown} checks could not be decided."
    return f"Nothing is wrong: {counts.passed} checks passed."
