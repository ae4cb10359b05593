"""Findings about a ds_config → edits of its text. Only what cannot do harm; comments, order and spelling of the rest stay.

Pure: nothing is read or written. An edit whose place is not clear, or that touches the place of another, is left out; and
a text that would not be read afterwards, or would say something else than what was meant, is given back as it was.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from dsdoctor.config.move import moved
from dsdoctor.facts import DsConfig
from dsdoctor.model import ConfigEdit, Severity, Verdict
from dsdoctor.readers import ds_config
from dsdoctor.readers.config_spans import Span, spans

MOST = 200  # edits of one file
MOST_READ = 1_000_000  # characters that are read to try edits one by one: a real config is read hundreds of times
_BLANK = " \t"
_AFTER = re.compile(r"\s*,")
_BARE = re.compile(r"[A-Za-z_]\w*")


class Change(NamedTuple):
    """``text[start:end]`` becomes ``new``."""

    start: int
    end: int
    new: str


class Fixed(NamedTuple):
    """The new text, and which edits it has."""

    text: str
    done: tuple[ConfigEdit, ...]
    left: tuple[ConfigEdit, ...]  # not made: the place is not clear


def edits_of(verdicts: Iterable[Verdict], *, lean: bool = False) -> tuple[ConfigEdit, ...]:
    """The safe edits that findings propose, each once; ``lean``: those of mere advice, too, which leave out what does nothing."""
    wanted = [v for v in verdicts if not v.ignored and (lean or v.severity is not Severity.INFO)]
    found = dict.fromkeys(e for v in wanted for f in v.findings if f.remedy for e in f.remedy.edits)
    return tuple(found)[:MOST]


def apply(text: str, edits: Iterable[ConfigEdit]) -> Fixed:
    """``text`` with all edits that can be made; those that touch each other are made one after the other."""
    done: list[ConfigEdit] = []
    left, mark = tuple(edits), "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    while left:
        passed = _at_once(text, left)
        if not passed.done:
            break
        text, left = passed.text, passed.left
        done += passed.done
    return Fixed(mark + text, tuple(done), left)


def _at_once(text: str, edits: tuple[ConfigEdit, ...]) -> Fixed:
    """The edits that can be made without touching each other: usually all, else one is tried after the other."""
    places = spans(text)
    clear: list[tuple[ConfigEdit, list[Change]]] = []
    for edit in edits:
        wanted = _changes(text, [p for p in places if p.path == edit.key], edit)
        if wanted and not any(_touch(new, old) for new in wanted for _, others in clear for old in others):
            clear.append((edit, wanted))
    if not _holds(text, clear):
        tried, clear = clear[: MOST_READ // max(len(text), 1)], []
        for one in tried:
            clear += [one] if _holds(text, [*clear, one]) else []
    done = tuple(edit for edit, _ in clear)
    return Fixed(_with(text, clear), done, tuple(edit for edit in edits if edit not in done))


def _with(text: str, made: list[tuple[ConfigEdit, list[Change]]]) -> str:
    return _written(text, (change for _, changes in made for change in changes))


def _holds(text: str, made: list[tuple[ConfigEdit, list[Change]]]) -> bool:
    return _says(_with(text, made), text, [edit for edit, _ in made])


def diff(old: str, new: str, path: str) -> str:
    """A unified diff, as ``patch`` takes it."""
    import difflib

    name = path.lstrip("/")
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _changes(text: str, places: list[Span], edit: ConfigEdit) -> list[Change]:
    """What an edit does to the text; nothing when its place is not clear."""
    if edit.action == "drop-twins":
        values = {text[p.value : p.end].strip() for p in places}
        return [_without(text, p) for p in places[:-1]] if len(values) == 1 else []
    if len(places) != 1:
        return []
    if edit.action == "move":
        return _moving(text, edit)
    place = places[0]
    if edit.action == "remove":
        return [_without(text, place)]
    if edit.action == "set":
        return [Change(place.value, place.value + len(text[place.value : place.end].rstrip()), edit.value or "null")]
    return [Change(place.key, place.key_end, _quoted(text[place.key], edit.value or ""))]


def _moving(text: str, edit: ConfigEdit) -> list[Change]:
    found = moved(text, spans(text), edit.key, edit.value or "")
    if found is None:
        return []
    member, instead, place, put_in = found
    if not put_in:
        return [Change(member.key, member.value + len(text[member.value : member.end].rstrip()), instead)]
    return [_without(text, member), Change(place, place, put_in)]


def _quoted(mark: str, name: str) -> str:
    if mark in "\"'":
        return f"{mark}{name}{mark}"
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _without(text: str, place: Span) -> Change:
    """The member with its comma, and with its line when nothing else stands there."""
    start, end = place.key, place.value + len(text[place.value : place.end].rstrip())
    if after := _AFTER.match(text, end):
        end = after.end()
    else:
        before = text[:start].rstrip()
        if before.endswith(","):
            return Change(len(before) - 1, end, "")
    begin = start - (len(text[:start]) - len(text[:start].rstrip(_BLANK)))
    rest = end + (len(text[end:]) - len(text[end:].lstrip(_BLANK)))
    if text[begin - 1 : begin] in ("", "\n") and text[rest : rest + 1] in ("\n", "\r"):
        return Change(begin, text.index("\n", rest) + 1 if "\n" in text[rest:] else rest, "")
    return Change(start, rest, "")


def _touch(one: Change, other: Change) -> bool:
    return one.start < other.end and other.start < one.end


def _written(text: str, changes: Iterable[Change]) -> str:
    for change in sorted(changes, reverse=True):
        text = text[: change.start] + change.new + text[change.end :]
    return text


@lru_cache(maxsize=1)  # every trial is compared with the same text
def _read(text: str) -> DsConfig:
    return ds_config.parse(text, "")


def _says(new: str, old: str, edits: list[ConfigEdit]) -> bool:
    """True when the new text is read, and says what the old one said with these edits."""
    before, after = _read(old), ds_config.parse(new, "")
    if after.problem is not None or (before.strict_json and not after.strict_json):
        return False
    meant: Any = json.loads(json.dumps(before.values))
    # inner keys first, and values before names: a renamed section would hide them
    for edit in sorted(edits, key=lambda e: (-e.key.count("."), e.action != "set")):
        _edit(meant, edit)
    return bool(meant == after.values)


def _edit(values: dict[str, Any], edit: ConfigEdit) -> None:
    *parents, name = edit.key.split(".")
    here: Any = values
    for parent in parents:
        here = here.get(parent) if isinstance(here, dict) else None
    if not isinstance(here, dict) or name not in here or edit.action == "drop-twins":
        return
    value = here.pop(name)
    if edit.action == "move":
        _put(values, (edit.value or "").split("."), value)
    elif edit.action == "rename":
        if edit.value in here:
            here[name] = value  # both would be lost in one: the comparison fails
            return
        here[edit.value or ""] = value
    elif edit.action == "set":
        here[name] = ds_config.parse(f'{{"x": {edit.value}}}', "").values.get("x")


def _put(values: dict[str, Any], parts: list[str], value: Any) -> None:
    """The value at the dotted place; nothing where that is taken: the comparison fails then."""
    *parents, name = parts
    here: Any = values
    for parent in parents:
        here = here.setdefault(parent, {}) if isinstance(here, dict) else None
    if isinstance(here, dict):
        here.setdefault(name, value)
