"""Lines for a terminal: wrapped, painted, and never with an escape that was not put there here."""

import textwrap

from dsdoctor.render.plain import clean, one_line

_COLOURS = {
    "error": "31;1", "warning": "33", "info": "36", "ready": "32", "blocked": "31", "unknown": "33",
    "not applicable": "2", "heading": "1", "dim": "2", "passed": "32", "command": "36",
}  # fmt: skip


class Page:
    """Collects lines at a width, coloured or not."""

    def __init__(self, width: int, color: bool, unicode: bool) -> None:
        self.width, self.color = max(width, 40), color
        self.bullet, self.unicode = "\u2022" if unicode else "-", unicode
        self.lines: list[str] = []

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if self.color and style in _COLOURS else text

    def add(self, text: str = "") -> None:
        self.lines.append(text)

    def heading(self, text: str) -> None:
        self.add()
        self.add(self.paint(text, "heading"))

    def wrap(self, text: str, first: str = "", rest: str | None = None) -> None:
        """Wrapped text; ``first`` starts its first line and ``rest`` the others (as many blanks when None)."""
        indent = " " * len(first) if rest is None else rest
        width = max(self.width, len(first) + 20, len(indent) + 20)
        wrapper = textwrap.TextWrapper(width, first, indent, break_long_words=False, break_on_hyphens=False)
        for line in wrapper.wrap(one_line(text)) or [first]:
            self.add(line)

    def command(self, command: str, indent: str) -> None:
        """A command on one line, never wrapped, never cut: it is there to be copied."""
        self.add(indent + self.paint(clean(command).replace("\n", f"\n{indent}"), "command"))

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
