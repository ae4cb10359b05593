"""The parts of a text that may tell of the machine: its beginning, its end, and what follows a landmark."""

from collections.abc import Callable

from dsdoctor.facts import TextKind
from dsdoctor.readers.log.text import Page

HEAD_BYTES = 192 * 1024
TAIL_BYTES = 64 * 1024


class Slices:
    """Keeps them while the pages of one file go by."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._head: list[bytes] = []
        self._head_bytes = 0
        self._tail: list[bytes] = []

    def take(self, page: Page) -> None:
        lines = page.lines
        if self._head_bytes < HEAD_BYTES:
            taken = _fitting(lines, HEAD_BYTES - self._head_bytes)
            self._head += lines[:taken]
            self._head_bytes += sum(map(len, lines[:taken])) + taken
            lines = lines[taken:]
        if lines:
            self._tail = [*self._tail, *lines][-_fitting([*self._tail, *lines][::-1], TAIL_BYTES) :]

    def parts(self) -> list[tuple[str, str]]:
        text = b"\n".join([*self._head, *self._tail]).decode("utf-8", "replace")
        return [(self.file, text)] if text.strip() else []

    def kinds(self) -> tuple[TextKind, ...]:
        return ()


def _fitting(lines: list[bytes], room: int) -> int:
    """How many of the lines fit into ``room`` bytes, at least one."""
    taken = 0
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        taken += 1
    return max(taken, 1)


Landmarks = Callable[[bytes], bool]
