"""Lists of packages: ``pip list`` (columns, freeze), ``pip freeze``, ``uv pip list``, ``conda list``, ``conda env export``.

Grammar: pip/_internal/commands/list.py and operations/freeze.py (25.x), uv 0.13.9, conda/cli/main_list.py, and recordings
(fixtures/transcripts/pip-*.txt, uv-pip-*.txt). A list in pip's freeze form is never whole: pip leaves setuptools and pip
out of it, and a file of requirements looks the same.
"""

import re

from dsdoctor.readers import pasted, regex
from dsdoctor.readers.told import MOST_PACKAGES, Build, Told, build_of, normalised

LEAST_LINES = 3  # of the freeze form: fewer are an example in a sentence
_NAME = r"[A-Za-z0-9][\w.-]{0,99}"
_VERSION = r"\d[\w.+!*-]{0,99}"
HEAD = regex.compile(r"^\s*Package +Version(?: +(?:Location|Editable project location|Installer|Build))*$")
_RULE = regex.compile(r"^\s*-{3,} +-{3,}")
_ROW = regex.compile(rf"^\s*({_NAME}) +({_VERSION})(?: +\S.*)?$")
FREEZE = regex.compile(rf"^\s*({_NAME})(?:\[[\w,.-]*\])?===?({_VERSION})(?:\s*;.*|\s*--hash.*|\s*\\|\s*#.*)?$")
_FILE = regex.compile(rf"^\s*({_NAME}) @ \S+$")
_WHEEL = regex.compile(r"/[A-Za-z0-9_.]+-(\d[\w.+!]*?)-[^/#]*\.whl(?:#|$)")
_EDITABLE = regex.compile(rf"^\s*# Editable .{{0,80}}\(({_NAME})==({_VERSION})\)")
_EDITED = regex.compile(r"^\s*-e \S+|^\s*#")
CONDA_HEAD = regex.compile(r"^\s*# packages in environment at (\S.*?):?$|^\s*# Name +Version +Build")
_CONDA_ROW = regex.compile(rf"^\s*(_?{_NAME}) +({_VERSION}) +(\S+)(?: +(\S+))?$")
EXPORT = regex.compile(rf"^\s*- (_?{_NAME})=({_VERSION})(?:=(\S+))?$")
_EXPORT_PIP = regex.compile(rf"^\s*- ({_NAME})==({_VERSION})$")
_PREFIX = regex.compile(r"^\s*prefix: (\S.*)$")
_INSTALLED = regex.compile(r"^(?:#\d+ [\d.]+ )?Successfully installed (\S.*)$")
_SATISFIED = regex.compile(
    rf"Requirement already satisfied: ({_NAME})[^()]{{0,300}}? in (\S+)[^()]*(?:\(from [^()]*\) )?\(({_VERSION})\)$"
)
_UV_CHANGE = regex.compile(rf"^ [+~] ({_NAME})==({_VERSION})(?: \(.*\))?$")
_CONDA_CUDA = regex.compile(r"(?:^|_)cuda_?(\d+\.\d+|\d{3})(?:_|$)")


class _List:
    """Rows of one list, while it is read."""

    def __init__(self, line: int, *, whole: bool, prefix: str | None = None) -> None:
        self.line = line
        self.whole = whole
        self.prefix = prefix
        self.site_packages: str | None = None
        self.packages: dict[str, str] = {}
        self.builds: dict[str, str] = {}

    def add(self, name: str, version: str, build: str | None = None) -> None:
        if len(self.packages) < MOST_PACKAGES:
            key = normalised(name)
            self.packages["torch" if key == "pytorch" and build else key] = version
            if build:
                self.builds[key] = build

    def told(self) -> Told:
        torch = self.packages.get("torch")
        return Told(
            line=self.line,
            exactness=1,
            torch=torch,
            build=_build(torch, self.packages, self.builds),
            deepspeed=self.packages.get("deepspeed"),
            python=self.packages.get("python") if self.builds else None,
            prefix=self.prefix,
            site_packages=self.site_packages,
            packages={name: version for name, version in self.packages.items() if name != "python"},
            whole=self.whole,
        )


def parse(text: str) -> tuple[Told, ...]:
    """What each list in a text tells. Never raises."""
    return read(pasted.lines(text))


def read(lines: list[str]) -> tuple[Told, ...]:
    """The same, of lines that are clean already."""
    found = [*_columns(lines), *_conda(lines), *_frozen(lines), *_exported(lines), *_changes(lines)]
    return tuple(each.told() for each in sorted(found, key=lambda each: each.line) if each.packages)


