"""One value out of a few, on one line."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from dsdoctor.tui.widgets.text import line


class Choice(Static, can_focus=True):
    """Space, Enter, Right and a click take the next value, Left the one before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter,right", "turn(1)", "Change", show=False),
        Binding("left", "turn(-1)", "Change", show=False),
    ]

    class Changed(Message):
        """Another value was taken."""

    def __init__(self, values: Sequence[str], id: str) -> None:
        super().__init__(id=id)
        self._values, self._at = tuple(values), 0

    @property
    def value(self) -> str:
        return self._values[self._at]

    def on_mount(self) -> None:
        self.update(line(self.value))

    def on_click(self, event: events.Click) -> None:
        self.action_turn(1)

    def action_turn(self, by: int) -> None:
        self._at = (self._at + by) % len(self._values)
        self.update(line(self.value))
        self.post_message(self.Changed())
