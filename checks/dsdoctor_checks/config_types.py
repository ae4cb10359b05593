"""What is wrong with one value of the config, judged by its row in the table of keys. Pure functions for config.py.

Source of the rules: deepspeed 0.19.8 and pydantic 2, asked about every key with every odd value (tests/bench/config.py) 2026-11-30.
"""

from typing import Any

from dsdoctor.api import Severity
from dsdoctor_checks.config_keys import REFUSE, TABLE, whole

_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}
_TRUTH = ("true", "false", "yes", "no", "on", "off", "0", "1", "t", "f", "y", "n")
_MOST = 2**63  # a float above it is no integer for pydantic
_LIMITS = (("least", "at least"), ("above", "above"), ("most", "at most"), ("below", "below"))
SAID = {"boolean": "true or false", "integer": "a whole number", "object": "an object {...}", "array": "a list [...]",
        "number": "a number", "string": "a text", "null": "null"}  # fmt: skip
Problem = tuple[str, Severity]


def kind_of(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), "string")


def _strict(key: str) -> bool:
    """True in the blocks that have a pydantic model: it bends "2" and "true", and refuses what it cannot bend."""
    return key.rpartition(".")[0] in REFUSE


def type_problem(key: str, value: Any, row: dict[str, Any]) -> Problem | None:
    """Cause and severity when DeepSpeed cannot use, or only bends, a value of this kind."""
    types, kind, strict = row["types"], kind_of(value), _strict(key)
    wrong = "config-wrong-type", Severity.ERROR
    if kind == "null":
        refused = row.get("null") is False or (kind not in types and (strict or "object" in types))
        return wrong if refused else None
    if value == "auto":
        scalar = {"string", "integer", "number", "boolean"} & set(types) and "object" not in types
        return None if scalar or key in TABLE["auto"]["native"] else wrong
    if kind in types:
        return None
    if kind == "boolean" and {"integer", "number"} & set(types):
        return wrong if row.get("boolean") is False else ("config-wrong-type", Severity.WARNING)
    if kind in ("integer", "number"):
        return _number_problem(value, types, strict)
    return _text_problem(value, row, strict) if kind == "string" else wrong


def _number_problem(value: int | float, types: list[str], strict: bool) -> Problem | None:
    """A number where the row wants another kind of number, or a truth value."""
    if "number" in types or ("integer" in types and whole(value) is not None):
        return None
    if "boolean" in types and (value in (0, 1) if strict else isinstance(value, int)) and "object" not in types:
        return None
    return "config-wrong-type", Severity.ERROR


def _text_problem(value: str, row: dict[str, Any], strict: bool) -> Problem | None:
    """A text where the row wants something else: a number or a truth value in quotes, or words."""
    types, bent = row["types"], Severity.WARNING if strict else Severity.ERROR
    if "boolean" in types and "object" not in types and value.lower() in _TRUTH:
        return "config-bool-as-string", bent
    if not {"integer", "number"} & set(types):
        return "config-wrong-type", Severity.ERROR
    try:
        float(value)
    except ValueError:
        return "config-wrong-type", Severity.ERROR
    if row.get("text") is False:
        return "config-number-as-string", Severity.ERROR
    if whole(value) is None:
        return "config-sci-notation-string", Severity.ERROR if "integer" in types else bent
    return "config-number-as-string", bent


def range_problem(key: str, value: Any, row: dict[str, Any]) -> str | None:
    """What is allowed, when ``value`` is of the right type and not allowed."""
    strict = _strict(key)
    if row.get("nonempty") and not value:
        return "a name that is not empty"
    if isinstance(value, list) and "array" in row["types"]:
        return _items_problem(value, row)
    if "allowed" in row and isinstance(value, str | int | float) and not (value == "auto" and strict):
        outside = _outside(value, row)
        if outside:
            return outside
    return _limit_problem(_bent(value) if strict else value, row)


def _items_problem(value: list[Any], row: dict[str, Any]) -> str | None:
    if row.get("items") == "string" and not all(isinstance(item, str) for item in value):
        return "a list of texts"
    if "allowed" in row and not all(item in row["allowed"] for item in value):
        return "a list of " + ", ".join(str(a) for a in row["allowed"])
    return None


def _outside(value: Any, row: dict[str, Any]) -> str | None:
    allowed = row["allowed"]
    if not allowed:
        return "nothing: leave the key out"
    exact = row.get("exact")
    names = [str(a) if exact else str(a).lower() for a in allowed]
    got = str(value) if exact else str(value).lower()
    if got in names or str(whole(value)) in names:
        return None
    return "one of " + ", ".join(str(a) for a in allowed)


def _bent(value: Any) -> Any:
    """A text as the number that pydantic makes of it."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _limit_problem(value: Any, row: dict[str, Any]) -> str | None:
    if not {"integer", "number"} & set(row["types"]) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and abs(value) >= _MOST and "number" not in row["types"]:
        return "a number of less than 19 digits"
    for word, said in _LIMITS:
        limit = row.get(word)
        if (
            limit is not None
            and {"least": value < limit, "above": value <= limit, "most": value > limit, "below": value >= limit}[word]
        ):
            return f"{said} {limit}"
    return None
