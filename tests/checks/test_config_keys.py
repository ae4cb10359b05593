"""Every row of the table of keys: a right value is quiet, a wrong one and a misspelt name are found."""

from typing import Any, cast

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
    bad = BAD[next(kind for kind in row["types"] if kind != "null")]
    wrong = said(key, bad)
    assert [f.subject for f in wrong][:1] == [key]
    assert wrong[0].message.startswith(f"{holding(key, bad).where(key)}: {key} is ")


def beyond(row: dict[str, Any]) -> list[Any]:
    """Values of the right type that the row does not allow."""
    steps = {"least": -1, "above": 0, "most": 1, "below": 0}
    outside = [row[word] + step for word, step in steps.items() if word in row]
    if "allowed" in row:
        outside.append(["nonsense"] if "array" in row["types"] else "nonsense" if "string" in row["types"] else 99)
    return outside + ([""] if row.get("nonempty") else [])


LIMITED = {key: row for key, row in KEYS.items() if beyond(row)}


@pytest.mark.parametrize("key", LIMITED)
def test_what_a_row_does_not_allow(key: str) -> None:
    for value in beyond(LIMITED[key]):
        made = holding(key, value)
        (finding,) = found("CFG006", made)
        assert finding.message.startswith(f"{made.where(key)}: {key} is ")
        assert finding.subject == key


def test_rows_with_limits_are_many() -> None:
    assert len(LIMITED) > 50


@pytest.mark.parametrize("key", [key for key in KEYS if key.rpartition(".")[0] not in FREE])
def test_a_misspelt_name_is_no_key(key: str) -> None:
    house, _, name = key.rpartition(".")
    near = name[:-1] + name[-1] * 2 + "_"
    if near in children(house):
        near += "_"
    written, value = f"{house}.{near}" if house else near, cast(Any, {} if key in children("") else 1)
    (finding,) = said(written, value)
    assert finding.message.startswith(f"{holding(written, value).where(written)}: {written} is no key")
    assert finding.cause in ("config-unknown-key-silent", "config-unknown-zero-key", "config-misplaced-section")


@pytest.mark.parametrize("key", GONE)
def test_a_key_that_is_gone_is_told(key: str) -> None:
    gone = found("CFG013", holding(key, {"enabled": False}), NOW)
    assert [f.subject for f in gone] == [key]
    assert GONE[key]["removed"] in gone[0].message


@pytest.mark.parametrize(
    ("values", "home"),
    [
        ({"stage": 2}, "zero_optimization.stage"),
        ({"overlap_comm": True}, "zero_optimization.overlap_comm"),
        ({"allgather_bucket_size": 2}, "zero_optimization.allgather_bucket_size"),
        ({"offload_optimizer": {"device": "cpu"}}, "zero_optimization.offload_optimizer"),
        ({"zero_optimization": {"bf16": {"enabled": True}}}, "bf16"),
        ({"zero_optimization": {"gradient_clipping": 1.0}}, "gradient_clipping"),
        ({"optimizer": {"type": "Adam", "lr": 0.1}}, "optimizer.params.lr"),
        ({"scheduler": {"type": "WarmupLR", "warmup_num_steps": 1}}, "scheduler.params.warmup_num_steps"),
        ({"initial_scale_power": 8}, "fp16.initial_scale_power"),
        ({"zero_optimization": {"offload_param": {"overlap_comm": True}}}, "zero_optimization.overlap_comm"),
        ({"warmup_num_steps": 1}, "scheduler.params.warmup_num_steps"),
    ],
)
def test_a_key_at_the_wrong_place_is_sent_home_and_moved(values: dict[str, Any], home: str) -> None:
    made = config(**values)
    (finding,) = [f for code in ("CFG003", "CFG004") for f in found(code, made, NOW)]
    assert finding.cause == "config-misplaced-section"
    assert f"it belongs at {home}" in finding.message
    (edit,) = finding.remedy.edits if finding.remedy else ()
    assert (edit.action, edit.value) == ("move", home)


@pytest.mark.parametrize("values", [{"seed": 1}, {"project": "x"}, {"profile": True}, {"device": "cpu"}, {"type": "x"}])
def test_common_words_of_the_user_are_not_sent_anywhere(values: dict[str, Any]) -> None:
    (finding,) = found("CFG003", config(**values), NOW)
    assert finding.cause == "config-unknown-key-silent"
    assert finding.remedy is not None
    assert finding.remedy.edits == ()


def test_a_home_that_is_taken_or_not_certain_moves_nothing() -> None:
    taken = found("CFG003", config(stage=3, zero_optimization={"stage": 2}), NOW)[0]
    twofold = found("CFG004", config(zero_optimization={"pin_memory": True}), NOW)[0]
    assert "offload_param.pin_memory or zero_optimization.offload_optimizer.pin_memory" in twofold.message
    for finding in (taken, twofold):
        assert finding.remedy is not None
        assert finding.remedy.edits == ()


def test_a_home_that_says_the_same_leaves_nothing_to_keep() -> None:
    (finding,) = found("CFG003", config(stage=2, zero_optimization={"stage": 2}), NOW)
    assert "its place is zero_optimization.stage, which is 2" in finding.message
    assert finding.remedy is not None
    assert [(edit.action, edit.key) for edit in finding.remedy.edits] == [("remove", "stage")]


def test_a_file_that_is_no_ds_config_is_not_told_key_by_key() -> None:
    told = found("CFG003", config(**{f"key{n}": n for n in range(5000)}), NOW)
    assert len(told) < 200
    assert "more keys are none that DeepSpeed reads" in told[-1].message
