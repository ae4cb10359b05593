"""Accelerate and the Trainer, for real, on DeepSpeed's CPU accelerator, with a user's own configuration."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.smoke.ranks import train

pytestmark = [
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("deepspeed", "accelerate", "transformers"))),
        reason="needs torch, deepspeed, accelerate and transformers",
    ),
]
CONFIG = Path(__file__).parents[2] / "fixtures/configs/huggingface_auto.json"


def test_accumulated_steps_of_accelerate_are_those_of_deepspeed_alone() -> None:
    config = {
        "train_micro_batch_size_per_gpu": 8,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000000, "allgather_bucket_size": 1000000},
    }
    losses = []
    for recipe in ("accelerate", "config"):
        run = train(recipe, 1, config=config, config_path="ds_config.json")
        assert run.config == "ds_config.json"
        losses.append([*run.losses, run.ranks[0].loss])
    assert len(losses[0]) == 5
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_the_trainer_takes_the_users_configuration_and_accumulates() -> None:
    config = json.loads(CONFIG.read_text())
    config["optimizer"]["params"]["torch_adam"] = True  # no op to compile
    config["scheduler"] = {"type": "WarmupDecayLR", "params": {"total_num_steps": 5000, "warmup_num_steps": 2}}
    config |= {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
    run = train("trainer", 1, steps=5, config=config, config_path="ds_config.json")
    assert (run.stage, len(run.losses)) == (3, 5)
    assert run.losses[-1] < run.losses[0]


def test_bf16_that_the_trainer_refuses_on_a_cpu_is_not_applicable() -> None:
    run = train("trainer", 1, dtype="bf16")
    assert run.outcome == "not-applicable"
    assert "bf16" in (run.because or "")
    assert "use_cpu" in (run.because or "")
    assert not run.losses
