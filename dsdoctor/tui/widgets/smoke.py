"""Pane 6: the smoke runs, and of the selected one all that `dsdoctor smoke -v` would print, at the width that is there."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from dsdoctor.facts import SmokeRun
from dsdoctor.model import Report
from dsdoctor.render.smoke import detail
from dsdoctor.render.smoke_summary import losses
from dsdoctor.tui.state import RUN_WORDS, STYLES, run_word
from dsdoctor.tui.widgets.reader import Pane, Reader
from dsdoctor.tui.widgets.text import clean, labelled, line, say

NONE_YET = (
    "No smoke run yet: start dsdoctor with --smoke, or `dsdoctor smoke` trains a tiny model and shows what happened."
)
_WIDEST = max(map(len, RUN_WORDS.values()))


class SmokeRuns(Pane):
    """Recipes on the left, the selected run on the right."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._runs: tuple[SmokeRun, ...] = ()

    def compose(self) -> ComposeResult:
        yield OptionList(id="runs")
        yield Reader()

    def list_widget(self) -> OptionList:
        return self.query_one("#runs", OptionList)

    def selected(self) -> SmokeRun | None:
        row = self.list_widget().highlighted
        return self._runs[row] if row is not None and row < len(self._runs) else None

    def commands(self) -> tuple[str, ...]:
        run = self.selected()
        return (f"dsdoctor smoke {run.recipe}",) if run else ()

    def show(self, report: Report) -> None:
        """Show the runs of ``report``, the recipe under the cursor kept; when there is none, one line says so."""
        runs, before = self.list_widget(), self.selected()
        self._runs = report.facts.smoke.runs if report.facts.smoke else ()
        runs.clear_options()
        runs.add_options([Option(_label(run)) for run in self._runs])
        self.set_class(not self._runs, "-nothing")
        if not self._runs:
            why = report.facts.unavailable.get("smoke")
            self.reader.show(
                say(NONE_YET), *([labelled("Reason", why.detail)] if why and why.kind != "not-asked" else [])
            )
            return
        same = [n for n, run in enumerate(self._runs) if before is not None and run.recipe == before.recipe]
        runs.highlighted = same[0] if same else 0
        self._read()

    def focus_pane(self) -> None:
        if self._runs:
            super().focus_pane()
        else:
            self.call_after_refresh(self.reader.focus)

    @on(OptionList.OptionHighlighted, "#runs")
    def _read(self) -> None:
        run = self.selected()
        if run is not None:
            self.reader.show(Told(run))

    @on(OptionList.OptionSelected, "#runs")
    def _open(self) -> None:
        self._read()
        self.open_reader()


class Told:
    """A run as text, laid out for the width that it is given."""

    def __init__(self, run: SmokeRun) -> None:
        self._run = run

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.from_ansi(detail(self._run, width=options.max_width, color=True))


def _label(run: SmokeRun) -> Text:
    word, told = run_word(run), losses(run)
    label = Text.assemble(
        (word.ljust(_WIDEST), STYLES[word]), " ", (clean(line(run.recipe).plain), "bold"), f" {told}" if told else ""
    )
    label.no_wrap, label.overflow = True, "ellipsis"
    return label
