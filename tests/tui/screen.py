"""What a user reads on the terminal, and how a test waits for it."""

from typing import Any

from textual.pilot import Pilot

from dsdoctor.model import Report
from dsdoctor.request import Request
from dsdoctor.tui.app import DoctorApp

SIZES = ((80, 24), (120, 40), (60, 20))
RATIONALE = "DeepSpeed links its ops to the CUDA runtime of torch."


def doctor(report: Report, **functions: Any) -> DoctorApp:
    """The view of a recorded report."""
    given = {"examine": lambda request, observe: report, "explain": lambda code: RATIONALE, **functions}
    return DoctorApp(Request(), **given)


def lines(app: DoctorApp) -> list[str]:
    """The lines of the terminal."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def text(app: DoctorApp) -> str:
    return "\n".join(lines(app))


async def reads(pilot: Pilot[int], *parts: str) -> str:
    """Wait until every part is on the screen; the whole screen is the failure's message."""
    app: Any = pilot.app
    for _ in range(200):
        await pilot.pause(0.02)
        if all(part in text(app) for part in parts):
            return text(app)
    raise AssertionError(f"{parts} not all on this screen:\n{text(app)}")
