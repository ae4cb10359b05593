"""What scripts say through the answer descriptor: one JSON object per line."""

import json
from typing import Any


def entry(line: bytes) -> dict[str, Any]:
    """One line; empty when it is cut off in the middle or somebody else's."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
