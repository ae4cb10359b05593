"""Tables that ship with the checks. Every row says where it comes from and when that was looked up."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

V = TypeVar("V")
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_CAUSE = re.compile(r"""(?:^|[{,] ?)cause = ["']([\w-]+)["']""", re.MULTILINE)
_GROUP = re.compile(r"\[+(\w+)")
_LINE = re.compile(r"^(?:\"([^\"]+)\"|([\w-]+)) = ", re.MULTILINE)
_HEAD = re.compile(r"^\[([\w-]+)\]$", re.MULTILINE)


@cache
def table(name: str) -> dict[str, Any]:
    """The parsed TOML table ``name`` (without ending)."""
    return tomllib.loads(text(name))


def text(name: str) -> str:
    """The table as a text. Files of a package lie on a disk: importlib.resources would cost more than most tables."""
    return _read(os.path.join(_FOLDER, f"{name}.toml"))


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def signatures() -> Iterator[str]:
    """The texts of the tables of known log lines, in the order of their names."""
    folder = os.path.join(_FOLDER, "signatures")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".toml"):
            yield _read(os.path.join(folder, name))


class Later(Mapping[str, V]):
    """A mapping that is made when it is first looked into: most runs look into few tables."""

    def __init__(self, make: Callable[[], Mapping[str, V]]) -> None:
        self._make = cache(make)

    def __getitem__(self, name: str) -> V:
        return self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())


class Rows(Mapping[str, dict[str, Any]]):
    """A table of tables that parses a row when it is asked for: the long ones cost a tenth of a second as a whole."""

    def __init__(self, text: str) -> None:
        heads = list(_HEAD.finditer(text))
        ends = [head.start() for head in heads[1:]] + [len(text)]
        self._texts = {head.group(1): text[head.end() : end] for head, end in zip(heads, ends, strict=True)}
        self._parsed: dict[str, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._parsed:
            self._parsed[name] = tomllib.loads(self._texts[name])
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class Lines(Mapping[str, Any]):
    """A section of a table whose rows are a line each: its names are known, a row is parsed when it is asked for."""

    def __init__(self, part: str) -> None:
        heads = list(_LINE.finditer(part))
        ends = [head.start() for head in heads[1:]] + [len(part)]
        self._texts = {h.group(1) or h.group(2): part[h.start() : end] for h, end in zip(heads, ends, strict=True)}
        self._parsed: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._parsed:
            (self._parsed[name],) = tomllib.loads(self._texts[name]).values()
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def having(self, field: str) -> dict[str, Any]:
        """Row -> its ``field``, of those that have it; the others are not parsed."""
        return {name: self[name][field] for name, text in self._texts.items() if f" {field} = " in text}


class Sections(Later[Lines]):
    """A table of sections with a row on each line, read when it is first looked into."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda: _sections(text(name)))


def _sections(whole: str) -> dict[str, Lines]:
    heads = list(_HEAD.finditer(whole))
    ends = [head.start() for head in heads[1:]] + [len(whole)]
    return {head.group(1): Lines(whole[head.end() : end]) for head, end in zip(heads, ends, strict=True)}


@cache
def causes() -> Rows:
    """causes.toml, cause by cause."""
    return Rows(text("causes"))


@cache
def causes_in(name: str, *groups: str) -> tuple[str, ...]:
    """The causes that rows of ``groups`` in a table name, without parsing it: checks declare them when they are loaded."""
    found: dict[str, None] = {}
    for part in re.split(r"^(?=\[)", text(name), flags=re.MULTILINE):
        if (head := _GROUP.match(part)) and head.group(1) in groups:
            found.update(dict.fromkeys(_CAUSE.findall(part)))
    return tuple(found)
