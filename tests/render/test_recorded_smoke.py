"""Real smoke runs, as they were recorded (``dsdoctor smoke --events``, ``--json``): shown live, and afterwards."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from dsdoctor.events import Event
from dsdoctor.facts import Smoke
from dsdoctor.render import smoke, smoke_html
from dsdoctor.render.live import Live
from dsdoctor.render.quantity import loss
from dsdoctor.render.smoke_summary import word
from tests.render.reports import passing, report
from tests.render.test_smoke_pages import Parsed, pictures

RECORDED = sorted(path for path in (Path(__file__).parents[2] / "fixtures/smoke").iterdir() if path.is_dir())
every_record = pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.name)


def runs(folder: Path) -> Smoke:
    return msgspec.json.decode((folder / "runs.json").read_bytes(), type=Smoke)


@every_record
@pytest.mark.parametrize(("width", "height"), [(100, 30), (60, 10)])
def test_the_live_view_follows_it_from_the_first_event_to_the_last(folder: Path, width: int, height: int) -> None:
    live, seen, at = Live(), set[str](), 0.0
    for line in (folder / "events.jsonl").read_text().splitlines():
        told = json.loads(line)
        at = told.pop("at")
        live.see(msgspec.convert(told, Event), at)
        lines = live.lines(width, at, height=height)
        assert len(lines) <= height
        assert all(len(text) <= width for text in lines)
        seen.update(text.split()[0] for text in lines)
    assert {"smoke", "CPU", "import", "before:"} <= seen
    if any(run.steps for run in runs(folder).runs):
        assert {"loss", "steps"} <= seen
    assert not live.running
    for run in runs(folder).runs:
        if run.outcome == "ok":
            assert f"{run.recipe} ok in " in live.lines(500, at)[0]


@every_record
def test_what_was_measured_is_in_the_text_and_on_the_page(folder: Path) -> None:
    told = runs(folder)
    text = smoke.render(told, width=100, verbosity=1)
    page = smoke_html.render(msgspec.structs.replace(report(passing), facts=report(passing).facts.replace(smoke=told)))
    words = Parsed(page).text
    assert len(pictures(page)) >= len([run for run in told.runs if run.outcome != "not-applicable"])
    for run in told.runs:
        row = next(line for line in text.splitlines() if line.split()[0] == run.recipe)
        assert word(run) in row
        for number in {*run.losses[:1], *run.losses[-1:]}:
            assert loss(number) in row
            assert loss(number) in words
        for phase in run.phases:
            assert re.search(rf"^    {re.escape(phase.name)} .* (m?s|did not end)$", text, re.M)
