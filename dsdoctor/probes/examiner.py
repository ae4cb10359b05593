"""Runs all probes of one examination side by side and keeps each one's trouble to itself."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from dsdoctor.events import Event, Observer
from dsdoctor.facts import Fact, Unavailable
from dsdoctor.facts.snapshot import SECTIONS
from dsdoctor.probes import ProbeFailed, runner

F = TypeVar("F", bound=Fact)
Found = Fact | Mapping[str, Fact | Unavailable] | Unavailable


class Facts:
    """What a probe may ask of the sections before it. ``get`` waits for them."""

    def __init__(self, known: Mapping[str, Fact | None]) -> None:
        self._known = known

    def get(self, kind: type[F]) -> F | None:
        return self._known.get(SECTIONS[kind])  # type: ignore[return-value]

    def need(self, kind: type[F]) -> F:
        """The section, or end this probe because it hangs on a missing one."""
        fact = self.get(kind)
        if fact is None:
            raise ProbeFailed("depends", f"{SECTIONS[kind]} is not known")
        return fact


class Task:
    """One probe: the sections that it gives, those that it waits for, and the function that asks."""

    def __init__(
        self, name: str, run: Callable[[Facts], Found], *, needs: Iterable[type[Fact]] = (), gives: Iterable[str] = ()
    ) -> None:
        self.name, self.run = name, run
        self.needs = tuple(SECTIONS[kind] for kind in needs)
        self.gives = tuple(gives) or (name,)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during an examination; ``found`` holds what was known by then."""

    def __init__(self, found: dict[str, Fact], unavailable: dict[str, Unavailable]) -> None:
        super().__init__()
        self.found, self.unavailable = found, unavailable


class Examiner:
    """Starts every task in a thread of its own as soon as what it needs is decided."""

    def __init__(
        self, tasks: Iterable[Task], limit_s: float, observe: Observer, seed: Mapping[str, Fact] | None = None
    ) -> None:
        self._tasks = tuple(tasks)
        self._limit_s, self._observe = limit_s, observe
        self._changed = threading.Condition()
        asked = {section for task in self._tasks for section in task.gives}
        self._found: dict[str, Fact] = {name: fact for name, fact in (seed or {}).items() if name not in asked}
        self._missing: dict[str, Unavailable] = {}

    def examine(self) -> tuple[dict[str, Fact], dict[str, Unavailable]]:
        """Sections found and sections missing with the reason. Raises Interrupted on Ctrl-C, all children ended."""
        deadline = time.monotonic() + self._limit_s
        waiting = {task.name: task for task in self._tasks}
        running: dict[str, Task] = {}
        try:
            with self._changed:
                while waiting or running:
                    self._start(waiting, running)
                    left = deadline - time.monotonic()
                    if left <= 0:
                        self._give_up([*running.values(), *waiting.values()])
                        break
                    self._changed.wait_for(lambda: self._ended(running), timeout=min(left, 0.5))
                found, missing = dict(self._found), dict(self._missing)
        except KeyboardInterrupt:
            with self._changed:  # what comes after this is told of children that we ended ourselves
                found, missing = dict(self._found), dict(self._missing)
            runner.kill_all()
            raise Interrupted(found, missing) from None
        return found, missing

    def _start(self, waiting: dict[str, Task], running: dict[str, Task]) -> None:
        known = self._found.keys() | self._missing.keys()
        planned = {section for task in (*waiting.values(), *running.values()) for section in task.gives}
        for task in list(waiting.values()):
            if all(need in known or need not in planned for need in task.needs):
                del waiting[task.name]
                running[task.name] = task
                threading.Thread(target=self._work, args=(task,), name=f"probe {task.name}", daemon=True).start()

    def _ended(self, running: dict[str, Task]) -> bool:
        known = self._found.keys() | self._missing.keys()
        done = [name for name, task in running.items() if set(task.gives) <= known]
        for name in done:
            del running[name]
        return bool(done)

    def _work(self, task: Task) -> None:
        started = time.monotonic()
        self._observe(Event(kind="probe-started", name=task.name))
        found: Found
        try:
            found = task.run(Facts(self._found))
        except ProbeFailed as failed:
            found = failed.unavailable
        except Exception as error:  # our bug: it costs this section and nothing else
            found = Unavailable(kind="crashed", detail=f"the {task.name} probe raised {type(error).__name__}: {error}")
        outcome = found.kind if isinstance(found, Unavailable) else "ok"
        self._observe(Event(kind="probe-ended", name=task.name, outcome=outcome, seconds=time.monotonic() - started))
        with self._changed:
            self._keep(task, found)
            self._changed.notify_all()

    def _keep(self, task: Task, found: Found) -> None:
        pieces: Mapping[str, Any] = found if isinstance(found, Mapping) else dict.fromkeys(task.gives, found)
        for section in task.gives:
            piece = pieces.get(section, Unavailable(kind="failed", detail=f"the {task.name} probe did not say"))
            if isinstance(piece, Unavailable):
                self._missing[section] = piece
                self._found.pop(section, None)
            else:
                self._found[section] = piece

    def _give_up(self, tasks: Iterable[Task]) -> None:
        """Mark what is still out as late, then end its children; the caller copies the results under the same lock."""
        for task in tasks:
            late = Unavailable(
                kind="timed-out", detail=f"the {task.name} probe gave no answer within {self._limit_s:.0f} s"
            )
            self._keep(task, late)
        runner.kill_all()
