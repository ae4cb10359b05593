"""Text from the machine is data: it is stripped of terminal escapes, and brackets in it are only brackets."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from dsdoctor.render import plain
from dsdoctor.tui.state import STYLES


def clean(text: str) -> str:
    """``text`` without terminal escapes and control characters; tabs become spaces, newlines stay."""
    return plain.clean(text.replace("\r\n", "\n").replace("\r", "\n")).replace("\t", "    ")


def say(text: str, style: str = "") -> Text:
    """A literal text."""
    return Text(clean(text), style=style)


def line(text: str, style: str = "") -> Text:
    """A literal text on one line, cut with an ellipsis where the room ends."""
    return Text(plain.one_line(text), style=style, no_wrap=True, overflow="ellipsis")


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
