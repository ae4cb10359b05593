"""The only place where the arrows are wired: probes or readers -> snapshot -> verdicts -> capabilities and plan -> report."""

import difflib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from dsdoctor import __version__, registry
from dsdoctor.capabilities import assess
from dsdoctor.events import Event, Observer, nobody
from dsdoctor.facts import Fact, Purpose, SmokeRun, Snapshot, Unavailable
from dsdoctor.facts.snapshot import SECTIONS, now
from dsdoctor.incident import beside, read_incident
from dsdoctor.judge import judge
from dsdoctor.knowledge import Knowledge
from dsdoctor.model import Check, Counts, Platform, Report, Severity, Status, Verdict
from dsdoctor.op_verdicts import judge_ops
from dsdoctor.plan import counted_findings, make_plan, rank_causes
from dsdoctor.probes import ProbeFailed
from dsdoctor.recorded import read_ds_report, read_snapshot, with_config
from dsdoctor.request import ExaminationError, Request
from dsdoctor.smoke.order import Job, SmokeOrder, UnknownRecipe, check_names, jobs
from dsdoctor.triage import tell, weigh

if TYPE_CHECKING:
    from dsdoctor.probes.op_builds import Order

Outcome = Literal["healthy", "warnings", "problems", "incomplete"]
__all__ = [
    "ExaminationError",
    "InterruptedExamination",
    "Request",
    "diagnose",
    "examine",
    "recheck",
    "take_snapshot",
    "triage",
]


