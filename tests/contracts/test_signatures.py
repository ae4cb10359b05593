"""Every row of the tables of known lines is exercised, tells one cause, and cannot be made slow."""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from dsdoctor_checks import tables
from dsdoctor_checks.rows import remedy_of

from dsdoctor.facts import Log
from dsdoctor.prescribe import Prescriber
from dsdoctor.readers.log import read
from dsdoctor.readers.log.prefixes import LONGEST
from dsdoctor.registry import load
from dsdoctor.signatures import Signature, fragment, signature_of
from dsdoctor.testing import machine
from dsdoctor.triage import named

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
sre: Any = import_module("re._constants" if sys.version_info >= (3, 11) else "sre_constants")

KNOWLEDGE = load()
KNOWN = KNOWLEDGE.known_lines()
ROWS = KNOWN.all()
TABLES = sorted((Path(tables.__file__).parent / "signatures").glob("*.toml"))


def read_text(folder: Path, text: str) -> Log:
    path = folder / "example.log"
    path.write_text(text + "\n", encoding="utf-8")
    return read([str(path)], KNOWN).log


def test_rows_cut_from_their_text_are_those_that_a_toml_parser_reads() -> None:
    whole = [signature_of(row) for path in TABLES for row in tomllib.loads(path.read_text("utf-8"))["signature"]]
    assert sorted(ROWS, key=lambda row: row.id) == sorted(whole, key=lambda row: row.id)
    assert KNOWN.problems == []


def test_rows_are_complete_and_name_causes_that_there_are() -> None:
    ids = [row.id for row in ROWS]
    assert len(set(ids)) == len(ids), sorted(i for i in set(ids) if ids.count(i) > 1)
    for row in ROWS:
        assert row.example, f"{row.id} has no example"
        assert row.source, f"{row.id} has no source"
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.date), f"{row.id} has no date"
        assert len(fragment(row.anchor)) >= 2, f"{row.id}: its anchor leads nowhere"
        assert (row.cause is not None) == (row.role == "root"), f"{row.id}: a root has a cause, and nothing else has"
        assert {row.cause, *row.hides} - {None} <= set(KNOWLEDGE.causes), f"{row.id} names a cause that no table knows"
        assert 1 <= row.weight <= 9, row.id
        assert row.role != "root" or "order" in row.remedy, f"{row.id} names a cause and no remedy"


