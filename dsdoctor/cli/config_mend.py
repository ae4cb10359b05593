"""`dsdoctor config --fix` and `--lean`: the patch, or the file itself."""

from collections.abc import Sequence
from typing import Any

import click

from dsdoctor.cli.exit_codes import exit_code
from dsdoctor.cli.output import write
from dsdoctor.cli.replacing import replace
from dsdoctor.config.fix import diff
from dsdoctor.config_examination import Judged, look_again, mend
from dsdoctor.render.plain import clean, one_line


def mend_files(files: Sequence[Judged], values: dict[str, Any], fail_on: str) -> int:
    """Print patches, mend the files, or print one; the exit code tells of what the files say afterwards."""
    return max(_mend(judged, values, fail_on) for judged in files)


def _mend(judged: Judged, values: dict[str, Any], fail_on: str) -> int:
    fixed = mend(judged, lean=values["lean"])
    after = look_again(judged, fixed.text) if fixed.done else judged
    if not values["fix"]:
        write(clean(fixed.text), values["output"])
        return exit_code(after.report, fail_on)
    patch = diff(judged.text or "", fixed.text, judged.name)
    if values["write"] and patch:
        replace(judged.name, judged.text or "", fixed.text)
    write(clean(patch), values["output"])  # a text from a file: no escape of it reaches a screen
    click.echo(f"dsdoctor: {one_line(_told(judged, after, values['write']))}", err=True)
    return exit_code((after if values["write"] else judged).report, fail_on)


def _told(judged: Judged, after: Judged, written: bool) -> str:
    """What was done, and what remains for the user."""
    left = after.report.counts
    parts = [f"{n} {w}{'s' if n > 1 else ''}" for n, w in ((left.errors, "error"), (left.warnings, "warning")) if n]
    rest = f"{' and '.join(parts)} to mend by hand" if parts else "no error and no warning is left"
    if after is judged:
        return f"{judged.name}: nothing that can safely be mended; {rest}"
    if written:
        return f"{judged.name}: mended; {rest}"
    return f"{judged.name}: not written (--write does it); then {rest}"
