"""config.json files of models that many people train, against what transformers counts in the model that it makes of each."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.fit.activations import activations
from dsdoctor.fit.shapes import from_config
from dsdoctor.fit.training import Training

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "fixtures/fit/known_models.json").read_text())[
    "rows"
]
# two multi-modal files, as silent about their text parts as those mostly are; counted by transformers 5.24, 2026-11-30
GEMMA3_4B = {
    "architectures": ["Gemma3ForConditionalGeneration"], "mm_tokens_per_image": 256, "model_type": "gemma3",
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model", "num_hidden_layers": 27},
}  # fmt: skip
LLAVA_7B = {
    "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "image_token_index": 32000,
    "text_config": {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096, "model_type": "llama", "vocab_size": 32064},
    "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096, "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24},
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_the_count_is_that_of_the_real_model(row: dict[str, Any]) -> None:
    shape = from_config(row["config"])
    assert shape.parameters == row["parameters"]
    assert shape.exact
    kept = activations(shape, Training(sequence=512))
    assert kept.layer > 0
    assert kept.kept > 0


@pytest.mark.parametrize(
    ("raw", "text", "whole"),
    [(GEMMA3_4B, 3_880_263_168, 4_314_419_264), (LLAVA_7B, 6_738_939_904, 7_065_483_264)],
    ids=["gemma-3-4b", "llava-1.5-7b"],
)
def test_the_text_part_of_a_multimodal_model_is_counted_and_that_is_said(
    raw: dict[str, Any], text: int, whole: int
) -> None:
    shape = from_config(raw)
    assert shape.parameters == text < whole
    assert not shape.exact
    assert any("only the text part" in note for note in shape.notes)


def test_quantised_weights_are_counted_as_if_they_were_not_and_that_is_said() -> None:
    row = next(row for row in ROWS if row["name"] == "DeepSeek-V3")
    assert any("quantised" in note for note in from_config(row["config"]).notes)
