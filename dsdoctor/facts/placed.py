"""What configs of every kind share: their values, and the place of each key."""

from typing import Any

from dsdoctor.facts.base import Fact


class Placed(Fact, frozen=True, kw_only=True):
    """A file of keys and values."""

    path: str
    values: dict[str, Any] = {}
    places: dict[str, tuple[int, int]] = {}  # "zero_optimization.stage" -> (line, column), 1-based

    def get(self, dotted: str, default: Any = None) -> Any:
        """Value at ``a.b.c``, or ``default`` when any part is missing."""
        here: Any = self.values
        for part in dotted.split("."):
            if not isinstance(here, dict) or part not in here:
                return default
            here = here[part]
        return here

    def where(self, dotted: str) -> str:
        """``file:line:column`` of a key, for messages."""
        line, column = self.places.get(dotted, (1, 1))
        return f"{self.path}:{line}:{column}"
