"""Known lines of logs, as TOML tables describe them, and the index that says which of them a line may be.

A table is a list of ``[[signature]]``; its keys are those of Signature. Nine hundred rows take a fifth of a second to
parse and as much to compile, and a log meets a dozen of them: so a table is cut at its headers, of each row only the anchor
is read at first, and a row is parsed and compiled when a line holds its anchor.
"""

import re
import sys
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import msgspec

from dsdoctor.facts.log import Role

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEADER = "[[signature]]"
WITHIN = 40
_ANCHOR = re.compile(r"^anchor\s*=\s*(?P<value>\S.*)$", re.MULTILINE)
_LETTERS = re.compile(rb"[A-Za-z_\x80-\xff]+")
_OWN = frozenset({"id", "role", "anchor", "pattern", "cause", "hides", "near", "not_near", "within", "last", "weight", "versions", "reason",
                  "example", "counter", "source", "date"})  # fmt: skip


class Signature(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One known line. What else a row holds is its remedy (see dsdoctor_checks/rows.py)."""

    id: str
    role: Role
    anchor: str  # stands in every line that ``pattern`` matches
    pattern: str  # for one line
    cause: str | None = None
    hides: tuple[str, ...] = ()
    near: tuple[str, ...] = ()  # each matches some line at most ``within`` lines away
    not_near: tuple[str, ...] = ()  # none does
    within: int = WITHIN
    last: int | None = None  # at most so many lines of text follow
    weight: int = 5
    versions: dict[str, str] = {}  # distribution -> specifier; does not count when the text tells another version
    reason: str
    example: tuple[str, ...] = ()
    counter: tuple[str, ...] = ()
    source: str = ""
    date: str = ""
    remedy: dict[str, Any] = {}

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @cached_property
    def near_regexes(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(re.compile, self.near))

    @cached_property
    def not_near_regexes(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(re.compile, self.not_near))


class _Row:
    """A row of a table that is parsed when it is wanted."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = _ANCHOR.search(text)
        if found is None:
            raise ValueError(f"a signature has no anchor on a line of its own: {text[:80]!r}")
        self.anchor = str(tomllib.loads(found.group())["anchor"])

    @cached_property
    def signature(self) -> Signature:
        return signature_of(tomllib.loads(self.text))


class Signatures:
    """All known lines, found by the words of a line."""

    def __init__(self, tables: Iterable[str] = ()) -> None:
        """``tables``: texts of TOML tables. Raises ValueError for a row without an anchor."""
        self._rows = [_Row(row) for table in tables for row in table.split(f"\n{HEADER}\n")[1:]]
        self._by_fragment: dict[bytes, list[int]] = {}
        for number, row in enumerate(self._rows):
            self._by_fragment.setdefault(fragment(row.anchor), []).append(number)
        self._known_words: dict[bytes, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def all(self) -> list[Signature]:
        """Every row, parsed."""
        return [row.signature for row in self._rows]

    def with_word(self, word: bytes) -> tuple[int, ...]:
        """Numbers of the rows whose anchor may stand in a line that has ``word``."""
        known = self._known_words.get(word)
        if known is None:
            known = tuple(n for part, rows in self._by_fragment.items() if part in word for n in rows)
            if len(self._known_words) < 200_000:
                self._known_words[word] = known
        return known

    def anchor(self, number: int) -> str:
        return self._rows[number].anchor

    def __getitem__(self, number: int) -> Signature:
        return self._rows[number].signature


def signature_of(row: dict[str, Any]) -> Signature:
    """A parsed row as a Signature. Raises msgspec.ValidationError for a row that is none."""
    remedy = {key: value for key, value in row.items() if key not in _OWN}
    return msgspec.convert({**{k: v for k, v in row.items() if k in _OWN}, "remedy": remedy}, Signature)


def fragment(anchor: str) -> bytes:
    """The longest run of letters in an anchor: the part by which words of a line are looked up."""
    return max(_LETTERS.findall(anchor.encode()), key=len, default=b"")
