"""For tests of checks: a healthy machine to bend, and one line to judge it."""

from pathlib import Path
from typing import Any

from dsdoctor.facts import Fact, Snapshot, Unavailable
from dsdoctor.facts.snapshot import SECTIONS, decode
from dsdoctor.judge import judge_one
from dsdoctor.model import Check, Verdict
from dsdoctor.prescribe import Prescriber

_TOOL = "0"


def machine(*sections: Fact, origin: str = "a test", **unavailable: Unavailable) -> Snapshot:
    """A snapshot that holds exactly the given sections; keyword arguments name sections that could not be had."""
    fields: dict[str, Any] = {SECTIONS[type(section)]: section for section in sections}
    return Snapshot(tool_version=_TOOL, origin=origin, unavailable=unavailable, **fields)


def verdict(check: Check, snapshot: Snapshot) -> Verdict:
    """What ``check`` says of ``snapshot``."""
    return judge_one(check, snapshot, Prescriber.of(snapshot))


def load_machine(folder: str | Path) -> Snapshot:
    """The snapshot in ``folder/facts.json``."""
    path = Path(folder) / "facts.json"
    return decode(path.read_bytes(), str(path))
