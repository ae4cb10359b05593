"""Mending a config: only what is safe, nothing else moves, and what comes out is what was meant."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsdoctor.config import fix as config_fix
from dsdoctor.config.fix import apply, diff, edits_of
from dsdoctor.facts import DsConfig
from dsdoctor.model import ConfigEdit
from dsdoctor.readers import ds_config
from dsdoctor.readers.config_spans import spans
from dsdoctor.testing import machine, verdict
from tests.checks.config_cases import CHECKS, NOW


def mended(text: str) -> str:
    """The text with every safe edit that the checks propose for it."""
    config = ds_config.parse(text, "ds.json")
    return apply(text, edits_of(verdict(check, machine(config, NOW)) for check in CHECKS.values())).text


def read(text: str) -> DsConfig:
    config = ds_config.parse(text, "ds.json")
    assert config.problem is None
    return config


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"zero_optimisation": {"stage": 3}}', '{"zero_optimization": {"stage": 3}}'),
        ('{"zero_optimization": {"stage": "2"}}', '{"zero_optimization": {"stage": 2}}'),
        ('{"train_batch_size": "8"}', '{"train_batch_size": 8}'),
        ('{"zero_optimization": {"reduce_bucket_size": "5e8"}}', '{"zero_optimization": {"reduce_bucket_size": 500000000}}'),
        ('{"bf16": {"enabled": "false"}}', '{"bf16": {"enabled": false}}'),
        ('{"gradient_clipping": "1.0"}', '{"gradient_clipping": 1.0}'),
        ('{"zero_optimization": {"stage": 3, "offload_param": {"device": "CPU"}}}', '{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}'),
        ('{"elasticity": {"enabled": false}, "fp16": {}}', '{"fp16": {}}'),
        ('{"fp16": {}, "elasticity": {"enabled": false}}', '{"fp16": {}}'),
        ('{"elasticity": {"enabled": false}}', '{}'),
        ('{"zero_optimization": {"stage": 2, "cpu_offload": true}}', '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}'),
        ('{"aio": {"thread_count": 4}}', '{"aio": {"intra_op_parallelism": 4}}'),
        ('{"fp16": {"enabled": true}, "fp16": {"enabled": true}}', '{"fp16": {"enabled": true}}'),
        ('{"zero_optimisation": {"stage": "1"}}', '{"zero_optimization": {"stage": "1"}}'),
    ],
)  # fmt: skip
def test_what_is_safe_is_mended(before: str, after: str) -> None:
    assert mended(before) == after


@pytest.mark.parametrize(
    "text",
    [
        '{"fp16": {"enabled": true}, "fp16": {"enabled": false}}',  # which one is meant?
        '{"elasticity": {"enabled": true, "max_train_batch_size": 2000}}',  # something is on
        '{"zero_optimization": {"stage": 1}, "zero_optimisation": {"stage": 3}}',  # the real name is taken
        '{"my_own_notes": 1}',  # like no key
        '{"train_batch_size": "many"}',
        '{"zero_optimization": {"stage": 2, "cpu_offload": true, "offload_optimizer": {"device": "none"}}}',
    ],
)
def test_what_is_not_clear_stays(text: str) -> None:
    assert mended(text) == text


def test_comments_order_and_spelling_stay() -> None:
    before = """// how we train
{
  // stages
  zero_optimisation: {   # the big one
    stage: "3",  // as text
  },
  /* gone */
  "sparse_attention": null,
  'train_batch_size': '16'   # all ranks
}
"""
    after = before.replace("zero_optimisation", "zero_optimization").replace("'16'", "16")
    assert mended(before) == after.replace('  "sparse_attention": null,\n', "")


def test_lean_leaves_out_what_does_nothing_and_stays_the_same_config() -> None:
    wordy = """{
  "train_micro_batch_size_per_gpu": 4,
  "prescale_gradients": false,
  "fp16": {"enabled": false, "loss_scale": 128},
  "zero_optimization": {
    "stage": 2, // ours
    "reduce_scatter": true,
    "sub_group_size": 1e9
  }
}
"""
    lean = """{
  "train_micro_batch_size_per_gpu": 4,
  "fp16": {"enabled": false},
  "zero_optimization": {
    "stage": 2, // ours
  }
}
"""
    assert mended(wordy) == wordy
    config = ds_config.parse(wordy, "ds.json")
    verdicts = [verdict(check, machine(config, NOW)) for check in CHECKS.values()]
    assert apply(wordy, edits_of(verdicts, lean=True)).text == lean
    again = [verdict(check, machine(read(lean), NOW)) for check in CHECKS.values()]
    assert edits_of(again, lean=True) == ()


def test_a_file_of_windows_stays_one() -> None:
    before = '\ufeff{\r\n  "elasticity": {"enabled": false},\r\n  "train_batch_size": "8"\r\n}\r\n'
    assert mended(before) == '\ufeff{\r\n  "train_batch_size": 8\r\n}\r\n'


def test_a_second_pass_finds_nothing_to_do() -> None:
    once = mended(
        '{"zero_optimisation": {"stage": "3", "offload_param": {"device": "CPU"}}, "fp16": {"enabled": "true"}}'
    )
    twice = mended(once)
    assert read(twice).values == {
        "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
        "fp16": {"enabled": True},
    }
    assert mended(twice) == twice


def test_the_difference_is_a_patch() -> None:
    before = '{\n  "train_batch_size": "8",\n  "fp16": {"enabled": true}\n}'
    told = diff(before, mended(before), "ds.json")
    assert told.splitlines()[:2] == ["--- a/ds.json", "+++ b/ds.json"]
    assert '-  "train_batch_size": "8",\n+  "train_batch_size": 8,\n' in told
    assert "\\ No newline at end of file" in told


def test_an_edit_that_would_break_the_file_is_left_out() -> None:
    text = '{"a": {"b": 1}}'
    fixed = apply(text, [ConfigEdit(action="set", key="a.b", value="}{"), ConfigEdit(action="remove", key="nowhere")])
    assert fixed.text == text
    assert len(fixed.left) == 2


def test_edits_of_a_text_that_is_no_config_are_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({f"fp{n}": {} for n in range(9)})
    edits = [ConfigEdit(action="rename", key=f"fp{n}", value="fp16") for n in range(9)]
    assert len(apply(text, edits).done) == 1, "one of them can have the name"
    monkeypatch.setattr(config_fix, "MOST_READ", len(text) - 1)
    assert apply(text, edits).text == text


def test_edits_in_one_place_do_not_mix() -> None:
    text = json.dumps({"a": {"b": 1}, "c": 2})
    fixed = apply(text, [ConfigEdit(action="remove", key="a"), ConfigEdit(action="set", key="a.b", value="3")])
    assert fixed.text == '{"c": 2}'
    assert [edit.key for edit in fixed.left] == ["a.b"]


_NAMES = st.sampled_from(["zero_optimization", "zero_optimisation", "fp16", "bf16", "elasticity", "stage", "enabled", "optimizer", "optmizer",
                          "aio", "thread_count", "train_batch_size", "offload_optimizer", "device", "cpu_offload", "my_own", "a b", "\u00e9"])  # fmt: skip
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**9),
    st.sampled_from(["3", "5e8", "false", "CPU", "auto", "x, y}", "it's"]),
)
_FILES = st.recursive(_VALUES, lambda inner: st.dictionaries(_NAMES, inner, max_size=5), max_leaves=25)


def _flat(values: Any, path: str = "") -> dict[str, Any]:
    """Dotted key -> value, of everything that is no object."""
    if not isinstance(values, dict):
        return {path: values}
    return {k: v for key, value in values.items() for k, v in _flat(value, f"{path}.{key}" if path else key).items()}


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(_NAMES, _FILES, min_size=1, max_size=6),
    st.sampled_from(["json", "comments", "one line"]),
    st.booleans(),
)
def test_nothing_changes_but_what_a_mend_names(values: dict[str, Any], style: str, lean: bool) -> None:
    text = json.dumps(values, indent=None if style == "one line" else 2, ensure_ascii=False)
    notes = []
    if style == "comments":
        lines = text.split("\n")
        notes = [f"  // note {number}" for number, line in enumerate(lines) if line[:3] == '  "']
        text = "\n".join(f"  // note {n}\n{line}" if line[:3] == '  "' else line for n, line in enumerate(lines))
    config = ds_config.parse(text, "ds.json")
    assert config.values == values
    fixed = apply(text, edits_of((verdict(check, machine(config, NOW)) for check in CHECKS.values()), lean=lean))
    after = ds_config.parse(fixed.text, "ds.json")
    assert after.problem is None
    assert [note for note in notes if f"{note}\n" not in fixed.text] == []
    meant = [edit.key for edit in fixed.done]
    meant += [f"{e.key.rpartition('.')[0]}.{e.value}".lstrip(".") for e in fixed.done if e.action == "rename"]
    meant += [edit.value or "" for edit in fixed.done if edit.action == "move"]
    was, now = _flat(values), _flat(after.values)
    others = [key for key in was.keys() | now.keys() if was.get(key, ...) != now.get(key, ...)]
    assert [
        key for key in others if not any(f"{key}.".startswith(f"{name}.") for name in meant) and now.get(key) != {}
    ] == []
    again = apply(fixed.text, fixed.done)
    assert (again.text, fixed.text == text) == (fixed.text, not fixed.done)


def test_spans_are_the_written_keys_and_values() -> None:
    text = "{ a: {'b': [1, {c: 2}]}, \"d\": '''y''' }"
    found = {span.path: (text[span.key : span.key_end], text[span.value : span.end]) for span in spans(text)}
    assert found == {
        "a": ("a", "{'b': [1, {c: 2}]}"),
        "a.b": ("'b'", "[1, {c: 2}]"),
        "a.b.1.c": ("c", "2"),
        "d": ('"d"', "'''y'''"),
    }
    assert spans("{") == []
