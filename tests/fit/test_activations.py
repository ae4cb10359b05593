"""Activations of a layer against what autograd really keeps in models of transformers."""

import json
import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsdoctor.fit.activations import activations, blocks_of, layer_bytes
from dsdoctor.fit.shapes import from_config
from dsdoctor.fit.training import Training

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "fixtures/fit/saved_bytes.json").read_text())[
    "rows"
]


def error(row: dict[str, Any]) -> float:
    said = layer_bytes(from_config(row["config"]), Training(sequence=row["sequence"], attention=row["attention"]))
    return said / float(row["bytes"]) - 1


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['config']['model_type']}-{row['attention']}-{row['bytes']:.0f}"
)
def test_a_layer_keeps_what_autograd_keeps(row: dict[str, Any]) -> None:
    assert abs(error(row)) <= 0.10


def test_mostly_to_the_byte() -> None:
    assert statistics.median(abs(error(row)) for row in ROWS) <= 0.005


def test_the_blocks_are_the_same_bytes() -> None:
    shape, training = from_config(ROWS[0]["config"]), Training(micro_batch=2, sequence=512)
    saved, _ = blocks_of(shape, training)
    assert sum(saved) == pytest.approx(layer_bytes(shape, training) * training.tokens, rel=0.01)


def test_checkpointing_keeps_one_tensor_per_layer() -> None:
    shape, training = from_config(ROWS[0]["config"]), Training(checkpointing=True)
    assert activations(shape, training).kept == shape.layers * training.tokens * shape.hidden * 2
    assert (
        activations(shape, msgspec.structs.replace(training, checkpointing=False)).kept
        > activations(shape, training).kept * 5
    )
