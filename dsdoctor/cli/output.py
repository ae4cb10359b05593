"""Where a report goes and how wide, coloured and fancy it may be there."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import msgspec

from dsdoctor.cli.privacy import shown
from dsdoctor.cli.terminal import colour, columns, forget_stdout, takes
from dsdoctor.facts import Snapshot
from dsdoctor.model import Report
from dsdoctor.render import renderer
from dsdoctor.request import ExaminationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsdoctor.config_examination import Judged
    from dsdoctor.fit.report import FitReport

_UNWRAPPED = 100_000


class Screen(TypedDict):
    width: int
    color: bool
    unicode: bool


def render(
    report: Report, form: str, verbosity: int, *, to_file: bool, fail_on: str = "error", private: bool | None = None
) -> str:
    """The report in a format; text adapts to the terminal that will show it, JUnit's failures to ``fail_on``.

    ``private``: without the names of this machine; None: as the format has it. No report is rendered around that.
    """
    report = shown(report, form, private)
    if form == "junit":
        from dsdoctor.render import junit

        return junit.render(report, fail_on)
    if form != "text":
        return renderer(form)(report)
    from dsdoctor.render import text

    page: Screen = {"width": 100, "color": False, "unicode": True} if to_file else _screen()
    return text.render(report, **page, verbosity=verbosity)


def render_ops(report: Report, names: tuple[str, ...]) -> str:
    """The table of ops for this terminal; of ``names`` only when there are some."""
    from dsdoctor.cli.op_run import only
    from dsdoctor.render import ops

    return ops.render(only(report, names), **_screen())


def render_triage(report: Report, form: str, verbosity: int, *, to_file: bool, private: bool | None) -> str:
    """What killed a run: a text of its own, every other format as a check has it."""
    if form != "text":
        return render(report, form, verbosity, to_file=to_file, private=private)
    from dsdoctor.render import triage

    page: Screen = {"width": 100, "color": False, "unicode": True} if to_file else _screen()
    return triage.render(shown(report, form, private), **page, verbosity=verbosity)


def render_configs(files: "Sequence[Judged]", form: str, verbosity: int, *, to_file: bool, fail_on: str) -> str:
    """Configs as a linter tells them; one report in every other format, and in JSON a list when there are several."""
    if form != "text":
        from dsdoctor.config_examination import together

        reports = [judged.report for judged in files]
        if form == "json" and len(reports) > 1:
            return f"[{','.join(render(report, form, 0, to_file=to_file).rstrip() for report in reports)}]\n"
        return render(together(reports), form, 0, to_file=to_file, fail_on=fail_on)
    from dsdoctor.render import config

    page: Screen = {"width": _UNWRAPPED, "color": False, "unicode": True} if to_file else _screen()
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        page["width"] = _UNWRAPPED  # a finding is one line then, for grep and editors
    return config.render([_shown(judged) for judged in files], **page, verbosity=verbosity)


def _shown(judged: "Judged") -> "Judged":
    """Without tokens in what is told; of the facts the screen shows names and versions only."""
    facts = judged.report.facts
    told = shown(msgspec.structs.replace(judged.report, facts=Snapshot(tool_version="")), "text", None)
    return judged._replace(report=msgspec.structs.replace(told, facts=facts))


def write(document: str, output: str | None) -> None:
    """To a file, or to stdout. Raises ExaminationError when the file cannot be written."""
    if output and output != "-":
        try:
            Path(output).write_text(document, "utf-8", errors="backslashreplace")
        except OSError as error:
            raise ExaminationError(f"{output} cannot be written: {error.strerror or error}") from None
        return
    try:
        sys.stdout.write(document)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head -1`: the reader has what it wanted; the exit code stays that of the report
        forget_stdout()


def render_smoke(report: Report, verbosity: int) -> str:
    """The smoke runs of a report for this terminal."""
    from dsdoctor.render import smoke

    return smoke.render(shown(report, "text", None), **_screen(), verbosity=verbosity)


def render_fit(report: "FitReport", as_json: bool, verbosity: int) -> str:
    """Whether a model fits, for this terminal or as JSON."""
    if as_json:
        from dsdoctor.render.json import document

        return document(report)
    from dsdoctor.render import fit

    return fit.render(report, **_screen(), verbosity=verbosity)


def _screen() -> Screen:
    """How wide, coloured and fancy this terminal takes it."""
    return {
        "width": min(columns(), 120),
        "color": colour(sys.stdout.isatty()),
        "unicode": takes(sys.stdout.encoding, "\u2022"),
    }
