"""All keys on one page."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    ("1 to 7", "checks, plan, what can run here, ops, facts, smoke runs, will it fit"),
    ("Up Down", "select; Tab goes to the other side"),
    ("Enter", "read the selected line; open a family; go to a blocker"),
    ("Esc", "back to the list; end a search; close this page"),
    ("f", "failed checks only, or all"),
    ("/", "search the checks: code, message, cause, or a state such as unknown"),
    ("r", "look again at what the selected check or step is about"),
    ("R", "examine the whole machine anew"),
    ("c", "copy the commands of the selected step, check, op or smoke run, or of what fits"),
    ("C", "copy the commands of all steps"),
    ("q Ctrl-C", "quit; ends all that still runs"),
)
WORDS = (
    ("declared", "read in files, not tried"),
    ("probed", "seen in an import or a tiny program"),
    ("ran", "a real run showed it"),
    ("UNKNOWN", "could not find out: neither fine nor broken"),
    ("smoke", "a tiny model is really trained; it proves, and measures no speed"),
    ("copying", "goes through your terminal (OSC 52); some terminals do not allow it"),
)


class HelpScreen(ModalScreen[None]):
    """Any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,enter,q", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(_page())


def _page() -> Text:
    page = Text("Keys\n", style="bold underline")
    page = Text().append_text(page)
    for key, what in KEYS:
        page.append(f"{key:9}", "bold").append(f" {what}\n")
    page.append("\nWords\n", "bold underline")
    for word, what in WORDS:
        page.append(f"{word:9}", "bold").append(f" {what}\n")
    return page.append("\nEsc closes this page.")
