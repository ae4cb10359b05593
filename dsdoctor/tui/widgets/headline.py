"""The first lines of the screen: outcome, platform, patient, purpose, and what the doctor is doing now."""

from rich.console import Group
from rich.text import Text
from textual.widgets import Static

from dsdoctor.model import Report
from dsdoctor.tui.widgets.text import clean, line

_OUTCOMES = {
    "healthy": ("HEALTHY", "bold green"),
    "warnings": ("WARNINGS", "bold yellow"),
    "problems": ("PROBLEMS", "bold red"),
    "incomplete": ("INCOMPLETE", "bold cyan"),
}


class Headline(Static):
    """Three lines that sum a report up."""

    def show(self, report: Report) -> None:
        word, style = _OUTCOMES[report.outcome]
        first = Text.assemble((word, style), "  ", clean(report.summary), no_wrap=True, overflow="ellipsis")
        if report.interrupted:
            first = Text.assemble(("INTERRUPTED ", "bold magenta"), first, no_wrap=True, overflow="ellipsis")
        purpose = report.facts.purpose
        guessed = " (guessed)" if purpose and purpose.guessed else ""
        used = f"Purpose: {purpose.name}{guessed}" if purpose else "Purpose: not known"
        platform = line(f"{used}; {report.platform.headline}")
        self.update(Group(first, platform, line(f"Patient: {report.patient}")))
