"""The report: headline, seven panes, and the keys that act on what is selected."""

import time
from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static, TabbedContent, TabPane

from dsdoctor.events import Event
from dsdoctor.model import Report
from dsdoctor.render.live import Live
from dsdoctor.tui.widgets.capabilities import Capabilities
from dsdoctor.tui.widgets.facts import Facts
from dsdoctor.tui.widgets.findings import Findings
from dsdoctor.tui.widgets.fit import FitPane
from dsdoctor.tui.widgets.headline import Headline
from dsdoctor.tui.widgets.ops import Ops
from dsdoctor.tui.widgets.plan import Plan
from dsdoctor.tui.widgets.smoke import SmokeRuns
from dsdoctor.tui.widgets.text import clean, line

AnyPane = Findings | Plan | Capabilities | Ops | Facts | SmokeRuns | FitPane
NARROW = 72  # columns: with fewer a list and its text do not fit side by side


class MainScreen(Screen[None]):
    """Shows one report; another one takes its place with ``show``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "filter", "Failed"),
        Binding("slash", "search", "Search"),
        Binding("r", "recheck", "Recheck"),
        Binding("c", "copy", "Copy"),
        Binding("C", "copy_all", "Copy all", show=False),
        Binding("down", "focus_pane", show=False),  # from the tabs, which have no use for it
        *(Binding(str(n), f"pane('tab-{n}')", show=False) for n in range(1, 8)),
    ]

    class Recheck(Message):
        """The user wants check ``code`` looked at again."""

        def __init__(self, code: str) -> None:
            super().__init__()
            self.code = code

    def __init__(self, report: Report, explain: Callable[[str], str | None]) -> None:
        super().__init__()
        self.report = report
        self._explain = explain
        self._live = Live()

    def compose(self) -> ComposeResult:
        yield Headline(id="headline")
        with TabbedContent(initial="tab-1"):
            with TabPane("1 Checks", id="tab-1"):
                yield Findings(self._explain, id="findings")
            with TabPane("2 Plan", id="tab-2"):
                yield Plan(id="plan")
            with TabPane("3 What can I run", id="tab-3"):
                yield Capabilities(id="can-run")
            with TabPane("4 Ops", id="tab-4"):
                yield Ops(id="ops")
            with TabPane("5 Facts", id="tab-5"):
                yield Facts(id="facts")
            with TabPane("6 Smoke", id="tab-6"):
                yield SmokeRuns(id="smoke")
            with TabPane("7 Fit", id="tab-7"):
                yield FitPane(id="fit")
        yield Static(id="note")
        yield Footer()

    def on_mount(self) -> None:
        self.say("")
        self.show(self.report)
        self.pane.focus_pane()

    def on_resize(self, event: events.Resize) -> None:
        narrow = event.size.width < NARROW
        self.set_class(narrow, "-narrow")
        self.query_one(Footer).compact = narrow

    @property
    def pane(self) -> AnyPane:
        """The pane that is in front."""
        return self.panes[self.query_one(TabbedContent).active]

    @property
    def panes(self) -> dict[str, AnyPane]:
        """Tab -> pane."""
        return {
            "tab-1": self.query_one(Findings),
            "tab-2": self.query_one(Plan),
            "tab-3": self.query_one(Capabilities),
            "tab-4": self.query_one(Ops),
            "tab-5": self.query_one(Facts),
            "tab-6": self.query_one(SmokeRuns),
            "tab-7": self.query_one(FitPane),
        }

    def show(self, report: Report) -> None:
        self.report = report
        self.query_one(Headline).show(report)
        for pane in self.panes.values():
            pane.show(report)

    def see(self, event: Event) -> None:
        """What a re-check does: a smoke run is told of while it runs."""
        self._live.see(event, time.monotonic())
        if self._live.running:
            self.say(self._live.brief(time.monotonic()))

    def say(self, sentence: str) -> None:
        """One line above the footer; an empty one takes no room."""
        note = self.query_one("#note", Static)
        note.display = bool(sentence)
        note.update(line(sentence, "bold"))

    def action_pane(self, tab: str) -> None:
        self.query_one(TabbedContent).active = tab
        self.pane.focus_pane()

    @on(TabbedContent.TabActivated, pane="#tab-7")
    def _fit_is_shown(self) -> None:
        self.query_one(FitPane).begin()

    def action_focus_pane(self) -> None:
        self.pane.focus_pane()

    def action_filter(self) -> None:
        self.action_pane("tab-1")
        self.query_one(Findings).filter_failed()

    def action_search(self) -> None:
        self.action_pane("tab-1")
        self.query_one(Findings).open_search()

    def action_recheck(self) -> None:
        code = self.pane.code()
        if code is None:
            self.say("Select a check first: r looks again at what it is about.")
        else:
            self.post_message(self.Recheck(code))

    def action_copy(self) -> None:
        self._copy(self.pane.commands())

    def action_copy_all(self) -> None:
        self._copy(self.query_one(Plan).all_commands())

    def _copy(self, commands: tuple[str, ...]) -> None:
        if not commands:
            self.say("There is no command to copy here.")
            return
        self.app.copy_to_clipboard("\n".join(clean(command) for command in commands) + "\n")
        self.say(f"{len(commands)} command{'s' if len(commands) > 1 else ''} copied: {commands[0]}")

    @on(Capabilities.Blocker)
    def _show_blocker(self, message: Capabilities.Blocker) -> None:
        self.action_pane("tab-1")
        self.query_one(Findings).reveal(message.code)
