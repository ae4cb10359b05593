"""Pane 4: DeepSpeed's ops. What ds_report says, whether they build, how that is known, and why not."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import DataTable, Static

from dsdoctor.model import OpVerdict, Report
from dsdoctor.render.ops import SAID, summary
from dsdoctor.tui.state import OP_WORDS
from dsdoctor.tui.widgets import detail
from dsdoctor.tui.widgets.capabilities import Capabilities
from dsdoctor.tui.widgets.text import line, say, state


class Ops(Vertical):
    """A table, and below it the selected op in full. Enter shows the check that says why it fails."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._ops: tuple[OpVerdict, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="ops-summary")
        yield DataTable(id="ops-table", cursor_type="row", zebra_stripes=True)
        yield Static(id="op")

    @property
    def table(self) -> DataTable[object]:
        return self.query_one(DataTable)

    def selected(self) -> OpVerdict | None:
        row = self.table.cursor_row
        return self._ops[row] if 0 <= row < len(self._ops) else None

    def code(self) -> str | None:
        op = self.selected()
        return op.blocked_by[0] if op and op.blocked_by else None

    def commands(self) -> tuple[str, ...]:
        op = self.selected()
        return (f"dsdoctor ops {op.name} --build",) if op else ()

    def focus_pane(self) -> None:
        self.call_after_refresh(self.table.focus)

    def show(self, report: Report) -> None:
        """Show the ops of ``report``, the row under the cursor kept."""
        table, row = self.table, self.table.cursor_row
        self._ops = report.ops
        table.clear(columns=True)
        table.add_columns("State", "Op", "ds_report", "Proof", "Needed here for")
        for op in report.ops:
            proof = "" if op.state == "unknown" else op.proof.value
            said = f"{SAID[op.said]} *" if op.differs else SAID[op.said]
            table.add_row(state(OP_WORDS[op.state]), line(op.name), said, proof, line(op.wanted or ""))
        table.move_cursor(row=row if 0 <= row < len(report.ops) else 0)
        self.query_one("#ops-summary", Static).update(
            say(summary(report.ops) if report.ops else "No op is known here.")
        )
        self._read()

    @on(DataTable.RowHighlighted)
    def _read(self) -> None:
        op = self.selected()
        self.query_one("#op", Static).update(detail.op_detail(op) if op else say(""))

    @on(DataTable.RowSelected)
    def _open(self) -> None:
        code = self.code()
        if code is not None:
            self.post_message(Capabilities.Blocker(code))
