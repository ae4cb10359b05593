"""While the examination runs: every probe with its seconds, those still at work first."""

import time

from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from dsdoctor.events import Event
from dsdoctor.tui.state import SPINNER, Progress, Row
from dsdoctor.tui.widgets.text import clean, line

_OTHER_LINES = 8  # that a smoke run leaves to the headline, the footer and the probes


class ProgressScreen(Screen[None]):
    """Listens to the examination."""

    def __init__(self) -> None:
        super().__init__()
        self._progress = Progress(time.monotonic())

    def compose(self) -> ComposeResult:
        yield Static(id="doing")
        yield Static(id="live")
        with VerticalScroll():
            yield Static(id="probes")
        yield Footer()

    def on_mount(self) -> None:
        self._draw()
        self.set_interval(0.2, self._draw)

    def see(self, event: Event) -> None:
        self._progress.see(event, time.monotonic())
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        rows = self._progress.rows(now)
        working = [row for row in rows if row.outcome is None]
        seconds = now - self._progress.began
        live = self._progress.live
        if live.running:
            doing = f"Training a tiny model: {live.title}"
        elif self._progress.phase == "judging":
            doing = "Judging what was found"
        elif working:
            doing = f"Examining this machine: {len(rows) - len(working)} done, {len(working)} at work"
        else:
            doing = "Examining this machine"
        spin = SPINNER[int(now * 5) % len(SPINNER)]
        self.query_one("#doing", Static).update(
            Group(line(f"{spin} {doing}, {seconds:.0f} s", "bold"), line("q stops and ends all that runs"))
        )
        lines = live.lines(max(self.size.width - 2, 1), now, height=max(self.size.height - _OTHER_LINES, 3))
        shown = self.query_one("#live", Static)
        shown.display = bool(lines)
        shown.update(Text("\n".join(lines), no_wrap=True, overflow="crop"))
        self.query_one("#probes", Static).update(Group(*(_line(row, spin) for row in rows)))


def _line(row: Row, spin: str) -> Text:
    sign, style = (spin, "bold") if row.outcome is None else (" ", "green" if row.outcome == "ok" else "yellow")
    outcome = "at work" if row.outcome is None else "done" if row.outcome == "ok" else row.outcome
    what = f"{row.name}: {row.detail or row.title}"
    text = Text.assemble(f"{sign} ", (outcome.ljust(12), style), f" {row.seconds:6.1f} s  ", clean(what))
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
