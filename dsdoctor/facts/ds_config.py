"""The user's ds_config.json, parsed with the place of every key."""

from typing import Any

from dsdoctor.facts.base import Fact


class DsConfig(Fact, frozen=True, kw_only=True):
    path: str
    readable: bool = True
    problem: str | None = None  # why it could not be read or parsed, one sentence
    line: int | None = None  # where it stopped, 1-based
    column: int | None = None
    values: dict[str, Any] = {}
    places: dict[str, tuple[int, int]] = {}  # "zero_optimization.stage" -> (line, column), 1-based
    duplicates: tuple[str, ...] = ()  # dotted keys given twice
    strict_json: bool | None = None  # False: DeepSpeed (Hjson) reads it, plain JSON readers (transformers) do not

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
