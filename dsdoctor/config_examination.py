"""Judge a ds_config by itself, or against a recorded machine: nothing here looks at the machine that it runs on."""

import msgspec

from dsdoctor import __version__, registry
from dsdoctor.config_fix import Fixed, apply, diff, edits_of
from dsdoctor.config_release import with_release
from dsdoctor.examination import diagnose
from dsdoctor.facts import Snapshot
from dsdoctor.facts.snapshot import now
from dsdoctor.model import Report
from dsdoctor.recorded import read_snapshot, with_config
from dsdoctor.request import ExaminationError, Request

FAMILY = ("CFG",)


def judge_config(request: Request, release: str | None) -> Report:
    """The report on ``request.config``; ``release`` names the DeepSpeed that will read it. Raises ExaminationError."""
    blank = Snapshot(tool_version=__version__, taken_at=now(), origin=request.config or "")
    snapshot = with_config(read_snapshot(request.snapshot) if request.snapshot else blank, request)
    snapshot = with_release(snapshot, release)
    try:
        knowledge = registry.load(named="config")
    except (registry.NothingInstalled, ValueError) as error:
        raise ExaminationError(str(error), exit_code=3) from None
    return diagnose(snapshot, knowledge, msgspec.structs.replace(request, only=FAMILY))


def mend(report: Report, *, lean: bool = False) -> tuple[Fixed, str]:
    """The text of the report's config with the safe edits, and the difference as a patch. Raises ExaminationError."""
    config = report.facts.ds_config
    if config is None or not config.readable:
        raise ExaminationError(f"there is no config to mend: {config.problem if config else 'none was given'}")
    try:
        with open(config.path, encoding="utf-8", newline="") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        raise ExaminationError(f"{config.path} cannot be read: {error}") from None
    fixed = apply(text, edits_of(report.verdicts, lean=lean))
    return fixed, diff(text, fixed.text, config.path)
