"""Pane 7: will a model train here? What is asked above, below it what `dsdoctor fit` would print, anew with each change."""

from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input, Label, Static
from textual.worker import get_current_worker

from dsdoctor.facts import Snapshot
from dsdoctor.fit.report import FitReport
from dsdoctor.fit.training import OPTIMIZERS
from dsdoctor.fit_examination import judge_fit
from dsdoctor.model import Report
from dsdoctor.render.fit import beside_the_question
from dsdoctor.request import ExaminationError
from dsdoctor.tui.fit_question import KEPT, question
from dsdoctor.tui.widgets.choice import Choice
from dsdoctor.tui.widgets.reader import Reader
from dsdoctor.tui.widgets.text import say

PAUSE_S: Final = 0.25  # after the last key, before anything is computed
HINT: Final = "Enter: change the question   Tab: next field   Space: next choice   Esc: back"


class FitPane(Vertical):
    """The form and the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "ask", "Ask", show=False),
        Binding("escape", "read", "Back", show=False),
    ]

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._machine: Snapshot | None = None
        self._fit: FitReport | None = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        fields = (
            ("model", Input("7B", placeholder="7B or config.json", id="model")),
            ("sequence", Input("", placeholder="2048", type="integer", id="sequence")),
            ("batch", Input("1", type="integer", id="micro-batch")),
            ("GPUs", Input("", placeholder="all here", type="integer", id="gpus")),
            ("dtype", Choice(("best", "bf16", "fp16", "fp32"), id="dtype")),
            ("optimizer", Choice(OPTIMIZERS, id="optimizer")),
            ("activations", Choice((KEPT, "again"), id="activations")),
        )
        with Grid(id="fit-question"):
            for name, field in fields:
                with Horizontal(classes="field wide" if name == "model" else "field"):
                    yield Label(name)
                    yield field
        yield Static(say(HINT, "dim"), id="fit-keys")
        yield Reader(id="fit-answer")

    @property
    def reader(self) -> Reader:
        return self.query_one(Reader)

    def code(self) -> str | None:
        return None

    def commands(self) -> tuple[str, ...]:
        if self._fit is None or self._fit.outcome != "yes":
            return ()
        return (f"{self._fit.command} --write ds_config.json", "dsdoctor smoke --config ds_config.json")

    def focus_pane(self) -> None:
        self.call_after_refresh(self.reader.focus)

    def begin(self) -> None:
        """Somebody looks: nothing is computed before."""
        if self._fit is None:
            self._soon()

    def show(self, report: Report) -> None:
        """The machine of ``report`` is the one that is asked about."""
        self._machine = report.facts
        if self._fit is not None:
            self._soon()

    def action_ask(self) -> None:
        self.screen.set_focus(self.query_one("#model", Input))  # at once: the next key is of the model

    @on(Input.Submitted)
    def action_read(self) -> None:
        self.screen.set_focus(self.reader)

    @on(Input.Changed)
    @on(Choice.Changed)
    def _soon(self) -> None:
        """Compute when the keys have been silent for a moment."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PAUSE_S, self._ask)

    def _ask(self) -> None:
        said = {field.id or "": field.value for field in (*self.query(Input), *self.query(Choice))}
        self.run_worker(lambda: self._judge(said), thread=True, exclusive=True, group="fit")

    def _judge(self, said: dict[str, str]) -> None:
        """In a thread: the answer, or the sentence that says what is wrong with the question."""
        worker = get_current_worker()
        try:
            asked = question(said, self._machine.origin if self._machine else "this machine")
            found: FitReport | str = judge_fit(asked, self._machine)
        except ExaminationError as error:
            found = str(error)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._tell, found)

    def _tell(self, found: FitReport | str) -> None:
        if not self.is_attached or not self.query(Reader):  # the screen gave way to another meanwhile
            return
        self._fit = found if isinstance(found, FitReport) else None
        self.reader.show(Told(found) if isinstance(found, FitReport) else say(found, "bold"))


class Told:
    """An answer as text, laid out for the width that it is given."""

    def __init__(self, report: FitReport) -> None:
        self._report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.from_ansi(beside_the_question(self._report, width=options.max_width))
