"""Lines of a file with marks under what is meant. The file's text is data: what a terminal could obey shows as a sign."""

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from dsdoctor.redact_text import tokens
from dsdoctor.render.page import Page

_WORD = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^:{}\[\],\s]+")
_LEAST = 20  # characters of a line that are shown on the narrowest page


class Mark(NamedTuple):
    """What to mark: one sign, or the word that begins there."""

    line: int
    column: int
    word: bool = True
    first: bool = True  # what it is about; the others stand beside it


def add_excerpt(page: Page, lines: list[str], marks: Iterable[Mark]) -> None:
    """The marked lines in their order, each with its number; ^ under what it is about, - under the rest."""
    wanted: dict[int, list[Mark]] = {}
    for mark in sorted(marks):
        if mark.line <= len(lines) and mark.column <= len(lines[mark.line - 1]) + 1:
            wanted.setdefault(mark.line, []).append(mark)
    gutter = max((len(str(number)) for number in wanted), default=0)
    room = max(min(page.width, 120) - gutter - 5, _LEAST)
    for number, mine in wanted.items():
        shown, under = _marked(*_without_tokens(lines[number - 1], mine), room, "\u2026" if page.unicode else "~")
        page.add(page.paint(f"  {number:{gutter}} |", "dim") + f" {shown}".rstrip())
        kind = "error" if any(mark.first for mark in mine) else "dim"
        page.add(page.paint(f"  {'':{gutter}} |", "dim") + f" {page.paint(under, kind)}")


def _without_tokens(line: str, marks: list[Mark]) -> tuple[str, list[Mark]]:
    """The line without secrets, and the marks where their words are then."""
    hidden = tokens(line)
    if hidden == line:
        return line, marks
    return hidden, [mark._replace(column=len(tokens(line[: mark.column - 1])) + 1) for mark in marks]


def _marked(line: str, marks: list[Mark], room: int, cut: str) -> tuple[str, str]:
    """The line, as much of it as has room, and its marks."""
    spans = [(*_span(line, mark), "^" if mark.first else "-") for mark in marks]
    under = [" "] * (max(end for _, end, _ in spans))
    for start, end, sign in spans:
        under[start:end] = sign * (end - start)
    main = next((start for start, _, sign in spans if sign == "^"), spans[0][0])
    begin = 0 if len(line.rstrip()) <= room else max(0, min(main - room // 3, len(line) - room))
    stop = begin + room
    text = "".join(map(_printable, line[begin:stop]))
    row = "".join(sign * _width(char) for char, sign in zip(text.ljust(len(under)), under[begin:stop], strict=False))
    if begin:
        text = cut + text[1:]
    return text[:-1] + cut if len(line.rstrip()) > stop else text, row.rstrip()


def _span(line: str, mark: Mark) -> tuple[int, int]:
    start = mark.column - 1
    found = _WORD.match(line, start) if mark.word else None
    return start, max(found.end() if found else 0, start + 1)


def _printable(char: str) -> str:
    return char if char.isprintable() else " " if char == "\t" else "\ufffd"


def _width(char: str) -> int:
    """Columns that a terminal gives to a character."""
    if char.isascii():
        return 1
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


def lines_of(text: str) -> list[str]:
    """The lines of a file as editors count them."""
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
