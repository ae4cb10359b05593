"""`dsdoctor tui`: examine with progress on the screen, then walk through the report."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message

from dsdoctor import examination, registry
from dsdoctor.events import Event, Observer
from dsdoctor.model import Report
from dsdoctor.probes import runner
from dsdoctor.request import Request
from dsdoctor.tui import state
from dsdoctor.tui.screens.failure import FailureScreen
from dsdoctor.tui.screens.help import HelpScreen
from dsdoctor.tui.screens.main import MainScreen
from dsdoctor.tui.screens.progress import ProgressScreen

Examine = Callable[[Request, Observer], Report]
Recheck = Callable[[Report, str], Report]
INTERRUPTED = 130
FAILED = 3


class DoctorApp(App[int]):
    """Runs ``examine`` in a thread and shows its report. ``explain`` gives the rationale of a code."""

    TITLE = "dsdoctor"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "examine_anew", "Anew"),
        Binding("question_mark", "help", "Help"),
        Binding("q", "leave", "Quit"),
        Binding("ctrl+c,ctrl+q", "leave", "Quit", show=False, priority=True),
    ]

    class Seen(Message):
        """Something happened in the examination."""

        def __init__(self, event: Event) -> None:
            super().__init__()
            self.event = event

    class Ended(Message):
        """A job ended with a report, or with what went wrong. ``code`` is set for a re-check."""

        def __init__(self, job: "Job", result: Report | BaseException) -> None:
            super().__init__()
            self.job, self.result = job, result

    def __init__(
        self,
        request: Request,
        examine: Examine | None = None,
        recheck: Recheck | None = None,
        explain: Callable[[str], str | None] | None = None,
    ) -> None:
        super().__init__()
        self._request = request
        self._examine = examine or examination.examine
        self._recheck = recheck or (lambda report, code: examination.recheck(report, code, request, self._watch))
        self._explain = explain or _rationale
        self._job: Job | None = None
        self._failure = 0  # exit code of an examination that failed

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a job runs, R is not offered."""
        return action != "examine_anew" or self._job is None

    def on_mount(self) -> None:
        self.action_examine_anew()

    def action_examine_anew(self) -> None:
        """Examine everything; what is on the screen gives way to the progress."""
        screen = ProgressScreen()
        (self.switch_screen if len(self.screen_stack) > 1 else self.push_screen)(screen)
        self._start(Job(self, None, lambda observe: self._examine(self._request, observe)))

    def on_main_screen_recheck(self, message: MainScreen.Recheck) -> None:
        screen = self.screen
        if not isinstance(screen, MainScreen):
            return
        if self._job is not None:
            screen.say(f"Still looking at {self._job.code} ...")
            return
        screen.say(f"Looking again at what {message.code} is about ...")
        report = screen.report
        self._start(Job(self, message.code, lambda observe: self._recheck(report, message.code)))

    def _start(self, job: "Job") -> None:
        self._job = job
        self.refresh_bindings()
        job.start()

    def _watch(self, event: Event) -> None:
        if self._job is not None:
            self._job.observe(event)

    def on_doctor_app_seen(self, message: Seen) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, (ProgressScreen, MainScreen)):
                screen.see(message.event)

    def on_doctor_app_ended(self, message: Ended) -> None:
        self._job = None
        self.refresh_bindings()
        result, code = message.result, message.job.code
        main = next((s for s in self.screen_stack if isinstance(s, MainScreen)), None)
        if code is not None and main is not None:
            if isinstance(result, Report):
                main.say(state.change(main.report, result, code))
                main.show(result)
            else:
                main.say(f"{code} could not be looked at again: {state.sentence(result)}")
        elif isinstance(result, Report):
            self._failure = 0
            self._replace(MainScreen(result, self._explain))
        else:
            self._failure = result.exit_code if isinstance(result, examination.ExaminationError) else FAILED
            self._replace(FailureScreen(state.sentence(result)))

    def _replace(self, screen: MainScreen | FailureScreen) -> None:
        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        self.switch_screen(screen)

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_leave(self) -> None:
        """Quit. What still runs is ended; the exit code tells an interrupted examination."""
        interrupted = self._job is not None and self._job.code is None
        self.stop()
        self.exit(INTERRUPTED if interrupted else self._failure)

    def stop(self) -> None:
        """End the job, if there is one, and every program that it started."""
        if self._job is not None:
            self._job.stopped = True
            runner.kill_all()


class Job(threading.Thread):
    """One examination or re-check. A daemon thread, so that quitting never waits for a probe that hangs."""

    def __init__(self, app: DoctorApp, code: str | None, work: Callable[[Observer], Report]) -> None:
        super().__init__(name="examination", daemon=True)
        self.app, self.code, self.work = app, code, work
        self.stopped = False

    def run(self) -> None:
        with self:
            self.tell(self.work(self.observe))

    def observe(self, event: Event) -> None:
        """Passes the event on. After a stop it ends the probe's thread instead, before that starts anything more."""
        if self.stopped:
            raise SystemExit
        self.app.post_message(DoctorApp.Seen(event))

    def tell(self, result: Report | BaseException) -> None:
        if not self.stopped:
            self.app.post_message(DoctorApp.Ended(self, result))

    def __enter__(self) -> "Job":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Whatever the work raised becomes one sentence on the screen: a traceback would wreck it."""
        if error is not None:
            self.tell(error)
        return True


def _rationale(code: str) -> str | None:
    return next((check.rationale for check in registry.load().checks if check.code == code), None)


def run_app(request: Request) -> int:
    """Open the view; the exit code is 0, that of a failed examination, or 130 when one was interrupted."""
    app = DoctorApp(request)
    try:
        return app.run() or 0
    finally:
        app.stop()
