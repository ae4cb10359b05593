"""The only place where the arrows are wired: probes or readers -> snapshot -> verdicts -> capabilities and plan -> report."""

import difflib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from dsdoctor import __version__, registry
from dsdoctor.capabilities import assess
from dsdoctor.events import Event, Observer, nobody
from dsdoctor.facts import Fact, Purpose, Snapshot, SnapshotError, Unavailable
from dsdoctor.facts.snapshot import SECTIONS, decode, now
from dsdoctor.judge import judge
from dsdoctor.knowledge import Knowledge
from dsdoctor.model import Check, Counts, Platform, Report, Severity, Status, Verdict
from dsdoctor.op_verdicts import judge_ops
from dsdoctor.plan import counted_findings, make_plan, rank_causes
from dsdoctor.probes import ProbeFailed
from dsdoctor.request import Request

if TYPE_CHECKING:
    from dsdoctor.probes.op_builds import Order

Outcome = Literal["healthy", "warnings", "problems", "incomplete"]
__all__ = ["ExaminationError", "InterruptedExamination", "Request", "diagnose", "examine", "recheck", "take_snapshot"]

SNAPSHOT_LIMIT = 64 * 1024 * 1024


class ExaminationError(Exception):
    """Nothing can be examined; the message is one sentence. ``exit_code`` is 2 for the user's mistake, 3 for ours."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class InterruptedExamination(KeyboardInterrupt):
    """Ctrl-C while facts were gathered; ``snapshot`` holds those known by then."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


def examine(request: Request, observe: Observer = nobody) -> Report:
    """Examine and judge. Ctrl-C gives a report of what was known by then, marked ``interrupted``. Raises ExaminationError."""
    started = time.monotonic()
    with ThreadPoolExecutor(1) as beside:
        started_up = threading.Event()  # the patient comes first: loading takes the interpreter from its probe
        loading = beside.submit(lambda: (started_up.wait(1.0), load_knowledge())[1])
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
    return msgspec.structs.replace(report, interrupted=interrupted, seconds=round(time.monotonic() - started, 2))


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
    kept = {name: why for name, why in report.facts.unavailable.items() if name != "op_builds"}
    snapshot = report.facts.replace(op_builds=built, unavailable=kept)
    seconds = round((report.seconds or 0.0) + time.monotonic() - started, 2)
    return msgspec.structs.replace(diagnose(snapshot, load_knowledge(), request), seconds=seconds)


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
        return _with_config(read_snapshot(request.snapshot), request)
    if request.ds_report:
        return _with_config(_from_ds_report(request.ds_report), request)
    from dsdoctor import survey

    blank = Snapshot(tool_version=__version__, taken_at=now())
    try:
        return _interruptible(blank, lambda: survey.examine_all(request, observe))
    except ProbeFailed as failed:  # no patient
        raise ExaminationError(failed.unavailable.detail) from None


def read_snapshot(name: str) -> Snapshot:
    """A snapshot file, or a ``--json`` report that carries one. Raises ExaminationError."""
    try:
        path = Path(name)
        if path.is_dir():
            path = path / "facts.json"
            if not path.exists():
                raise ExaminationError(f"{name} holds no facts.json: it is no recorded machine")
        if path.stat().st_size > SNAPSHOT_LIMIT:
            raise ExaminationError(f"{name} is larger than any snapshot ({path.stat().st_size} bytes)")
        snapshot = decode(path.read_bytes(), name)
    except OSError as error:
        raise ExaminationError(f"{name} cannot be read: {error.strerror or error}") from None
    except SnapshotError as error:
        raise ExaminationError(str(error)) from None
    return snapshot.replace(origin=name)


def diagnose(snapshot: Snapshot, knowledge: Knowledge, request: Request = Request()) -> Report:  # noqa: B008
    """The pure part: verdicts, capabilities, causes and plan of a snapshot."""
    snapshot = snapshot.replace(purpose=_purpose(snapshot, knowledge, request))
    checks = select_checks(knowledge, request)
    settings = request.settings
    verdicts = judge(checks, snapshot, settings.severities, settings.ignored)
    causes = rank_causes(verdicts, knowledge.causes)
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


def _from_ds_report(name: str) -> Snapshot:
    from dsdoctor.readers import beside, ds_report

    try:
        if name == "-":
            data = sys.stdin.buffer.read(SNAPSHOT_LIMIT + 1)
        else:
            with open(name, "rb") as file:
                data = file.read(SNAPSHOT_LIMIT + 1)
    except OSError as error:
        raise ExaminationError(f"{name} cannot be read: {error.strerror or error}") from None
    if len(data) > SNAPSHOT_LIMIT:
        raise ExaminationError(f"{name} is larger than any ds_report (over {SNAPSHOT_LIMIT // 2**20} MiB)")
    text = data.decode("utf-8", "replace")
    report = ds_report.parse(text, "standard input" if name == "-" else name)
    sections = ds_report.facts_of(report)
    sections |= beside.facts_of(text, sections.get("toolkits"))
    silent = Unavailable(kind="not-examined", detail="a pasted ds_report does not say")
    unavailable = {s: silent for s in SECTIONS.values() if s not in sections} | _not_asked(smoke=True, config=True)
    return Snapshot(tool_version=__version__, origin=report.source, taken_at=now(), unavailable=unavailable).replace(
        ds_report=report, **{k: v for k, v in sections.items() if k != "ds_report"}
    )


def _not_asked(*, smoke: bool, config: bool) -> dict[str, Unavailable]:
    """Sections that the user did not ask for."""
    reasons = {
        "smoke": (smoke, "no smoke run was asked for (--smoke)"),
        "ds_config": (config, "no ds_config was given (--config)"),
    }
    return {name: Unavailable(kind="not-asked", detail=detail) for name, (absent, detail) in reasons.items() if absent}


def _with_config(snapshot: Snapshot, request: Request) -> Snapshot:
    if not request.config:
        return snapshot
    from dsdoctor.readers import ds_config

    kept = {k: v for k, v in snapshot.unavailable.items() if k != "ds_config"}
    return snapshot.replace(ds_config=ds_config.read(request.config), unavailable=kept)


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
