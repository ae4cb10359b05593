"""A log as pages of lines: unpacked, decoded to UTF-8 bytes where it is UTF-16, bounded, never whole in memory."""

import bz2
import codecs
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from dsdoctor.readers.log.boxes import CORNER, unwrapped

PAGE_BYTES = 1024 * 1024
MOST_BYTES = 2 * 1024**3
LONGEST_LINE = 3500  # bytes; a longer one is cut into pieces
_OVERLAP = 512
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|[ -/]{0,8}[0-~])")
_PACKED: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ": ("xz", lzma.open),
}
_BROKEN = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Page(NamedTuple):
    """Lines that follow one another. A line with carriage returns is one entry per piece, all with its number."""

    lines: list[bytes]
    numbers: Sequence[int]  # 1-based


class Text:
    """One file or stream. ``pages()`` reads it once; the other attributes are right when it has ended."""

    def __init__(self, name: str) -> None:
        self.name = "standard input" if name == "-" else name
        self._source = name
        self.size_bytes = 0
        self.lines = 0
        self.packed: str | None = None
        self.cut: str | None = None

    def pages(self) -> Iterator[Page]:
        """Raises OSError when it cannot be opened; what goes wrong later is told in ``cut``."""
        rest = b""
        for chunk in self._bounded():
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                yield self._page(whole)
            elif len(rest) > 4 * PAGE_BYTES:  # one endless line
                yield self._page(rest)
                rest = b""
        if rest:
            yield self._page(rest)

    def _page(self, data: bytes) -> Page:
        if b"\x1b" in data:
            data = _ESCAPES.sub(b"", data)
        lines = data.split(b"\n")
        if CORNER in data:
            lines = unwrapped(lines)
        first = self.lines + 1
        self.lines += len(lines)
        numbers: Sequence[int] = range(first, self.lines + 1)
        if b"\r" not in data and len(max(lines, key=len)) <= LONGEST_LINE:
            return Page(lines, numbers)
        pieces = [
            (piece, n) for line, n in zip(lines, numbers, strict=True) for part in _parts(line) for piece in _cut(part)
        ]
        return Page([piece for piece, _ in pieces], [n for _, n in pieces])

    def _bounded(self) -> Iterator[bytes]:
        for chunk in self._chunks():
            self.size_bytes += len(chunk)
            if chunk:
                yield chunk
            if self.size_bytes > MOST_BYTES:
                self.cut = f"only the first {MOST_BYTES // 1024**3} GiB were read"
                return

    def _chunks(self) -> Iterator[bytes]:
        """Bytes in UTF-8 (or whatever one-byte code it is)."""
        stream: Any = sys.stdin.buffer if self._source == "-" else open(self._source, "rb")  # noqa: SIM115
        try:
            head = stream.peek(8)
            body: Iterator[bytes] = _read(stream)
            for magic, (name, opener) in _PACKED.items():
                if head.startswith(magic):
                    self.packed = name
                    body = _read(opener(stream))
            for mark, code in _WIDE.items():
                if head.startswith(mark):
                    self.packed = "utf-16"
                    body = _decoded(body, code)
            yield from body
        except _BROKEN as error:
            self.cut = f"it is damaged from here on: {error}"
        except IsADirectoryError:
            raise
        except OSError as error:
            if not self.size_bytes:
                raise
            self.cut = f"it could not be read to its end: {error.strerror or error}"
        finally:
            if self._source != "-":
                stream.close()


def _read(stream: Any) -> Iterator[bytes]:
    """About a page at a time; what came before an error is given out before it is raised."""
    held: list[bytes] = []
    size = 0
    try:
        while chunk := stream.read1(PAGE_BYTES):
            held.append(chunk)
            size += len(chunk)
            if size >= PAGE_BYTES:
                yield b"".join(held)
                held, size = [], 0
    except _BROKEN:
        yield b"".join(held)
        raise
    yield b"".join(held)


def _decoded(body: Iterator[bytes], code: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(code)("replace")
    for chunk in body:
        yield decoder.decode(chunk).lstrip("\ufeff").encode("utf-8", "replace")


def _parts(line: bytes) -> list[bytes]:
    """What a terminal would have shown one after the other on this line."""
    line = line.rstrip(b"\r")
    return [part for part in line.split(b"\r") if part] or [b""] if b"\r" in line else [line]


def _cut(line: bytes) -> list[bytes]:
    if len(line) <= LONGEST_LINE:
        return [line]
    step = LONGEST_LINE - _OVERLAP
    return [line[start : start + LONGEST_LINE] for start in range(0, len(line), step)]
