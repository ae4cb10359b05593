"""Where in a file a finding stands: its first evidence names it as ``file:line:column``."""

import re
from typing import NamedTuple

from dsdoctor.model import Finding

_PLACE = re.compile(r"(.+):([0-9]{1,9}):([0-9]{1,9})", re.DOTALL)


class Place(NamedTuple):
    """A place in a file, 1-based."""

    file: str
    line: int
    column: int


def place_in(where: str) -> Place | None:
    """The place that ``where`` of an evidence names, if it is one in a file."""
    found = _PLACE.fullmatch(where)
    return Place(found.group(1), int(found.group(2)), int(found.group(3))) if found else None


def place_of(finding: Finding) -> Place | None:
    """Where the finding stands."""
    return place_in(finding.evidence[0].where) if finding.evidence else None
