"""Judge a ds_config by itself, or against a recorded machine: nothing here looks at the machine that it runs on."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import msgspec

from dsdoctor import __version__, registry
from dsdoctor.config.fix import Fixed, apply, edits_of
from dsdoctor.config.release import with_release
from dsdoctor.diagnosis import count, diagnose
from dsdoctor.facts import Snapshot
from dsdoctor.facts.snapshot import SECTIONS, now
from dsdoctor.knowledge import Knowledge
from dsdoctor.model import ConfigEdit, Platform, Report, Status
from dsdoctor.readers import ds_config
from dsdoctor.readers.ds_config import Source
from dsdoctor.readers.opened import content
from dsdoctor.recorded import read_snapshot, with_config
from dsdoctor.request import ExaminationError, Request

FAMILY = ("CFG",)


class Judged(NamedTuple):
    """A config, what was found in it, and what can be done about that."""

    request: Request
    release: str | None
    report: Report
    text: str | None  # None: it could not be read
    beside: Mapping[str, str] = {}  # files of frameworks that were judged with it: name -> text
    safe: frozenset[ConfigEdit] = frozenset()  # what --fix does
    lean: frozenset[ConfigEdit] = frozenset()  # what --lean does
    awaited: Mapping[
        str, tuple[str, ...]
    ] = {}  # check without an answer -> sections that are missing, which it looks at

    @property
    def name(self) -> str:
        """The file, or what stands in its place in messages."""
        config = self.report.facts.ds_config
        return config.path if config else self.request.config or ""


def look(request: Request, release: str | None, again: str | None = None, source: Source | None = None) -> Judged:
    """The report on ``request.config``, with what a screen and a mend need. Raises ExaminationError.

    ``release`` names the DeepSpeed that will read it, ``again`` is the command that judges it once more, ``source`` a text that was read.
    """
    source = source or ds_config.source(request.config or "")
    blank = Snapshot(tool_version=__version__, taken_at=now(), origin=source.config.path)
    snapshot = with_config(read_snapshot(request.snapshot) if request.snapshot else blank, request, source.config)
    snapshot = with_release(snapshot, release)
    knowledge = _knowledge()
    report = diagnose(snapshot, knowledge, msgspec.structs.replace(request, only=FAMILY))
    if not request.snapshot:
        alone = Platform(headline=f"{source.config.path}, judged by itself")
        report = msgspec.structs.replace(report, platform=alone, patient="none: a config is judged by itself")
    text = source.text or ""
    return Judged(
        request=msgspec.structs.replace(request, only=FAMILY),
        release=release,
        report=_proved_by(report, again) if again else report,
        text=source.text,
        beside=_beside(request),
        safe=_doable(text, edits_of(report.verdicts)),
        lean=_doable(text, edits_of(report.verdicts, lean=True)),
        awaited=_awaited(report, knowledge),
    )


def _beside(request: Request) -> dict[str, str]:
    """What the files of frameworks say, which were read before, for a screen to show."""
    texts = {}
    for name in filter(None, (request.accelerate_config, request.training_args)):
        with suppress(OSError, ValueError):
            if os.path.isfile(name):
                texts[name] = content(name, ds_config.MOST_BYTES).decode("utf-8", "replace")
    return texts


@lru_cache(maxsize=1)  # there is often nothing more to leave out
def _doable(text: str, edits: tuple[ConfigEdit, ...]) -> frozenset[ConfigEdit]:
    return frozenset(apply(text, edits).done)


def look_again(judged: Judged, text: str) -> Judged:
    """The same config with another text."""
    return look(judged.request, judged.release, source=Source(ds_config.parse(text, judged.name), text))


def _knowledge() -> Knowledge:
    try:
        return registry.load(named="config")
    except (registry.NothingInstalled, ValueError) as error:
        raise ExaminationError(str(error), exit_code=3) from None


def _awaited(report: Report, knowledge: Knowledge) -> dict[str, tuple[str, ...]]:
    """For each undecided check the sections that it looks at and that are not there."""
    needs = {
        check.code: [SECTIONS[kind] for kind in check.needs.values() if kind in SECTIONS] for check in knowledge.checks
    }
    return {
        verdict.code: tuple(name for name in needs[verdict.code] if getattr(report.facts, name) is None)
        for verdict in report.verdicts
        if verdict.status is Status.UNKNOWN
    }


def _proved_by(report: Report, command: str) -> Report:
    """The report with ``command`` as the proof that a finding is mended."""
    replace = msgspec.structs.replace
    verdicts = tuple(
        replace(
            verdict,
            findings=tuple(
                replace(f, remedy=replace(f.remedy, verify=command)) if f.remedy and f.remedy.verify else f
                for f in verdict.findings
            ),
        )
        for verdict in report.verdicts
    )
    plan = tuple(replace(step, verify=command) if step.verify else step for step in report.plan)
    return replace(report, verdicts=verdicts, plan=plan)


def mend(judged: Judged, *, lean: bool = False) -> Fixed:
    """The config's text with the safe edits. Raises ExaminationError for a config that is not there."""
    config = judged.report.facts.ds_config
    if judged.text is None or config is None or not config.readable:
        why = config.problem if config else "none was given"
        raise ExaminationError(f"{judged.name}: there is no config to mend: {why}")
    return apply(judged.text, edits_of(judged.report.verdicts, lean=lean))


_STRENGTH = (Status.NOT_APPLICABLE, Status.PASSED, Status.UNKNOWN, Status.CRASHED, Status.FAILED)


def together(reports: Sequence[Report]) -> Report:
    """Reports on several configs as one: each check once, with the findings of all."""
    if len(reports) == 1:
        return reports[0]
    verdicts = []
    for same in zip(*(report.verdicts for report in reports), strict=True):
        worst = max(same, key=lambda verdict: (_STRENGTH.index(verdict.status), verdict.severity.rank))
        findings = tuple(finding for verdict in same for finding in verdict.findings)
        verdicts.append(msgspec.structs.replace(worst, findings=findings))
    counts = count(verdicts)
    summary = f"{len(reports)} configs: {counts.errors} errors, {counts.warnings} warnings."
    return msgspec.structs.replace(
        reports[0], verdicts=tuple(verdicts), counts=counts, summary=summary, causes=(), plan=()
    )
