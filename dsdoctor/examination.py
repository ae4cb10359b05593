"""The only place where the arrows are wired: probes or readers -> snapshot -> verdicts -> capabilities and plan -> report."""

import difflib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from dsdoctor import __version__, registry
from dsdoctor.diagnosis import diagnose, select_checks
from dsdoctor.events import Event, Observer, nobody
from dsdoctor.facts import Fact, SmokeRun, Snapshot, Unavailable
from dsdoctor.facts.snapshot import SECTIONS, now
from dsdoctor.incident import beside, read_incident
from dsdoctor.knowledge import Knowledge
from dsdoctor.model import Report
from dsdoctor.probes import ProbeFailed
from dsdoctor.recorded import read_ds_report, read_snapshot, with_config
from dsdoctor.request import ExaminationError, Request
from dsdoctor.smoke.order import Job, SmokeOrder, UnknownRecipe, check_names, jobs

if TYPE_CHECKING:
    from dsdoctor.probes.op_builds import Order

__all__ = [
    "ExaminationError",
    "InterruptedExamination",
    "Request",
    "diagnose",
    "examine",
    "load_knowledge",
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
