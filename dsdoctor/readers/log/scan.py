"""Find the few lines of a log that matter, at the speed of splitting it.

Lines that differ in digits only have one *shape*; a shape without a telling word is looked at once, however often it
comes. A line is looked at when it has a word that holds the longest word of some anchor (see signatures.py), then the
anchors are, and only then the patterns. So a hundred megabytes of steps cost little more than their line ends.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dsdoctor.readers.log.prefixes import take_apart
from dsdoctor.readers.log.text import Page
from dsdoctor.signatures import Fragments, Signatures

_DIGITS = b"0123456789"
ALSO = -1  # the number of what the caller wants for its own sake
MOST_SHAPES = 200_000  # remembered; beyond that a line is looked at again
MOST_OF_A_SHAPE = 200  # telling lines of one shape that are looked at


class Line(NamedTuple):
    """A line that may tell something, with the numbers of the signatures that it may be."""

    number: int
    raw: bytes
    candidates: tuple[int, ...]
    around: "Around"

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(number for number in self.candidates if number != ALSO)


class Around:
    """The lines before and after, cleaned, as far as the neighbouring pages go."""

    def __init__(self, pages: tuple[Page | None, Page, Page | None], index: int) -> None:
        self._pages, self._index = pages, index

    def before(self, count: int) -> list[str]:
        return [take_apart(raw).words for raw in self._before(count)]

    def after(self, count: int) -> list[str]:
        return [take_apart(raw).words for raw in self.raw_after(count)]

    def lines(self, count: int) -> Iterator[str]:
        """The line itself and ``count`` on either side, nearest first."""
        before, after = self._before(count)[::-1], self.raw_after(count)
        yield take_apart(self._pages[1].lines[self._index]).line
        for step in range(count):
            for side in (before, after):
                if step < len(side):
                    yield take_apart(side[step]).line

    def _before(self, count: int) -> list[bytes]:
        previous, page, _ = self._pages
        lines = page.lines[max(0, self._index - count) : self._index]
        missing = count - len(lines)
        return [*previous.lines[-missing:], *lines] if previous and missing > 0 else lines

    def raw_after(self, count: int) -> list[bytes]:
        _, page, following = self._pages
        lines = page.lines[self._index + 1 : self._index + 1 + count]
        missing = count - len(lines)
        return [*lines, *following.lines[:missing]] if following and missing > 0 else lines


class Scanner:
    """Goes through the pages of one text. ``also``: parts of words that are telling for the caller's own sake."""

    def __init__(self, signatures: Signatures, also: Sequence[bytes] = ()) -> None:
        self._known, self._anchors = signatures.fragments, signatures.anchors
        self._own = Fragments()
        for part in also:
            self._own.add(part, ALSO)
        self._seen: set[bytes] = set()
        self._counts: dict[bytes, int] = {}
        self._dull: set[bytes] = set()
        self._telling: dict[bytes, tuple[int, ...]] = {}

    def lines(self, pages: Iterator[Page]) -> Iterator[Line]:
        """The telling lines, in order. A page is handed out when the one after it is known."""
        previous: Page | None = None
        page = next(pages, None)
        while page is not None:
            following = next(pages, None)
            yield from self._page((previous, page, following))
            previous, page = page, following

    def _page(self, pages: tuple[Page | None, Page, Page | None]) -> Iterator[Line]:
        lines, numbers = pages[1]
        shapes = b"\n".join(lines).translate(None, _DIGITS).split(b"\n")
        seen = self._seen
        for index in [i for i, shape in enumerate(shapes) if shape not in seen]:
            shape = shapes[index]
            if shape in seen:
                continue
            rows = [self._rows(word) for word in set(shape.split()).difference(self._dull)]
            possible = set[int]().union(*rows)
            if not possible:
                self._forget(shape)
                continue
            self._count(shape)
            raw = lines[index]
            near = tuple(n for n in sorted(possible) if n == ALSO or self._anchors[n] in raw or raw[:2] == b'{"')
            if near:
                yield Line(numbers[index], raw, near, Around(pages, index))

    def _rows(self, word: bytes) -> tuple[int, ...]:
        rows = self._telling.get(word)
        if rows is None:
            rows = (*self._known.of_word(word), *self._own.of_word(word))
            if rows and len(self._telling) < MOST_SHAPES:
                self._telling[word] = rows
            elif len(self._dull) < MOST_SHAPES:
                self._dull.add(word)
        return rows

    def _count(self, shape: bytes) -> None:
        self._counts[shape] = self._counts.get(shape, 0) + 1
        if self._counts[shape] >= MOST_OF_A_SHAPE:
            self._forget(shape)

    def _forget(self, shape: bytes) -> None:
        if len(self._seen) < MOST_SHAPES:
            self._seen.add(shape)
