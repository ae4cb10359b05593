"""Every recorded machine gives the diagnosis that was checked by hand. A bug report becomes a folder here.

``expect.toml`` lists codes by status (only those named are compared), causes in rank order, capability states, and words
that the first lines must hold.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.model import Report, Severity
from dsdoctor.testing import load_machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MACHINES = sorted(
    p for p in (Path(__file__).parents[2] / "fixtures/machines").iterdir() if (p / "expect.toml").exists()
)


def examined(folder: Path) -> tuple[Report, dict[str, Any]]:
    expect = tomllib.loads((folder / "expect.toml").read_text("utf-8"))
    return diagnose(load_machine(folder), load_knowledge()), expect


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_findings_are_exactly_the_expected_ones(folder: Path) -> None:
    report, expect = examined(folder)
    found = {
        severity: sorted(
            {v.code for v in report.verdicts for f in v.findings if (f.severity or v.severity) is Severity(severity)}
        )
        for severity in ("error", "warning", "info")
    }
    assert found == {severity: sorted(expect["findings"].get(severity, [])) for severity in found}


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_no_check_crashes(folder: Path) -> None:
    report, _ = examined(folder)
    assert [(v.code, v.reason) for v in report.verdicts if v.status.value == "crashed"] == []


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_causes_purpose_and_outcome(folder: Path) -> None:
    report, expect = examined(folder)
    assert report.outcome == expect["outcome"]
    assert report.facts.purpose is not None
    assert report.facts.purpose.name == expect["purpose"]
    roots = [c.cause for c in report.causes if c.explained_by is None and c.severity is not Severity.INFO]
    assert roots == expect["causes"]


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_capabilities(folder: Path) -> None:
    report, expect = examined(folder)
    states = {c.name: f"{c.state} {c.proof.value}" if c.state == "ready" else c.state for c in report.capabilities}
    assert states == expect["capabilities"]


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_first_lines_say_what_this_platform_can_do(folder: Path) -> None:
    report, expect = examined(folder)
    platform = report.platform
    lines = " ".join(filter(None, (platform.headline, platform.can, platform.cannot, platform.instead)))
    for word in expect.get("platform_says", []):
        assert word in lines
