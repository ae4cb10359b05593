"""Every real failure in fixtures/logs is told by its cause, and no healthy log is blamed."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.examination import triage
from dsdoctor.render.story import likely
from dsdoctor.request import Request

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOGS = sorted(path.parent for path in (Path(__file__).parents[2] / "fixtures/logs").glob("*/expect.toml"))


def expected(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "expect.toml").read_text("utf-8"))


@pytest.mark.parametrize("folder", LOGS, ids=lambda path: path.name)
def test_a_real_log_is_told_by_its_cause(folder: Path) -> None:
    expect = expected(folder)
    right = [expect["cause"], *expect.get("also", ())]
    report = triage(Request(logs=tuple(str(file) for file in sorted(folder.iterdir()) if file.name != "expect.toml")))
    named = [cause.cause for cause in likely(report)]
    assert (named[0] if named else "") in right, named
    assert report.story is not None
    if "" not in right:
        assert report.story.fell, "a run that fell is said to have fallen"
    if named and "rank" in expect and report.story.chain[0].rank is not None:
        assert report.story.chain[0].rank == expect["rank"]


def test_there_are_enough_of_them() -> None:
    assert sum(bool(expected(folder)["cause"]) for folder in LOGS) >= 40
    assert sum(not expected(folder)["cause"] for folder in LOGS) >= 6
