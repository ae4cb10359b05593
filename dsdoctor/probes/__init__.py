"""The only room with I/O: ask the machine. One file per fact section, each with a ``probe`` function.

``probe(system, ...)`` returns its section or raises ``ProbeFailed`` with an Unavailable; everything else that it raises
is our bug and becomes Unavailable(kind="crashed").
"""

from dsdoctor.facts import Unavailable, UnavailableKind


class ProbeFailed(Exception):
    """A probe could not find out. Carries why."""

    def __init__(self, kind: UnavailableKind, detail: str) -> None:
        super().__init__(detail)
        self.unavailable = Unavailable(kind=kind, detail=detail)
