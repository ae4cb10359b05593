"""ds_config.json as DeepSpeed reads it, with places; and every way in which such a file can be broken."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsdoctor.facts import DsConfig
from dsdoctor.readers import ds_config

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"


def values(text: str) -> dict[str, Any]:
    config = ds_config.parse(text, "c.json")
    assert config.problem is None, config.problem
    return config.values


def broken(text: str) -> DsConfig:
    config = ds_config.parse(text, "c.json")
    assert config.problem is not None
    assert config.values == {}
    return config


def test_every_key_has_its_line_and_column() -> None:
    config = ds_config.read(str(CONFIGS / "zero2_fp16.json"))
    assert config.problem is None
    assert config.get("zero_optimization.offload_optimizer.device") == "cpu"
    assert config.places["zero_optimization"] == (7, 3)
    assert config.places["zero_optimization.stage"] == (8, 5)
    assert config.places["zero_optimization.offload_optimizer.device"] == (9, 27)
    assert config.where("fp16.enabled").endswith("zero2_fp16.json:6:12")


def test_a_number_with_an_exponent_is_the_integer_that_deepspeed_gets() -> None:
    size = values('{"a": 5e8, "b": 1.5, "c": 2.0, "d": -0}')
    assert size == {"a": 500000000, "b": 1.5, "c": 2, "d": 0}
    assert isinstance(size["a"], int)


def test_loose_json_is_read_as_deepspeed_reads_it() -> None:
    config = ds_config.read(str(CONFIGS / "hjson_loose.json"))
    assert config.values == {
        "train_micro_batch_size_per_gpu": 2,
        "zero_optimization": {"stage": 2, "overlap_comm": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    }
    assert config.strict_json is False
    assert config.places["optimizer.params.lr"] == (12, 15)


def test_duplicate_keys_are_named_with_their_path() -> None:
    config = ds_config.parse('{"a": 1, "z": {"b": 1, "b": 2}, "a": 3}', "c.json")
    assert config.duplicates == ("z.b", "a")
    assert config.values == {"a": 3, "z": {"b": 2}}
    assert config.places["a"] == (1, 33)


@pytest.mark.parametrize(
    ("text", "says", "line", "column"),
    [
        ('{"a": 1,\n "b": [1, 2}', "a value is missing", 2, 12),
        ('{"a": {"b": 1}', "the brace that opens here is never closed", 1, 1),
        ('{\n"a" 1}', 'a colon is missing after the key "a"', 2, 5),
        ('{"a: 1}\n', "the quote that opens here is not closed", 1, 2),
        ('{"a": "C:\\dir"}', "is no escape sequence", 1, 10),
        ('{"a": "\\u12x4"}', "four hexadecimal digits", 1, 8),
        ("{/* open\n", "never closed", 1, 2),
        ('{"a": 1} }', "something follows the closing bracket", 1, 10),
        ('{"a": }', "a value is missing", 1, 7),
        ('{"a": NaN}', "reads no NaN", 1, 7),
        ("{'a': {'b': True}, 'c': 1}", "write true", 1, 13),
        ('{"a": {\n"b": None},\n"c": 1}', "write null", 2, 6),
        ('{"a": cpu}', "double quotes", 1, 7),
        ('{"a": 1' + "0" * 500 + "}", "too long", 1, 7),
        ('{"a": 1e999}', "too large", 1, 7),
        ("", "it is empty", None, None),
        (" \n", "it is empty", None, None),
        ("[1, 2]", "a list, not an object", None, None),
        ("'text'", "not an object", None, None),
        ("zero_optimization:\n  stage: 2\n", "looks like YAML", None, None),
        ("---\nfp16: x\n", "looks like YAML", None, None),
    ],
)
def test_a_broken_text_is_told_with_its_place(text: str, says: str, line: int | None, column: int | None) -> None:
    config = broken(text)
    assert says in (config.problem or "")
    assert (config.line, config.column) == (line, column)


@pytest.mark.parametrize("mark", ["[", '{"a":', "[[{a:"])
def test_deep_nesting_is_a_problem_not_a_crash(mark: str) -> None:
    assert "deeper than 100 levels" in (broken('{"x":' + mark * 10_000).problem or "")


def test_a_huge_text_is_refused() -> None:
    config = ds_config.parse("{" + " " * ds_config.MOST_BYTES + "}", "c.json")
    assert not config.readable
    assert "characters" in (config.problem or "")


def test_files_that_are_no_config(tmp_path: Path) -> None:
    def problem(name: str, data: bytes | None = None) -> str:
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        return ds_config.read(str(path)).problem or "none"

    assert problem("absent.json") == "there is no such file"
    assert problem("") == "it is a folder; name the JSON file in it"
    assert problem("nul\0.json").startswith("it cannot be read")
    assert "UTF-16" in problem("utf16.json", '{"a": 1}'.encode("utf-16"))
    assert "UTF-8" in problem("latin.json", b'{"a":\n "\xe9"}')
    assert ds_config.read(str(tmp_path / "latin.json")).line == 2
    assert problem("bom.json", b'\xef\xbb\xbf{"a": 1}') == "none"
    assert "YAML" in problem("acc.yaml", b"distributed_type: DEEPSPEED\n")
    with open(tmp_path / "big.json", "wb") as file:
        file.truncate(50 * 2**20)
    assert "larger than 4 MiB" in problem("big.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=5), st.booleans(), st.sampled_from([None, 0, 3]))
def test_valid_json_gives_the_values_that_json_gives(
    value: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert values(text) == json.loads(text)


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet=st.sampled_from("{}[]:,\"'\\/*# \n\tu0d8aeE+-.1tfn\ud800"), max_size=60))
def test_no_text_makes_it_raise(text: str) -> None:
    assert ds_config.parse(text, "fuzz").path == "fuzz"
    assert ds_config.parse('{"a": ' + text + "}", "fuzz").path == "fuzz"


@pytest.fixture(scope="module")
def hjson() -> Any:
    return pytest.importorskip("hjson", reason="hjson comes with deepspeed")


LOOSE = [
    "{a: 1}",
    "a: 1\nb: two words\n",
    "{\n  a: x, y\n  b: 'single'\n}",
    "{a: 1 // c\n b: 2 # d\n c: /* e */ 3}",
    '{"a": 1,, }',
    '{"a": [1 2 3]}',
    '{"a": [1,2,],}',
    "{a: 01\n}",
    "{a: 1.\n}",
    "{a: -\n}",
    "{a: True,\n b: 1\n}",
    "{a: NaN,\n}",
    "{a: null b\n}",
    "{a: true}",
    "{a: tru\n}",
    "{a: 1e5, b: 12345678901e0, c: 1.0}",
    '{"a" "b": 1}',
    "{a b: 1}",
    "{: 1}",
    "{a: }",
    "{a: ]\n}",
    '{"a": "x" "b": "y"}',
    "{\n  a:\n    '''\n    one\n      two\n    '''\n}",
    "{a: http://host/x\n}",
    '{"a": "it\'s"}',
    '{"a": "tab\there"}',
    '{"\\ud83d\\ude00": 1}',
    "{} x",
    "# only a comment\n{a: 1}",
    "{a: b}",
    "[1, 2",
]


@pytest.mark.parametrize("text", LOOSE)
def test_loose_texts_are_taken_and_refused_as_hjson_does(text: str, hjson: Any) -> None:
    config = ds_config.parse(text, "c.json")
    refused = importlib.import_module("hjson").HjsonDecodeError
    try:
        want = hjson.loads(text)
    except refused:
        assert config.problem is not None
    else:
        assert config.problem is None
        assert config.values == want


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet=st.sampled_from('{}[]:,"# \n1a-t'), max_size=25))
def test_random_loose_texts_are_read_as_hjson_reads_them(text: str) -> None:
    hjson = pytest.importorskip("hjson", reason="hjson comes with deepspeed")
    text = "{k: " + text + "\n}"
    config = ds_config.parse(text, "c.json")
    try:
        want = hjson.loads(text)
    except hjson.HjsonDecodeError:
        assert config.problem is not None
    else:
        assert (config.problem, config.values) == (None, want)
