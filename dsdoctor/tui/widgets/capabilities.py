"""Pane 3: what can run on this machine, how that is known, and what stands in the way."""

from rich.console import Group
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable, Static

from dsdoctor.model import Capability, Report
from dsdoctor.tui.state import STATE_WORDS
from dsdoctor.tui.widgets import detail
from dsdoctor.tui.widgets.text import labelled, line, say, state


class Capabilities(Vertical):
    """A table, and below it the selected line in full."""

    class Blocker(Message):
        """The user wants to see the check that blocks a capability."""

        def __init__(self, code: str) -> None:
            super().__init__()
            self.code = code

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._capabilities: tuple[Capability, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="platform")
        yield DataTable(id="capabilities", cursor_type="row", zebra_stripes=True)
        yield Static(id="capability")

    @property
    def table(self) -> DataTable[object]:
        return self.query_one(DataTable)

    def selected(self) -> Capability | None:
        row = self.table.cursor_row
        return self._capabilities[row] if 0 <= row < len(self._capabilities) else None

    def code(self) -> str | None:
        capability = self.selected()
        return capability.blocked_by[0] if capability and capability.blocked_by else None

    def commands(self) -> tuple[str, ...]:
        return ()

    def focus_pane(self) -> None:
        self.call_after_refresh(self.table.focus)

    def show(self, report: Report) -> None:
        """Show the capabilities of ``report``, the row under the cursor kept."""
        table, row = self.table, self.table.cursor_row
        self._capabilities = report.capabilities
        table.clear(columns=True)
        table.add_columns("State", "What", "Proof", "Because")
        for found in report.capabilities:
            proof = found.proof.value if found.state == "ready" else ""
            because = f"blocked by {', '.join(found.blocked_by)}" if found.blocked_by else found.because or ""
            table.add_row(state(STATE_WORDS[found.state]), line(found.title), proof, line(because))
        table.move_cursor(row=row if 0 <= row < len(report.capabilities) else 0)
        platform = report.platform
        said = {"Can": platform.can, "Cannot": platform.cannot, "Instead": platform.instead}
        self.query_one("#platform", Static).update(Group(*(labelled(k, v) for k, v in said.items() if v)))
        self._read()

    @on(DataTable.RowHighlighted)
    def _read(self) -> None:
        capability = self.selected()
        nothing = say("Only some checks were asked for, so what can run here was not decided.")
        self.query_one("#capability", Static).update(detail.capability_detail(capability) if capability else nothing)

    @on(DataTable.RowSelected)
    def _open(self) -> None:
        code = self.code()
        if code is not None:
            self.post_message(self.Blocker(code))
