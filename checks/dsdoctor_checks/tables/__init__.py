"""Tables that ship with the checks. Every row says where it comes from and when that was looked up."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_CAUSE = re.compile(r"""(?:^|[{,] ?)cause = ["']([\w-]+)["']""", re.MULTILINE)
_GROUP = re.compile(r"\[+(\w+)")
_HEAD = re.compile(r"^\[([\w-]+)\]$", re.MULTILINE)


@cache
def table(name: str) -> dict[str, Any]:
    """The parsed TOML table ``name`` (without ending)."""
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


def signatures() -> Iterator[str]:
    """The texts of the tables of known log lines, in the order of their names."""
    folder = resources.files(__package__).joinpath("signatures")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            yield file.read_text("utf-8")


class Later(Mapping[str, Any]):
    """A mapping that is made when it is first looked into: most runs look into few tables."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = cache(make)

    def __getitem__(self, name: str) -> Any:
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


@cache
def causes() -> Rows:
    """causes.toml, cause by cause."""
    return Rows(resources.files(__package__).joinpath("causes.toml").read_text("utf-8"))


@cache
def causes_in(name: str, *groups: str) -> tuple[str, ...]:
    """The causes that rows of ``groups`` in a table name, without parsing it: checks declare them when they are loaded."""
    text = resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8")
    found: dict[str, None] = {}
    for part in re.split(r"^(?=\[)", text, flags=re.MULTILINE):
        if (head := _GROUP.match(part)) and head.group(1) in groups:
            found.update(dict.fromkeys(_CAUSE.findall(part)))
    return tuple(found)
