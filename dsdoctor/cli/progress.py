"""Live progress on stderr while probes, builds and smoke runs go on; nothing of it where stderr is not a terminal."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dsdoctor.events import Event, Observer, nobody
from dsdoctor.render.live import Live
from dsdoctor.render.plain import one_line

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_SHOWN = 5  # probes or builds by name


@contextmanager
def progress(wanted: bool = True) -> Iterator[Observer]:
    """An observer that keeps a few lines on the terminal: what still runs and for how long, or the smoke run."""
    if not wanted or not sys.stderr.isatty():
        yield nobody
        return
    from rich.console import Console
    from rich.live import Live as Redrawn

    view = View()
    with Redrawn(view, console=Console(stderr=True), refresh_per_second=10, transient=True):
        yield view.observe


class View:
    """What the terminal shows now: drawn anew ten times a second, told of events by any thread."""

    def __init__(self) -> None:
        from rich.spinner import Spinner

        self._spinner, self._line, self._live = Spinner("dots"), Line(), Live()
        self._lock = threading.Lock()

    def observe(self, event: Event) -> None:
        with self._lock:
            self._line.see(event, time.monotonic())
            self._live.see(event, time.monotonic())

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        from rich.text import Text

        now = time.monotonic()
        with self._lock:
            if not self._live.running:
                self._spinner.update(text=Text(self._line.text(now)))
                yield self._spinner
                return
            lines = self._live.lines(
                options.max_width, now, unicode=not options.ascii_only, height=max(console.size.height - 1, 3)
            )
        yield from (Text(line, no_wrap=True, overflow="crop") for line in lines)


class Line:
    """The text behind the spinner: the probes or builds that run."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, float]] = {}

    def see(self, event: Event, at: float) -> None:
        if event.kind in ("probe-started", "op-started"):
            text = f"building {event.name} ({event.detail})" if event.kind == "op-started" else event.name
            self._running[event.name] = one_line(text), at
        elif event.kind in ("probe-ended", "op-ended"):
            self._running.pop(event.name, None)

    def text(self, now: float) -> str:
        names = [f"{text} {now - since:.0f} s" for text, since in self._running.values()]
        waiting = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        return waiting if waiting.startswith("building ") else f"examining: {waiting or 'judging'}"
