"""What the numbers do not know is said, and only then."""

import json
from pathlib import Path

import msgspec
import pytest

from dsdoctor.fit.caveats import CHECKED, caveats
from dsdoctor.fit.shapes import from_config, from_size
from dsdoctor.fit.training import Training
from tests.fit.measured import FILE, HOLDOUTS, rows

LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"gpus_per_node": 8}, "NCCL's own memory on 8"),
        ({"gpus_per_node": 8, "nodes": 4}, "NCCL's own memory on 32"),
        ({"gpus_per_node": 8, "nodes": 4}, "like this one"),
        ({"optimizer": "adamw-8bit"}, "adamw-8bit was never measured"),
        ({"lora_rank": 16}, "adapters"),
    ],
)
def test_what_was_not_measured_is_said_where_it_matters(change: dict[str, object], word: str) -> None:
    shape = from_config(LLAMA)
    assert any(word in told for told in caveats(shape, msgspec.structs.replace(Training(), **change)))
    assert not any(word in told for told in caveats(shape, Training()))


def test_activations_of_a_family_that_nobody_held_against_a_model_are_less_sure() -> None:
    deep = {**LLAMA, "model_type": "deepseek_v3", "moe_intermediate_size": 128, "n_routed_experts": 4}
    assert any("deepseek_v3" in told for told in caveats(from_config(deep), Training()))
    assert any("size" in told for told in caveats(from_size("7B"), Training()))


def test_what_is_never_counted_is_always_said() -> None:
    assert "torch.compile" in caveats(from_config(LLAMA), Training())[-1]


def test_the_families_that_were_checked_are_those_of_the_fixtures() -> None:
    saved = json.loads((Path(__file__).parents[2] / "fixtures/fit/saved_bytes.json").read_text())["rows"]
    trained = [row for path in (FILE, *HOLDOUTS) for row in rows(path)]
    assert {row["config"]["model_type"] for row in (*saved, *trained)} == CHECKED
