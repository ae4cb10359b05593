"""Live progress on stderr while probes run; nothing of it where stderr is not a terminal."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dsdoctor.events import Event, Observer, nobody


@contextmanager
def progress(wanted: bool = True) -> Iterator[Observer]:
    """An observer that keeps one line on the terminal: the probes or builds that still run, and for how long."""
    if not wanted or not sys.stderr.isatty():
        yield nobody
        return
    from rich.console import Console
    from rich.status import Status

    with Status("examining ...", console=Console(stderr=True), spinner="dots") as status:
        line = _Line(status.update)
        try:
            yield line.observe
        finally:
            line.stopped.set()


class _Line:
    """The text behind the spinner, renewed as probes come and go and once a second."""

    def __init__(self, update: Callable[[str], None]) -> None:
        self._update = update
        self._running: dict[str, tuple[str, float]] = {}
        self._note, self._lock = "", threading.Lock()
        self.stopped = threading.Event()
        threading.Thread(target=self._tick, daemon=True).start()

    def observe(self, event: Event) -> None:
        with self._lock:
            if event.kind in ("probe-started", "op-started"):
                text = f"building {event.name} ({event.detail})" if event.kind == "op-started" else event.name
                self._running[event.name] = text, time.monotonic()
            elif event.kind in ("probe-ended", "op-ended"):
                self._running.pop(event.name, None)
            elif event.detail:
                self._note = event.detail
        self._show()

    def _tick(self) -> None:
        while not self.stopped.wait(1.0):
            self._show()

    def _show(self) -> None:
        now = time.monotonic()
        with self._lock:
            names = [f"{text} {now - since:.0f} s" for text, since in self._running.values()]
        waiting = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        note = f" ({self._note})" if self._note and "smoke" in waiting else ""
        self._update(waiting if waiting.startswith("building ") else f"examining: {waiting or 'judging'}{note}")
