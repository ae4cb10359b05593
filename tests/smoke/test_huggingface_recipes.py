"""Accelerate and the Trainer, for real, on DeepSpeed's CPU accelerator."""

import importlib.util
import json
from pathlib import Path

import pytest

from dsdoctor.smoke.own_config import filled
from tests.smoke.started import start

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("deepspeed", "accelerate", "transformers"))),
    reason="needs torch, deepspeed, accelerate and transformers",
)
CONFIG = Path(__file__).parents[2] / "fixtures/configs/huggingface_auto.json"


@pytest.mark.parametrize("recipe", ["accelerate", "trainer"])
def test_two_ranks_learn_together(recipe: str, tmp_path: Path) -> None:
    ranks = start(recipe, 2, tmp_path)
    assert all(rank.ended_well for rank in ranks), ranks[0].output
    assert ranks[0].losses == ranks[1].losses
    assert len(ranks[0].losses) == 4
    assert ranks[0].losses == sorted(ranks[0].losses, reverse=True)
    assert ranks[0].phases[-3:] == ["initialize", "first step", "steps"]
    (setup,) = ranks[0].of("setup")
    assert (setup["stage"], setup["dtype"], setup["world_size"]) == (2, "fp32", 2)
    assert ranks[0].facts["loss"] == ranks[1].facts["loss"]
    held = [rank.facts["held_state_elements"] for rank in ranks]
    assert sum(held) == ranks[0].facts["parameter_elements"]
    assert held[0] == held[1]
    assert not [event for event in ranks[0].of("step") if not event["grad_norm"]]


def test_accumulated_steps_of_accelerate_are_those_of_deepspeed_alone(tmp_path: Path) -> None:
    config = {
        "train_micro_batch_size_per_gpu": 8,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000000, "allgather_bucket_size": 1000000},
    }
    losses = []
    for recipe in ("accelerate", "zero2"):
        (tmp_path / recipe).mkdir()
        (rank,) = start(recipe, 1, tmp_path / recipe, config=config)
        assert rank.ended_well, rank.output
        losses.append([*rank.losses, rank.facts["loss"]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_the_trainer_takes_the_users_configuration_and_accumulates(tmp_path: Path) -> None:
    config = json.loads(CONFIG.read_text())
    config["optimizer"]["params"]["torch_adam"] = True  # no op to compile
    config["scheduler"] = {"type": "WarmupDecayLR", "params": {"total_num_steps": 5000, "warmup_num_steps": 2}}
    losses = []
    for micro, accumulation in ((4, 2), (8, 1)):
        own = {**config, "train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": accumulation}
        own = filled(own, world_size=1, micro_batch=1, dtype="fp32", hidden_size=64, steps=3).config
        folder = tmp_path / str(micro)
        folder.mkdir()
        (rank,) = start("trainer", 1, folder, config=own, steps=5)
        assert rank.ended_well, rank.output
        assert rank.of("setup")[0]["stage"] == 3
        losses.append(rank.losses)
    assert len(losses[0]) == 5
    assert losses[0][-1] < losses[0][0]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_bf16_that_the_trainer_refuses_on_a_cpu_is_not_applicable(tmp_path: Path) -> None:
    (rank,) = start("trainer", 1, tmp_path, dtype="bf16")
    assert rank.ended_well, rank.output
    (said,) = rank.of("not-applicable")
    assert "bf16" in said["because"]
    assert "use_cpu" in said["because"]
    assert not rank.losses
