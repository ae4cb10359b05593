"""Draw the README's pictures from a recorded machine: `python docs/pictures.py`."""

import asyncio
import io
import os
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from dsdoctor.examination import Request, diagnose, load_knowledge, read_snapshot, triage
from dsdoctor.facts import Smoke
from dsdoctor.model import Report
from dsdoctor.render import smoke, text
from dsdoctor.render import triage as render_triage

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "fixtures/smoke/h200/runs.json"
SHOWN = ("zero2", "zero3-nvme", "pipeline", "moe")
MACHINE = ROOT / "fixtures/machines/h200-arch-list-9.0a"
LOG = ROOT / "fixtures/logs/launcher-cpu-adam-ninja-missing/log.txt"
WIDTH, HEIGHT = 100, 34
WIDE = 114  # a row of a run


def spaced(svg: str) -> str:
    """Keep blanks at the start of a text: some renderers drop them otherwise, and words run together."""
    return svg.replace("<text ", '<text xml:space="preserve" ').replace("&#160;", " ")


def picture(ansi: str, title: str, width: int = WIDTH) -> str:
    """SVG of coloured text."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(ansi))
    return console.export_svg(title=title)


def smoke_picture() -> str:
    """SVG of some recorded runs."""
    recorded = msgspec.json.decode(RUNS.read_bytes(), type=Smoke)
    runs = tuple(run for run in recorded.runs if run.recipe in SHOWN)
    return picture(smoke.render(Smoke(runs=runs), width=WIDE, color=True), "dsdoctor smoke", WIDE)


def triage_picture() -> str:
    """SVG of what is said of a recorded log."""
    report = triage(Request(logs=(os.path.relpath(LOG, ROOT),)))
    return picture(render_triage.render(report, width=WIDTH, color=True), "dsdoctor triage")


async def tui_picture(report: Report) -> str:
    """SVG of the TUI's first screen."""
    from dsdoctor.tui.app import DoctorApp

    app = DoctorApp(Request(snapshot=str(MACHINE)), examine=lambda request, observe: report)
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        for _ in range(20):
            await pilot.pause(0.1)
        return app.export_screenshot(title="dsdoctor tui")


def main() -> None:
    """Write docs/report.svg, docs/smoke.svg, docs/triage.svg and docs/tui.svg."""
    os.chdir(ROOT)
    report = diagnose(read_snapshot(str(MACHINE)).replace(origin="h200"), load_knowledge())
    (ROOT / "docs/report.svg").write_text(
        spaced(picture(text.render(report, width=WIDTH, color=True), "dsdoctor check")), "utf-8"
    )
    (ROOT / "docs/smoke.svg").write_text(spaced(smoke_picture()), "utf-8")
    (ROOT / "docs/triage.svg").write_text(spaced(triage_picture()), "utf-8")
    (ROOT / "docs/tui.svg").write_text(spaced(asyncio.run(tui_picture(report))), "utf-8")


if __name__ == "__main__":
    main()
