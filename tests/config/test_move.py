"""A member of a config that moves to another block: its text, and what the file says afterwards."""

import pytest

from dsdoctor.config.fix import apply
from dsdoctor.model import ConfigEdit
from dsdoctor.readers import ds_config

CASES = [
    (  # into a block with lines of its own; comments and order of the rest stay
        '{\n  "stage": 2,  // which\n  "zero_optimization": {\n    // fast\n    "overlap_comm": true\n  }\n}\n',
        ("stage", "zero_optimization.stage"),
        '{\n  // which\n  "zero_optimization": {\n    "stage": 2,\n    // fast\n    "overlap_comm": true\n  }\n}\n',
    ),
    ('{"a": 1, "stage": 2, "z": {"x": 1}}', ("stage", "z.stage"), '{"a": 1, "z": {"stage": 2, "x": 1}}'),
    ('{"z": {}, "stage": 2}', ("stage", "z.stage"), '{"z": {"stage": 2}}'),
    ('{"a": 1, "stage": 2}', ("stage", "z.stage"), '{"a": 1, "z": {"stage": 2}}'),  # a block that is not there
    ('{"o": {"type": "x", "lr": 1}}', ("o.lr", "o.params.lr"), '{"o": {"type": "x", "params": {"lr": 1}}}'),
    ('{\n "z": {\n  "bf16": {"enabled": true}\n }\n}', ("z.bf16", "bf16"), '{\n "bf16": {"enabled": true},\n "z": {\n }\n}'),
    ('{"stage": 2}', ("stage", "a.b.stage"), '{"a": {"b": {"stage": 2}}}'),
    (  # its own lines come along
        '{\n  "a": 1,\n  "z": {\n    "bf16": {\n      "enabled": true\n    }\n  }\n}\n', ("z.bf16", "bf16"),
        '{\n  "bf16": {\n    "enabled": true\n  },\n  "a": 1,\n  "z": {\n  }\n}\n',
    ),
    ("{ stage: 2, z: { x: 1 } }", ("stage", "z.stage"), "{ z: {stage: 2, x: 1 } }"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where", "after"), CASES)
def test_a_member_moves(text: str, where: tuple[str, str], after: str) -> None:
    fixed = apply(text, [ConfigEdit(action="move", key=where[0], value=where[1])])
    assert fixed.text == after
    assert ds_config.parse(after, "").get(where[1]) == ds_config.parse(text, "").get(where[0])


@pytest.mark.parametrize(
    "text", ['{"stage": 2, "z": {"stage": 1}}', '{"stage": 2, "z": 7}', '{"stage": 1, "stage": 2, "z": {}}', "stage: 2"]
)
def test_nothing_moves_where_the_place_is_taken_or_not_clear(text: str) -> None:
    edit = ConfigEdit(action="move", key="stage", value="z.stage")
    assert apply(text, [edit]).text == text


def test_several_members_move_into_one_new_block() -> None:
    text = '{"stage": 2, "overlap_comm": true, "a": 1}'
    edits = [ConfigEdit(action="move", key=key, value=f"z.{key}") for key in ("stage", "overlap_comm")]
    assert ds_config.parse(apply(text, edits).text, "").values == {"z": {"stage": 2, "overlap_comm": True}, "a": 1}