class InterruptedExamination(KeyboardInterrupt):
    """Ctrl-C while facts were gathered; ``snapshot`` holds those known by then."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


def examine(request: Request, observe: Observer = nobody) -> Report:
    """Examine and judge. Ctrl-C gives a report of what was known by then, marked ``interrupted``. Raises ExaminationError."""
    from concurrent.futures import ThreadPoolExecutor

    started = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        started_up = threading.Event()  # the patient comes first: loading takes the interpreter from its probe
        loading = pool.submit(lambda: (started_up.wait(1.0), load_knowledge())[1])
        if request.smoke is not None:
            _check_recipes(request.smoke)
        if request.only or request.skip:
            started_up.set()
            select_checks(loading.result(), request)  # a wrong --only must not cost an examination

        def watch(event: Event) -> None:
            if event.kind == "probe-ended" and event.name == "python":
                started_up.set()
            observe(event)

        interrupted = False
        try:
            snapshot = take_snapshot(request, watch)
        except InterruptedExamination as stop:
            snapshot, interrupted = stop.snapshot, True
        started_up.set()
        knowledge = loading.result()
    observe(Event(kind="judging", name="checks"))
    report = diagnose(snapshot, knowledge, request)
    report = msgspec.structs.replace(report, interrupted=interrupted, seconds=round(time.monotonic() - started, 2))
    return report if request.smoke is None or interrupted else run_smoke(report, request.smoke, request, observe)


def triage(request: Request, observe: Observer = nobody) -> Report:
    """What ``request.logs`` say of a run that died; with ``live`` beside the facts of this machine. Raises ExaminationError."""
    started = time.monotonic()
    knowledge = load_knowledge()
    known = knowledge.known_lines()
    incident = read_incident(request.logs, known, observe)
    if request.live:
        incident = beside(take_snapshot(request, observe), incident)
    report = diagnose(with_config(incident, request), knowledge, request)
    problems = (*report.problems, *known.problems)
    return msgspec.structs.replace(report, problems=problems, seconds=round(time.monotonic() - started, 2))


def recheck(report: Report, code: str, request: Request, observe: Observer = nobody) -> Report:
    """Examine again what check ``code`` needs, keep every other fact, judge anew. On a recorded machine: judge only."""
    from dsdoctor import survey

    knowledge = load_knowledge()
    check = next((c for c in knowledge.checks if c.code == code), None)
    if check is None:
        raise ExaminationError(f"no check is called {code}; see `dsdoctor list`")
    if request.snapshot or request.ds_report:
        return diagnose(report.facts, knowledge, request)
    sections = {SECTIONS[kind] for kind in check.needs.values() if kind in SECTIONS}
    if "smoke" in sections and request.smoke is not None:
        return run_smoke(report, request.smoke, request, observe)
    snapshot = _interruptible(report.facts, lambda: survey.examine_again(request, report.facts, sections, observe))
    return diagnose(snapshot, knowledge, request)


def choose_ops(report: Report, names: Sequence[str], *, everything: bool = False) -> tuple[str, ...]:
    """The ops that a command is about: those named, else all, else those that are needed here. Raises ExaminationError."""
    there = [op.name for op in report.ops]
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else f"; this DeepSpeed has {', '.join(there) or 'none'}"
            raise ExaminationError(f"no op is called {name}{hint}")
    if names:
        return tuple(dict.fromkeys(names))
    return tuple(there) if everything else tuple(op.name for op in report.ops if op.wanted)


def build_ops(report: Report, order: "Order", request: Request, observe: Observer = nobody) -> Report:
    """Build and load ops for real, and judge anew. Ctrl-C gives the report as it was, marked ``interrupted``."""
    from dsdoctor import survey

    started = time.monotonic()
    try:
        built = survey.build(report.facts, order, observe)
    except ProbeFailed as failed:
        raise ExaminationError(failed.unavailable.detail, exit_code=3) from None
    except KeyboardInterrupt:
        return msgspec.structs.replace(report, interrupted=True)
    snapshot = _with(report.facts, "op_builds", built)
    seconds = round((report.seconds or 0.0) + time.monotonic() - started, 2)
    return msgspec.structs.replace(diagnose(snapshot, load_knowledge(), request), seconds=seconds)


def run_smoke(report: Report, order: SmokeOrder, request: Request, observe: Observer = nobody) -> Report:
    """Train for real, and judge anew. On Ctrl-C the report has the runs that had ended, marked ``interrupted``."""
    from dsdoctor import survey

    started, interrupted = time.monotonic(), False
    _check_recipes(order)
    try:
        ran = survey.smoke(report.facts, _jobs(report, order), observe)
    except ProbeFailed as failed:
        raise ExaminationError(failed.unavailable.detail, exit_code=3) from None
    except survey.SmokeInterrupted as stop:
        ran, interrupted = stop.smoke, True
    snapshot = _with(report.facts, "smoke", ran)
    seconds = round((report.seconds or 0.0) + time.monotonic() - started, 2)
    found = diagnose(snapshot, load_knowledge(), request)
    return msgspec.structs.replace(found, seconds=seconds, interrupted=interrupted)


def _check_recipes(order: SmokeOrder) -> None:
    try:
        check_names(order)
    except UnknownRecipe as error:
        raise ExaminationError(str(error)) from None


def _jobs(report: Report, order: SmokeOrder) -> list[Job | SmokeRun]:
    """What of the order can be run here; a config that was read is taken as Hugging Face would fill it."""
    blocked = {c.name: ", ".join(c.blocked_by) or c.because or "" for c in report.capabilities if c.state == "blocked"}
    return jobs(order, report.facts, blocked=blocked)


def _with(snapshot: Snapshot, section: str, fact: Fact) -> Snapshot:
    kept = {name: why for name, why in snapshot.unavailable.items() if name != section}
    return snapshot.replace(unavailable=kept, **{section: fact})


def load_knowledge() -> Knowledge:
    """All installed plug-ins. Raises ExaminationError (3) when there are none."""
    try:
        return registry.load()
    except (registry.NothingInstalled, ValueError) as error:
        raise ExaminationError(str(error), exit_code=3) from None


def select_checks(knowledge: Knowledge, request: Request) -> tuple[Check, ...]:
    """The checks that the request asks for. Raises ExaminationError for an unknown code or family."""
    try:
        chosen = registry.select(knowledge.checks, request.only, request.skip)
    except registry.UnknownSelection as error:
        raise ExaminationError(str(error)) from None
    if not chosen:
        raise ExaminationError("--only and --skip together leave no check")
    return chosen


def take_snapshot(request: Request, observe: Observer = nobody) -> Snapshot:
    """Facts from the machine, a snapshot file, or a pasted ds_report. Raises ExaminationError or InterruptedExamination."""
    if request.snapshot:
        return with_config(read_snapshot(request.snapshot), request)
    if request.ds_report:
        return with_config(read_ds_report(request.ds_report), request)
    from dsdoctor import survey

    blank = Snapshot(tool_version=__version__, taken_at=now())
    try:
        return _interruptible(blank, lambda: survey.examine_all(request, observe))
    except ProbeFailed as failed:  # no patient
        raise ExaminationError(failed.unavailable.detail) from None


def diagnose(snapshot: Snapshot, knowledge: Knowledge, request: Request = Request()) -> Report:  # noqa: B008
    """The pure part: verdicts, capabilities, causes and plan of a snapshot."""
    snapshot = snapshot.replace(purpose=_purpose(snapshot, knowledge, request))
    checks = select_checks(knowledge, request)
    settings = request.settings
    verdicts = judge(checks, snapshot, settings.severities, settings.ignored)
    causes = rank_causes(verdicts, knowledge.causes)
    if snapshot.log is not None:
        causes = weigh(causes, verdicts, snapshot.log)
    plan = make_plan(causes, verdicts, knowledge.causes)
    specs = knowledge.ops(snapshot) if knowledge.ops else ()
    ops = judge_ops(specs, checks, verdicts, snapshot) if not request.only else ()
    counts = _count(verdicts)
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
        capabilities=assess(knowledge.capabilities, checks, verdicts, snapshot, ops) if not request.only else (),
        ops=ops,
        causes=causes,
        plan=plan,
        story=tell(snapshot.log, causes) if snapshot.log is not None else None,
        problems=knowledge.problems,
    )


def _interruptible(base: Snapshot, look: Callable[[], tuple[dict[str, Fact], dict[str, Unavailable]]]) -> Snapshot:
    """The snapshot that ``look`` fills. On Ctrl-C raises Interrupted that carries what was found by then."""
    from dsdoctor.probes.examiner import Interrupted

    try:
        found, missing = look()
    except Interrupted as stop:
        raise InterruptedExamination(_assemble(base, stop.found, stop.unavailable)) from None
    return _assemble(base, found, missing)


def _assemble(base: Snapshot, found: dict[str, Fact], missing: dict[str, Unavailable]) -> Snapshot:
    gone = dict.fromkeys(missing.keys() - found.keys())
    unavailable = {k: v for k, v in {**base.unavailable, **missing}.items() if k not in found}
    return base.replace(**found, **gone, unavailable=unavailable)


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


def _count(verdicts: Iterable[Verdict]) -> Counts:
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
