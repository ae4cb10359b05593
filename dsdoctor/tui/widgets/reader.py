"""A list on the left and what there is to read about its selected line on the right; one of the two when it is narrow."""

from typing import ClassVar

from rich.console import Group, RenderableType
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static


class Reader(VerticalScroll, can_focus=True):
    """The right side: a text to scroll. Esc or Left goes back to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,left,backspace", "back", "Back", show=False),
    ]

    def compose(self) -> ComposeResult:
        yield Static(id="text")
        yield Static("Esc goes back to the list", id="back")

    def show(self, *parts: RenderableType) -> None:
        self.query_one("#text", Static).update(Group(*parts))
        self.scroll_home(animate=False)

    def action_back(self) -> None:
        if isinstance(self.parent, Pane):
            self.parent.close_reader()


class Pane(Horizontal):
    """Base of a pane with a list and a Reader. With the class ``-reading`` a narrow screen shows the reader alone."""

    def list_widget(self) -> Widget:
        """The left side."""
        raise NotImplementedError

    def code(self) -> str | None:
        """The code of the check that the selected line is about."""
        return None

    def commands(self) -> tuple[str, ...]:
        """What `c` copies."""
        return ()

    @property
    def reader(self) -> Reader:
        return self.query_one(Reader)

    def open_reader(self) -> None:
        """Read the selected line: the keys scroll its text now."""
        self.add_class("-reading")
        self.call_after_refresh(self.reader.focus)

    def close_reader(self) -> None:
        self.remove_class("-reading")
        self.call_after_refresh(self.list_widget().focus)

    def focus_pane(self) -> None:
        """Put the keys where the reader's eyes are."""
        target = self.reader if self.has_class("-reading") else self.list_widget()
        self.call_after_refresh(target.focus)
