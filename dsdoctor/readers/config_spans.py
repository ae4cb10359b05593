"""Where each key and value of a ds_config stands in its text: for edits that leave everything else as it is."""

from typing import Any, NamedTuple

from dsdoctor.readers.hjson import Scanner, Stop


class Span(NamedTuple):
    """One member of an object: ``text[key:key_end]`` is its name as written, ``text[value:end]`` its value."""

    path: str  # dotted
    key: int
    key_end: int
    value: int
    end: int


class _Marker(Scanner):
    """The reader's own scanner, which also notes offsets."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.spans: list[Span] = []
        self.named: tuple[int, int] | None = None  # the key that was read last, until its value begins

    def key(self, at: int) -> tuple[str, int]:
        name, end = super().key(at)
        self.named = at, end
        return name, end

    def value(self, at: int, path: str, depth: int) -> tuple[Any, int]:
        named, self.named = self.named, None
        value, end = super().value(at, path, depth)
        if named is not None:
            self.spans.append(Span(path, *named, at, end))
        return value, end


def spans(text: str) -> list[Span]:
    """Every member in the order in which it ends; a key that stands twice has two. Empty for a text that cannot be read."""
    marker = _Marker(text)
    try:
        marker.root()
    except Stop:
        return []
    return marker.spans
