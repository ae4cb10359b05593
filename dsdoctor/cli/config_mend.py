"""`dsdoctor config --fix` and `--lean`: the patch, or the file itself."""

import os
import stat
import tempfile
from collections.abc import Sequence
from typing import Any

import click

from dsdoctor.cli.exit_codes import exit_code
from dsdoctor.cli.output import write
from dsdoctor.config_examination import Judged, look_again, mend
from dsdoctor.config_fix import diff
from dsdoctor.readers.ds_config import BASE64, STDIN
from dsdoctor.render.plain import clean, one_line
from dsdoctor.request import ExaminationError


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


def replace(path: str, old: str, new: str) -> None:
    """Put ``new`` in the place of ``old``, whole or not at all; a link stays one, and its file keeps its rights.

    Raises ExaminationError where there is no such file, or it changed meanwhile.
    """
    if path in (STDIN, BASE64) or not os.path.isfile(path):
        raise ExaminationError(f"{path} is no file that can be written; leave --write out and apply the patch")
    real, spare = os.path.realpath(path), None
    try:
        with open(real, "rb") as file:
            if file.read() != old.encode("utf-8"):
                raise ExaminationError(f"{path} changed while it was judged; nothing was written")
            rights = os.fstat(file.fileno())
        number, spare = tempfile.mkstemp(prefix=".dsdoctor-", dir=os.path.dirname(real))
        with os.fdopen(number, "wb") as file:
            file.write(new.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(spare, stat.S_IMODE(rights.st_mode))
        os.replace(spare, real)
    except OSError as error:
        raise ExaminationError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        if spare and os.path.exists(spare):
            os.unlink(spare)
