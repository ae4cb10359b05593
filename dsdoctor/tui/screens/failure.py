"""When no report could be made: one sentence, and what can be done now."""

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer, Static

from dsdoctor.tui.widgets.text import say


class FailureScreen(Screen[None]):
    """Says why there is no report."""

    def __init__(self, sentence: str) -> None:
        super().__init__()
        self._sentence = sentence

    def compose(self) -> ComposeResult:
        yield Static(say("There is no report.", "bold"))
        yield Static(say(self._sentence), id="sentence")
        yield Static(say("R examines again, q quits."))
        yield Footer()