def test_a_table_can_be_read_by_a_person() -> None:
    for path in TABLES:
        assert len(path.read_text("utf-8").splitlines()) <= 900, path.name


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_example_is_known_and_its_cause_comes_first(tmp_path: Path, table: Path) -> None:
    wrong = [
        complaint for row in rows_of(table) for example in row.example for complaint in judged(tmp_path, row, example)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_what_only_looks_alike_is_told_apart(tmp_path: Path, table: Path) -> None:
    for row in rows_of(table):
        for counter in row.counter:
            assert row.id not in {match.signature for match in read_text(tmp_path, counter).matches}, (row.id, counter)


def rows_of(table: Path) -> list[Signature]:
    return [signature_of(row) for row in tomllib.loads(table.read_text("utf-8"))["signature"]]


def judged(folder: Path, row: Signature, example: str) -> Iterator[str]:
    """What is wrong with how an example is read: not known, another cause before it, or a cause where there is none."""
    log = read_text(folder, example)
    if row.id not in {match.signature for match in log.matches}:
        yield f"{row.id}: not known in {example!r}, known are {sorted(m.signature for m in log.matches)}"
    roots = [match for match in log.matches if match.role == "root"]
    if row.role != "root":
        yield from (f"{row.id} ({row.role}): {match.signature} names {match.cause} in {example!r}" for match in roots)
        return
    ranked = sorted(named(log), key=lambda cause: (-cause[1], cause[2]))
    if ranked and ranked[0][0] != row.cause:
        yield f"{row.id}: {ranked[0]} comes before {row.cause} in {example!r}"
    same = {match.cause for match in roots if match.weight == row.weight and match.place.line == roots[0].place.line}
    if len(same) > 1:
        yield f"{row.id}: one line names {sorted(str(cause) for cause in same)} with one weight: {example!r}"


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_no_pattern_repeats_a_repetition(table: Path) -> None:
    """A repetition without end inside of another is exponential, three of nearly anything in a row are cubic."""
    for row in rows_of(table):
        for pattern in (row.pattern, *row.near, *row.not_near):
            tree = parser.parse(pattern)
            assert not nested(tree, 0), f"{row.id}: {pattern} repeats a repetition"
            assert open_ends(tree) <= 2, f"{row.id}: {pattern} repeats nearly anything {open_ends(tree)} times"


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_pathological_lines_are_read(table: Path) -> None:
    """The longest line that is looked at, full of what each pattern begins with: a pattern that is not linear never ends."""
    for row in rows_of(table):
        line = row.example[0].splitlines()[-1]
        evil = [row.anchor, line, line[: len(line) // 2], "a", " ", "/a", "error: ", "'", "[", "1."]
        for text in (piece * (LONGEST // len(piece) + 1) for piece in evil):
            for regex in (row.regex, *row.near_regexes, *row.not_near_regexes):
                regex.search(text[:LONGEST])


def children(argument: Any) -> Iterator[Any]:
    """The sub-patterns in an operation's argument."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from children(part)


def is_open(operation: Any, argument: Any) -> bool:
    return operation in (sre.MAX_REPEAT, sre.MIN_REPEAT) and argument[1] is sre.MAXREPEAT


def nested(tree: Any, depth: int) -> bool:
    for operation, argument in tree:
        inside = depth + is_open(operation, argument)
        if inside > 1 or any(nested(child, inside) for child in children(argument)):
            return True
    return False


def open_ends(tree: Any) -> int:
    """The most repetitions without end of nearly any character that stand one after the other in an alternative."""
    total = 0
    for operation, argument in tree:
        inner = [open_ends(child) for child in children(argument)]
        mine = is_open(operation, argument) and takes_nearly_anything(argument[2])
        total += mine + (max(inner, default=0) if operation is sre.BRANCH else sum(inner))
    return total


def takes_nearly_anything(tree: Any) -> bool:
    return any(
        operation is sre.ANY
        or (
            operation is sre.IN and (argument[0][0] is sre.NEGATE or (sre.CATEGORY, sre.CATEGORY_NOT_SPACE) in argument)
        )
        for operation, argument in tree
    )


def test_text_of_a_log_gets_into_a_command_only_when_it_is_harmless() -> None:
    """``rm -rf {0}`` with a group that matches anything would run what a stranger's log says."""
    evil = ("$(reboot)", "; reboot", "`reboot`", "a b", "'", '"', "| sh", "&& sh", "\\", "<x>", "*", "-rf /")
    for row in ROWS:
        if not any(
            "{" in str(row.remedy.get(key, "")) for key in ("type", "pip", "uninstall", "set", "unset", "system")
        ):
            continue
        for number, group in enumerate(groups(row.pattern)):
            if not re.search(
                rf"\{{{number}\}}", str([row.remedy.get(k) for k in ("type", "pip", "uninstall", "set", "unset")])
            ):
                continue
            assert not any(re.fullmatch(group, text) for text in evil), (
                f"{row.id}: group {number} ({group}) matches anything"
            )


def groups(pattern: str) -> list[str]:
    """The sources of the capturing groups, in their order."""
    found: list[str] = []
    stack: list[tuple[int, int | None]] = []
    escaped = in_set = False
    for place, char in enumerate(pattern):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_set:
            in_set = char != "]"
        elif char == "[":
            in_set = True
        elif char == "(":
            capturing = pattern[place + 1 : place + 2] != "?"
            stack.append((place, len(found) if capturing else None))
            if capturing:
                found.append("")
        elif char == ")":
            start, number = stack.pop()
            if number is not None:
                found[number] = pattern[start + 1 : place]
    return found


def test_every_remedy_becomes_commands() -> None:
    prescriber = Prescriber.of(machine())
    for row in ROWS:
        if "order" in row.remedy:
            match = next(
                (m for text in row.example for line in text.splitlines() if (m := row.regex.search(line))), None
            )
            remedy = remedy_of(row.remedy, prescriber, match=match)
            assert remedy.order, row.id
            assert "{0}" not in " ".join((remedy.order, *remedy.commands)), row.id
