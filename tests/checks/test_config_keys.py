"""Every row of the table of keys: a right value is quiet, a wrong one and a misspelt name are found."""

from typing import Any

import pytest
from dsdoctor_checks.config_keys import FREE, GONE, KEYS, children

from dsdoctor.facts import DsConfig
from dsdoctor.model import Finding
from tests.checks.config_cases import NOW, config, found

GOOD: dict[str, Any] = {
    "integer": 2,
    "number": 0.5,
    "boolean": True,
    "null": None,
    "string": "words",
    "array": [],
    "object": {},
}
BAD: dict[str, Any] = {"integer": [1.5], "number": ["x"], "boolean": "perhaps", "string": [7], "array": 3, "object": 3}
BY_HAND = {"optimizer.type": "AdamW", "scheduler.type": "WarmupLR"}
ROWS = {key: row for key, row in KEYS.items() if row.get("allowed") != []}  # those that take some value


def holding(key: str, value: Any) -> DsConfig:
    """A config with one value at a dotted key."""
    made: Any = value
    for name in reversed(key.split(".")):
        made = {name: made}
    return config(**made)


def said(key: str, value: Any) -> list[Finding]:
    """What the checks of single keys find."""
    return [f for code in ("CFG003", "CFG004", "CFG005", "CFG006") for f in found(code, holding(key, value), NOW)]


def right(key: str, row: dict[str, Any]) -> Any:
    if key in BY_HAND:
        return BY_HAND[key]
    if "allowed" in row and "array" not in row["types"]:
        return row["allowed"][0]
    return GOOD[row["types"][0]]


@pytest.mark.parametrize("key", ROWS)
def test_a_row_of_the_table(key: str) -> None:
    row = ROWS[key]
    assert said(key, right(key, row)) == []
    wrong = said(key, BAD[next(kind for kind in row["types"] if kind != "null")])
    assert [f.subject for f in wrong][:1] == [key]
    assert wrong[0].message.startswith("ds.json:")


@pytest.mark.parametrize("key", [key for key in KEYS if key.rpartition(".")[0] not in FREE])
def test_a_misspelt_name_is_no_key(key: str) -> None:
    house, _, name = key.rpartition(".")
    near = name[:-1] + name[-1] * 2 + "_"
    if near in children(house):
        near += "_"
    (finding,) = said(f"{house}.{near}" if house else near, {} if key in children("") else 1)
    assert finding.cause in ("config-unknown-key-silent", "config-unknown-zero-key", "config-misplaced-section")


@pytest.mark.parametrize("key", GONE)
def test_a_key_that_is_gone_is_told(key: str) -> None:
    gone = found("CFG013", holding(key, {"enabled": False}), NOW)
    assert [f.subject for f in gone] == [key]
    assert GONE[key]["removed"] in gone[0].message
