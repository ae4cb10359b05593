"""An Accelerate config (default_config.yaml): keys as Accelerate writes them, with the place of each."""

from typing import Any

from dsdoctor.facts.base import Fact


class AccelerateConfig(Fact, frozen=True, kw_only=True):
    path: str
    problem: str | None = None  # why it could not be read to its end, one sentence
    values: dict[str, Any] = {}  # "deepspeed_config" and the like hold a dict
    places: dict[str, tuple[int, int]] = {}  # "deepspeed_config.zero_stage" -> (line, column), 1-based

    def get(self, dotted: str, default: Any = None) -> Any:
        """Value at ``a.b``, or ``default`` when any part is missing."""
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
