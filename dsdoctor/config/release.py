"""Which DeepSpeed a config is judged for, when nobody examines a machine: the one that is named, else the one beside dsdoctor.

The look at the latter reads names of folders only: importlib.metadata alone would take a tenth of the time that a lint may take.
"""

import os
import re
import sys
from collections.abc import Iterable

from dsdoctor.facts import DeepSpeed, Snapshot
from dsdoctor.request import ExaminationError

NAMED, BESIDE = "--deepspeed", "installed beside dsdoctor"
_VERSION = re.compile(
    r"v?(\d{1,6}(?:\.\d{1,6}){1,3}(?:(?:[-+.][A-Za-z0-9]|[A-Za-z])[A-Za-z0-9]*(?:[.+-][A-Za-z0-9]+)*)?)"
)
_FOLDER = re.compile(r"deepspeed-(\d[^-]*)\.dist-info")


def with_release(snapshot: Snapshot, named: str | None) -> Snapshot:
    """``snapshot`` with the release that its config is judged for, when one is known. Raises ExaminationError for a word that is none."""
    if named is not None:
        return snapshot.replace(deepspeed=DeepSpeed(version=_version(named), path=NAMED))
    if snapshot.deepspeed is not None or snapshot.python is not None:  # a recorded machine: its own word, or none
        return snapshot
    found = beside(sys.path)
    return snapshot.replace(deepspeed=DeepSpeed(version=found, path=BESIDE)) if found else snapshot


def _version(named: str) -> str:
    found = _VERSION.fullmatch(named.strip())
    if found is None:
        shown = "".join(c if c.isprintable() else "?" for c in named[:40])
        raise ExaminationError(f'--deepspeed "{shown}" is no version: give a release such as 0.16.9')
    return found.group(1)


def beside(folders: Iterable[str]) -> str | None:
    """The version of the DeepSpeed that is installed in one of ``folders``, the first that has one."""
    for folder in folders:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if found := _FOLDER.fullmatch(name):
                return found.group(1)
    return None


def said(snapshot: Snapshot) -> str:
    """Which release that is, for the screen: "DeepSpeed 0.19.8 (installed beside dsdoctor)"."""
    release = snapshot.deepspeed
    if release is None:
        return "the newest DeepSpeed that dsdoctor knows"
    where = release.path if release.path in (NAMED, BESIDE) else f"of {snapshot.origin}"
    return f"DeepSpeed {release.version} ({where})"
