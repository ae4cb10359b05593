"""From files to facts: what of them is known, what was raised, how processes ended, and the parts that tell of a machine."""

from collections.abc import Iterator, Sequence

import msgspec

from dsdoctor.facts import Log, LogException, LogExit, LogFile, LogPlace
from dsdoctor.readers.log import ends
from dsdoctor.readers.log.matching import Matches
from dsdoctor.readers.log.prefixes import Said, take_apart
from dsdoctor.readers.log.scan import Line, Scanner
from dsdoctor.readers.log.slices import FRAGMENTS, Slices
from dsdoctor.readers.log.text import Page, Text
from dsdoctor.signatures import Signatures

MOST = 200  # exceptions and exits that are kept of one file
_TAIL = 12
_SHOWN = 400


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """``log`` and, beside it, the parts of the text that may tell of the machine: (file, text)."""

    log: Log
    parts: tuple[tuple[str, str], ...] = ()


def read(names: Sequence[str], signatures: Signatures) -> Reading:
    """Read files (``-`` is standard input) as one incident. Raises OSError for one that cannot be opened."""
    readers = [_FileReader(name, signatures) for name in names]
    for reader in readers:
        reader.read()
    matches = tuple(match for reader in readers for match in reader.matches.found())
    exceptions = tuple(e for reader in readers for e in reader.exceptions)
    exits = tuple(e for reader in readers for e in reader.exits)
    said = [*(m.place.rank for m in matches), *(e.place.rank for e in exceptions), *(e.rank for e in exits)]
    log = Log(
        files=tuple(reader.file() for reader in readers),
        matches=matches,
        exceptions=exceptions,
        exits=exits,
        ranks=tuple(sorted({rank for rank in said if rank is not None})),
    )
    return Reading(log=log, parts=tuple((reader.text.name, reader.slices.text()) for reader in readers))


class _FileReader:
    """Reads one file once."""

    def __init__(self, name: str, signatures: Signatures) -> None:
        self.text = Text(name)
        self.matches = Matches(signatures)
        self.slices = Slices()
        self.exceptions: list[LogException] = []
        self.exits: list[LogExit] = []
        self._scanner = Scanner(signatures, (*ends.FRAGMENTS, *FRAGMENTS))
        self._last: list[tuple[int, bytes]] = []

    def read(self) -> None:
        for line in self._scanner.lines(self._watched(self.text.pages())):
            self._look(line)
        self.matches.end(self._last)

    def _watched(self, pages: Iterator[Page]) -> Iterator[Page]:
        for page in pages:
            self.slices.take(page)
            told = [(n, raw) for n, raw in zip(page.numbers[-400:], page.lines[-400:], strict=True) if raw.strip()]
            self._last = [*self._last, *told][-400:]
            yield page

    def _look(self, line: Line) -> None:
        said = take_apart(line.raw)
        place = place_of(self.text.name, line.number, said)
        self.matches.look(line, said, place)
        self.slices.look(line.number, said.words, line.around.raw_after)
        if len(self.exceptions) < MOST and (raised := ends.exception(said, place, line.around.before)):
            self.exceptions.append(raised)
        if len(self.exits) < MOST and (ended := ends.exit_of(said, place, line.around.before)):
            self.exits.append(ended)

    def file(self) -> LogFile:
        text = self.text
        tail = tuple(place_of(text.name, n, take_apart(raw)) for n, raw in self._last[-_TAIL:])
        return LogFile(
            name=text.name,
            kinds=self.slices.kinds(),
            size_bytes=text.size_bytes,
            lines=text.lines,
            packed=text.packed,
            cut=text.cut,
            tail=tail,
        )


def place_of(file: str, number: int, said: Said) -> LogPlace:
    """Where a line stands, with its words cut to what a reader wants to see."""
    return LogPlace(
        file=file, line=number, text=said.words.strip()[:_SHOWN], rank=said.rank, host=said.host, time=said.time
    )
