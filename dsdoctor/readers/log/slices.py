"""The parts of a text that may tell of the machine: its beginning, its end, and what follows a landmark."""

from collections.abc import Callable, Sequence

from dsdoctor.facts import TextKind
from dsdoctor.readers import kinds
from dsdoctor.readers.log.text import Page
from dsdoctor.signatures import fragment

HEAD_BYTES = 48 * 1024
TAIL_BYTES = 16 * 1024
AFTER = 300  # lines from a landmark on that are kept
MOST = 12  # landmarks of one text
_LANDMARKS = [mark for mark in kinds.landmarks if len(fragment(mark.literal)) > 4]
FRAGMENTS = tuple(dict.fromkeys(fragment(mark.literal) for mark in _LANDMARKS))


class Slices:
    """Keeps them while the pages of one file go by."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._head_bytes = 0
        self._tail: list[bytes] = []
        self._found: list[bytes] = []
        self._covered = 0  # lines from the beginning that are kept already
        self._left = MOST

    def take(self, page: Page) -> None:
        lines = page.lines
        if self._head_bytes < HEAD_BYTES:
            taken = _fitting(lines, HEAD_BYTES - self._head_bytes)
            self._head += lines[:taken]
            self._head_bytes += sum(map(len, lines[:taken])) + taken
            if taken == len(lines):
                self._covered = page.numbers[-1]
            lines = lines[taken:]
        if lines:
            self._tail = [*self._tail, *lines][-_fitting([*self._tail, *lines][::-1], TAIL_BYTES) :]

    def look(self, number: int, words: str, following: Callable[[int], Sequence[bytes]]) -> None:
        """Keep what begins on this line, when it is a landmark that is not kept yet."""
        if number <= self._covered or not self._left:
            return
        if any(mark.on(words) for mark in _LANDMARKS):
            self._left -= 1
            self._covered = number + AFTER
            self._found += [words.encode("utf-8", "replace"), *following(AFTER)]

    def text(self) -> str:
        return b"\n".join([*self._head, *self._found, *self._tail]).decode("utf-8", "replace")

    def kinds(self) -> tuple[TextKind, ...]:
        return kinds.kinds(self.text())


def _fitting(lines: list[bytes], room: int) -> int:
    """How many of the lines fit into ``room`` bytes, at least one."""
    taken = 0
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        taken += 1
    return max(taken, 1)
