"""Text from the machine is data: it is stripped of terminal escapes, and brackets in it are only brackets."""

import re
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from dsdoctor.tui.state import STYLES

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|$)|[@-Z\\-_])", re.DOTALL)
# Control characters other than the newline, and the marks that turn the direction of writing.
_INVISIBLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """``text`` without terminal escapes and control characters; tabs become spaces, newlines stay."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return _INVISIBLE.sub("", text)


def say(text: str, style: str = "") -> Text:
    """A literal text."""
    return Text(clean(text), style=style)


def line(text: str, style: str = "") -> Text:
    """A literal text on one line, cut with an ellipsis where the room ends."""
    return Text(" ".join(clean(text).split()), style=style, no_wrap=True, overflow="ellipsis")


def state(word: str, width: int = 0) -> Text:
    """A state as its word, in its colour."""
    return Text(word.ljust(width), style=STYLES.get(word, ""))


def indent(part: RenderableType, columns: int = 2) -> Padding:
    return Padding(part, (0, 0, 0, columns))


def labelled(label: str, text: str, style: str = "") -> Text:
    """ "Cause: ..." with the label standing out."""
    return Text.assemble((f"{label}: ", "bold"), (clean(text), style))


def shell(commands: Iterable[str]) -> Group:
    """Commands as they are typed, one below the other."""
    return Group(*(indent(Text(f"$ {clean(command)}", style="bold")) for command in commands))
