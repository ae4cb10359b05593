"""Hugging Face TrainingArguments from a file (JSON, or YAML as training programs read it), with the place of each key."""

from typing import Any

from dsdoctor.facts.base import Fact


class TrainingArgs(Fact, frozen=True, kw_only=True):
    path: str
    problem: str | None = None  # why it could not be read to its end, one sentence
    values: dict[str, Any] = {}
    places: dict[str, tuple[int, int]] = {}  # key -> (line, column), 1-based

    def get(self, key: str, default: Any = None) -> Any:
        """What the file says of ``key``, or ``default``."""
        return self.values.get(key, default)

    def where(self, key: str) -> str:
        """``file:line:column`` of a key, for messages."""
        line, column = self.places.get(key, (1, 1))
        return f"{self.path}:{line}:{column}"
