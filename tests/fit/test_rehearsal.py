"""Deep models are rehearsed in groups of layers: as good as one by one."""

import msgspec
import pytest

from dsdoctor.fit import rehearsal
from dsdoctor.fit.shapes import from_config
from dsdoctor.fit.strategies import strategy
from dsdoctor.fit.training import Training

DEEP = from_config({"model_type": "llama", "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 48, "num_attention_heads": 40,
                    "num_key_value_heads": 8, "vocab_size": 128256})  # fmt: skip
EIGHT = Training(gpus_per_node=8, checkpointing=True, micro_batch=4)


@pytest.mark.parametrize("name", ["zero1", "zero2", "zero3", "zero2-cpu", "zero3-cpu-params"])
def test_groups_of_layers_reserve_what_single_ones_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = rehearsal.reserved(DEEP, EIGHT, strategy(name))
    monkeypatch.setattr(rehearsal, "SINGLY", 100)
    assert grouped == pytest.approx(rehearsal.reserved(DEEP, EIGHT, strategy(name)), rel=0.05)


def test_more_work_never_reserves_less() -> None:
    found = [
        rehearsal.reserved(DEEP, msgspec.structs.replace(EIGHT, micro_batch=count), strategy("zero3"))
        for count in (1, 4, 16)
    ]
    assert found == sorted(found)
