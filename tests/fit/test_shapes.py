"""Parameter counts against real models of transformers, and what happens with a config.json that is odd."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.fit.config import BadConfig
from dsdoctor.fit.shapes import MAKERS, from_config, from_size

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "fixtures/fit/parameter_counts.json").read_text())[
    "rows"
]
LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 1000,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['config']['model_type']}-{row['parameters']}")
def test_the_count_is_the_real_models(row: dict[str, Any]) -> None:
    shape = from_config(row["config"])
    assert (shape.parameters, shape.tensors, shape.largest_tensor) == (
        row["parameters"],
        row["tensors"],
        row["largest_tensor"],
    )
    assert shape.exact


def test_every_family_that_claims_to_be_exact_was_counted() -> None:
    assert set(MAKERS) == {row["config"]["model_type"] for row in ROWS}


def test_a_live_model_has_the_same_count() -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**LLAMA))
    assert from_config(LLAMA).parameters == sum(parameter.numel() for parameter in model.parameters())


def test_an_unknown_architecture_is_counted_like_llama_and_says_so() -> None:
    shape = from_config({**LLAMA, "model_type": "brandnew"})
    assert shape.parameters == from_config(LLAMA).parameters
    assert not shape.exact
    assert any("brandnew" in note for note in shape.notes)


def test_the_text_part_of_a_multimodal_file_is_counted() -> None:
    assert from_config({"model_type": "seer", "text_config": LLAMA}).parameters == from_config(LLAMA).parameters


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": "big"}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"num_hidden_layers": -3}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"vocab_size": 1e300}, "vocab_size"),
        ({"intermediate_size": 0}, "intermediate_size"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
    ],
)
def test_what_cannot_be_counted_is_named(change: dict[str, object], word: str) -> None:
    with pytest.raises(BadConfig, match=word):
        from_config({**LLAMA, **change})


@pytest.mark.parametrize(
    ("size", "parameters"),
    [("7B", 7e9), ("1.5b", 1.5e9), ("350M", 350e6), ("1M", 1e6), ("7000000000", 7e9), ("70e9", 70e9)],
)
def test_a_size_is_taken_at_its_word(size: str, parameters: float) -> None:
    assert from_size(size).parameters == pytest.approx(parameters, rel=0.01)


def test_a_size_with_its_proportions_keeps_them() -> None:
    shape = from_size("7B", layers=32, hidden=4096, vocab=32_000)
    assert (shape.layers, shape.hidden, shape.vocab) == (32, 4096, 32_000)
    assert shape.ffn == pytest.approx(11_008, rel=0.15)  # Llama's of 6.74 billion
    assert not shape.exact


@pytest.mark.parametrize("size", ["", "seven", "-1B", "0", "1e30B", "nan", "7G"])
def test_a_word_that_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(BadConfig):
        from_size(size)


@pytest.mark.parametrize("odd", [{"layers": 0}, {"hidden": -1}, {"vocab": 10**12}, {"layers": 10**9}])
def test_proportions_that_are_no_model_are_refused(odd: dict[str, int]) -> None:
    with pytest.raises(BadConfig):
        from_size("7B", **odd)


def test_an_unknown_family_that_says_little_is_counted_with_what_is_usual() -> None:
    raw = {
        "model_type": "foobar",
        "hidden_size": 1024,
        "num_hidden_layers": 12,
        "num_attention_heads": 16,
        "vocab_size": 32_000,
    }
    shape = from_config(raw)
    assert shape.parameters == from_config({**raw, "intermediate_size": 4096}).parameters
    assert not shape.exact
    assert any("how wide the feed-forward is" in note for note in shape.notes)
