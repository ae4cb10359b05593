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
GRAM = 3  # letters by which a word is looked up
_ANCHOR = re.compile(r"^anchor\s*=\s*(?P<value>\S.*)$", re.MULTILINE)
_RUN = re.compile(rb"[^\s\d]+")
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
        self.anchor = _string(found.group("value")) if found is not None else ""

    @cached_property
    def signature(self) -> Signature:
        parsed = signature_of(tomllib.loads(self.text))
        for regexes in (parsed.regex, parsed.near_regexes, parsed.not_near_regexes):
            assert regexes is not None  # they are compiled, or the row is wrong
        return parsed


def _string(value: str) -> str:
    """A TOML string on one line; nearly all are plain, and a thousand calls of a parser are a fifth of a second."""
    body, quote = value.rstrip()[1:-1], value[0]
    if value.rstrip()[-1] == quote and quote not in body and (quote == "'" or "\\" not in body):
        return body
    return str(tomllib.loads(f"value = {value}")["value"])


class Fragments:
    """Finds which of many short texts stand in a word, by their groups of three characters."""

    def __init__(self) -> None:
        self._by_gram: dict[bytes, list[tuple[bytes, int]]] = {}
        self._tiny: list[tuple[bytes, int]] = []
        self._grams: frozenset[bytes] = frozenset()

    def add(self, part: bytes, number: int) -> None:
        """``number`` is what ``of_word`` gives for words that hold ``part``."""
        if len(part) < GRAM:
            self._tiny.append((part, number))
            return
        grams = [part[start : start + GRAM] for start in range(len(part) - GRAM + 1)]
        rarest = min(grams, key=lambda gram: len(self._by_gram.get(gram, ())))
        self._by_gram.setdefault(rarest, []).append((part, number))
        self._grams = frozenset()

    def of_word(self, word: bytes) -> tuple[int, ...]:
        """The numbers of all that stand in ``word``."""
        if not self._grams:
            self._grams = frozenset(self._by_gram)
        there = self._grams.intersection([word[start : start + GRAM] for start in range(len(word) - GRAM + 1)])
        found = [number for gram in there for part, number in self._by_gram[gram] if part in word]
        found += [number for part, number in self._tiny if part in word]
        return tuple(found)


class Signatures:
    """All known lines, and the fragments by which a line's words lead to them."""

    def __init__(self, tables: Iterable[str] = ()) -> None:
        """``tables``: texts of TOML tables. Rows that are none are told in ``problems`` and left out."""
        self.problems: list[str] = []
        rows = [_Row(row) for table in tables for row in f"\n{table}".split(f"\n{HEADER}\n")[1:]]
        self.problems += [
            f"a known line has no anchor on a line of its own: {_begin(row)}" for row in rows if not row.anchor
        ]
        self._rows = [row for row in rows if row.anchor]

    def __len__(self) -> int:
        return len(self._rows)

    def at(self, number: int) -> Signature | None:
        """The row, parsed and compiled; None when it cannot be, which ``problems`` then tell."""
        row = self._rows[number]
        try:
            return row.signature
        except (tomllib.TOMLDecodeError, msgspec.ValidationError, re.error) as error:
            problem = f"a known line cannot be used: {_begin(row)}: {error}"
            self.problems += [] if problem in self.problems else [problem]
            return None

    def anchor(self, number: int) -> str:
        return self._rows[number].anchor

    def all(self) -> list[Signature]:
        """Every row that can be used, parsed."""
        return [row for number in range(len(self)) if (row := self.at(number)) is not None]

    def parsed(self) -> list[Signature]:
        """Those that were looked at so far."""
        return [row.signature for row in self._rows if "signature" in row.__dict__]

    @cached_property
    def anchors(self) -> list[bytes]:
        """Of every row, by its number."""
        return [row.anchor.encode() for row in self._rows]

    @cached_property
    def fragments(self) -> Fragments:
        """By which words of a line lead to the numbers of its possible rows."""
        index = Fragments()
        for number, row in enumerate(self._rows):
            index.add(fragment(row.anchor), number)
        return index


def _begin(row: _Row) -> str:
    return " ".join(row.text.split())[:80]


def signature_of(row: dict[str, Any]) -> Signature:
    """A parsed row as a Signature. Raises msgspec.ValidationError for a row that is none."""
    remedy = {key: value for key, value in row.items() if key not in _OWN}
    return msgspec.convert({**{k: v for k, v in row.items() if k in _OWN}, "remedy": remedy}, Signature)


def fragment(anchor: str) -> bytes:
    """The longest run of an anchor without blanks and digits: it stands in one word of every line that has the anchor."""
    return max(_RUN.findall(anchor.encode()), key=len, default=b"")