def _columns(lines: list[str]) -> list[_List]:
    found = []
    for number, line in enumerate(lines[:-1]):
        if "Package" in line and HEAD.match(line) and _RULE.match(lines[number + 1]):
            each = _List(number, whole=True)
            for at in range(number + 2, len(lines)):
                row = lines[at]
                if (cells := _ROW.match(row)) is None:
                    each.whole = each.whole and "..." not in row
                    break
                each.add(cells.group(1), cells.group(2))
            found.append(each)
    return found


def _conda(lines: list[str]) -> list[_List]:
    found: list[_List] = []
    each: _List | None = None
    for number, line in enumerate(lines):
        if line.lstrip().startswith("#"):
            head = CONDA_HEAD.match(line)
            if head is not None and (each is None or each.packages):
                each = _List(number, whole=True, prefix=head.group(1))
                found.append(each)
        elif each is not None:
            if (cells := _CONDA_ROW.match(line)) is None:
                each.whole = "..." not in line
                each = None
            else:
                each.add(cells.group(1), cells.group(2), cells.group(3))
    return found


def _frozen(lines: list[str]) -> list[_List]:
    """Runs of lines in the freeze form; a foreign line ends a run."""
    found: list[_List] = []
    each, rows = _List(0, whole=False), 0
    for number, line in enumerate([*lines, ""]):
        row = FREEZE.match(line) if "==" in line else None
        at = _FILE.match(line) if row is None and " @ " in line else None
        edited = _EDITABLE.match(line) if line.lstrip().startswith("#") else None
        if row or edited:
            pair = row or edited
            assert pair is not None
            each.add(pair.group(1), pair.group(2))
        elif at is not None:
            if wheel := _WHEEL.search(line):
                each.add(at.group(1), wheel.group(1))
        elif not _EDITED.match(line):
            if rows >= LEAST_LINES:
                found.append(each)
            each, rows = _List(number + 1, whole=False), 0
            continue
        rows += 1
    return found


def _exported(lines: list[str]) -> list[_List]:
    """``conda env export``: rows with one "=", pip's with two."""
    each: _List | None = None
    found: list[_List] = []
    for number, line in enumerate(lines):
        if "=" in line and (row := EXPORT.match(line)):
            if each is None:
                each = _List(number, whole=False)
                found.append(each)
            each.add(row.group(1), row.group(2), row.group(3) or "conda")
        elif each is not None and "==" in line and (row := _EXPORT_PIP.match(line)):
            each.add(row.group(1), row.group(2))
        elif each is not None and (prefix := _PREFIX.match(line)):
            each.prefix, each = prefix.group(1), None
    return [each for each in found if len(each.packages) >= LEAST_LINES]


def _changes(lines: list[str]) -> list[_List]:
    """What pip and uv say that they installed, or found installed."""
    each = _List(0, whole=False)
    for number, line in enumerate(lines):
        if "Successfully installed" in line and (row := _INSTALLED.match(line)):
            for word in row.group(1).split()[:MOST_PACKAGES]:
                name, dash, version = word.rpartition("-")
                if dash and name and re.fullmatch(_VERSION, version):
                    each.add(name, version)
        elif "already satisfied" in line and (row := _SATISFIED.search(line)):
            each.add(row.group(1), row.group(3))
            each.site_packages = row.group(2) if row.group(2).startswith("/") else each.site_packages
        elif "==" in line and (row := _UV_CHANGE.match(line)):
            each.add(row.group(1), row.group(2))
        else:
            continue
        each.line = number
    return [each] if each.packages else []


def _build(torch: str | None, packages: dict[str, str], builds: dict[str, str]) -> Build | None:
    """By torch's ending, else conda's build string, else the CUDA runtime wheel, whose release torch's wheel pins."""
    if torch is None or (told := build_of(torch)) is not None:
        return build_of(torch)
    build = builds.get("pytorch", "")
    if found := _CONDA_CUDA.search(build):
        number = found.group(1)
        return Build("cuda", number if "." in number else f"{number[:2]}.{number[2]}")
    if re.search(r"(?:^|_)cpu", build):
        return Build("cpu")
    for name, version in packages.items():
        if re.fullmatch(r"nvidia-cuda-runtime(?:-cu\d\d)?", name):
            return Build("cuda", ".".join(version.split(".")[:2]))
    return told


__all__ = ["CONDA_HEAD", "EXPORT", "FREEZE", "HEAD", "parse", "read"]
