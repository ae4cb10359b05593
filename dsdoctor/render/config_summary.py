"""What the findings of one or several configs come to, for what they were judged, and what could not be judged."""

from collections.abc import Iterator, Sequence

from dsdoctor.config.release import said
from dsdoctor.config_examination import Judged
from dsdoctor.facts import Snapshot
from dsdoctor.model import Report, Severity, Status
from dsdoctor.plan import counted_findings
from dsdoctor.readers.ds_config import BASE64
from dsdoctor.render.page import Page
from dsdoctor.render.plain import clean

_BY = {"none": "a script of its own", "hf": "transformers", "accelerate": "Accelerate", "lightning": "Lightning"}
_MACHINE = ("gpus", "memory", "storage", "op_builders", "op_builds", "deepspeed_live", "trials", "limits", "torch")
_WORD = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def add_summary(page: Page, files: Sequence[Judged]) -> None:
    """The last lines of the screen."""
    page.add()
    sound = [judged for judged in files if not judged.report.counts.errors + judged.report.counts.warnings]
    judged_for = f"udged for {', '.join(dict.fromkeys(_judged_for(files[0].report.facts, [judged.report for judged in files])))}."
    for judged in sound:
        passed = judged.report.counts.passed
        said = f"{judged.name}: nothing is wrong ({passed} checks passed)"
        page.wrap(f"{said}, j{judged_for}" if len(files) == 1 else f"{said}.", "", "    ")
    if len(files) > len(sound):
        page.wrap(_total(files), "", "    ")
    if len(files) > 1 or not sound:
        page.wrap(f"J{judged_for}", "", "    ")
    if missing := list(_missing(files)):
        page.wrap(f"To judge more, give {'; '.join(missing)}.", "", "    ")
    for reason, codes in _open(files).items():
        page.wrap(f"Not decided: {reason} ({', '.join(codes)}).", "", "    ")


def _total(files: Sequence[Judged]) -> str:
    """3 errors and 1 warning in 2 of 3 files. --fix mends 2 of them."""
    found = [(j, severity, f) for j in files for severity, _, f in counted_findings(j.report.verdicts)]
    parts = []
    for wanted, word in _WORD.items():
        number = sum(severity is wanted for _, severity, _ in found)
        parts += [f"{number} {word}{'s' if number > 1 else ''}"] if number else []
    serious = [(j, f) for j, severity, f in found if severity is not Severity.INFO]
    sick = sum(bool(j.report.counts.errors + j.report.counts.warnings) for j in files)
    where = "" if len(files) == 1 else f" in {sick} of {len(files)} files"
    mended = sum(bool(f.remedy and f.remedy.edits and j.safe.issuperset(f.remedy.edits)) for j, f in serious)
    fix = f" --fix mends {mended if mended < len(serious) else 'all'} of them." if mended and len(serious) > 1 else ""
    fix = " --fix mends it." if mended and len(serious) == 1 else fix
    return f"{' and '.join(parts)}{where}.{fix}"


def _judged_for(facts: Snapshot, reports: Sequence[Report]) -> Iterator[str]:
    yield said(facts)
    plan = facts.run_plan
    if plan and plan.ranks:
        yield f"{plan.ranks} rank{'s' if plan.ranks > 1 else ''}"
    if plan and plan.framework:
        yield _BY[plan.framework]
    if facts.accelerate_config:
        yield clean(facts.accelerate_config.path)
    if facts.training_args:
        yield clean(facts.training_args.path)
    if facts.gpus or facts.host:
        yield f"the machine in {clean(facts.origin)}"
    if any(report.facts.ds_config and report.facts.ds_config.path == BASE64 for report in reports):
        yield "the text in a base64 argument, as DeepSpeed takes it"


def _missing(files: Sequence[Judged]) -> Iterator[str]:
    """Options that would decide more, each with what it decides."""
    facts = files[0].report.facts
    awaited = {section for judged in files for names in judged.awaited.values() for section in names}
    if not any(map(_parsed, files)):
        return
    if not (facts.run_plan and facts.run_plan.ranks):
        yield "--gpus N (the batch sizes)"
    if facts.deepspeed is None:
        yield "--deepspeed VERSION (the one that will read it)"
    if awaited.intersection(_MACHINE):
        yield "--snapshot FILE (GPUs and memory of that machine; `dsdoctor check --config FILE` looks at this one)"


def _open(files: Sequence[Judged]) -> dict[str, list[str]]:
    """Why checks have no answer, where no option would give it."""
    told: dict[str, list[str]] = {}
    for judged in filter(_parsed, files):
        for verdict in judged.report.verdicts:
            waits = {"deepspeed", "run_plan", *_MACHINE}.intersection(judged.awaited.get(verdict.code, ()))
            if verdict.status is Status.CRASHED or (verdict.status is Status.UNKNOWN and not waits):
                codes = told.setdefault(verdict.reason or "no reason was given", [])
                codes += [verdict.code] if verdict.code not in codes else []
    return told


def _parsed(judged: Judged) -> bool:
    config = judged.report.facts.ds_config
    return config is not None and config.problem is None
