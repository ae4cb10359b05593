"""Pane 2: what to do, in order, with the commands to copy."""

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from dsdoctor.model import Report, Step
from dsdoctor.tui.state import STYLES
from dsdoctor.tui.widgets import detail
from dsdoctor.tui.widgets.reader import Pane, Reader
from dsdoctor.tui.widgets.text import clean


class Plan(Pane):
    """Numbered steps on the left, the selected step on the right."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._steps: tuple[Step, ...] = ()

    def compose(self) -> ComposeResult:
        yield OptionList(id="steps")
        yield Reader()

    def list_widget(self) -> OptionList:
        return self.query_one("#steps", OptionList)

    def selected(self) -> Step | None:
        row = self.list_widget().highlighted
        return self._steps[row] if row is not None and row < len(self._steps) else None

    def code(self) -> str | None:
        step = self.selected()
        return step.clears[0] if step and step.clears else None

    def commands(self) -> tuple[str, ...]:
        step = self.selected()
        return step.commands if step else ()

    def all_commands(self) -> tuple[str, ...]:
        """Every step's commands, in the order of the plan."""
        return tuple(dict.fromkeys(command for step in self._steps for command in step.commands))

    def show(self, report: Report) -> None:
        """Show the plan of ``report``; when there is nothing to mend, one line says so."""
        steps = self.list_widget()
        before = self.selected()
        self._steps = report.plan
        steps.clear_options()
        steps.add_options([Option(_label(step)) for step in report.plan])
        self.set_class(not report.plan, "-nothing")
        if not report.plan:
            self.reader.show(*detail.no_plan_detail(report))
            return
        same = [i for i, step in enumerate(report.plan) if before is not None and step.cause == before.cause]
        steps.highlighted = same[0] if same else 0
        self._read()

    def focus_pane(self) -> None:
        if self._steps:
            super().focus_pane()
        else:
            self.call_after_refresh(self.reader.focus)

    @on(OptionList.OptionHighlighted, "#steps")
    def _read(self) -> None:
        step = self.selected()
        if step is not None:
            self.reader.show(*detail.step_detail(step))

    @on(OptionList.OptionSelected, "#steps")
    def _open(self) -> None:
        self._read()
        self.open_reader()


def _label(step: Step) -> Text:
    word = step.severity.value.upper()
    return Text.assemble((f"{step.number}. ", "bold"), (word, STYLES[word]), f" {' '.join(clean(step.order).split())}")
