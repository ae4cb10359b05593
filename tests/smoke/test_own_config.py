"""A user's configuration made fit for a smoke run: what Hugging Face would fill, what must not happen, what is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.readers import ds_config
from dsdoctor.smoke.own_config import Filled, filled, swaps
from tests.smoke.ranks import real, run

CONFIGS = Path(__file__).parents[2] / "fixtures/configs"


def fill(config: dict[str, Any], *, world_size: int = 2, dtype: str = "fp32", swap_folder: str | None = None) -> Filled:
    return filled(
        config, world_size=world_size, micro_batch=8, dtype=dtype, hidden_size=64, steps=20, swap_folder=swap_folder
    )


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CONFIGS / name).read_text())
    return found


def test_the_documentation_of_hugging_face() -> None:
    found = fill(read("huggingface_auto.json"), dtype="bf16")
    assert "auto" not in json.dumps(found.config)
    assert found.notes == ()
    assert found.config["train_batch_size"] == 16
    assert (found.config["bf16"], found.config["fp16"]) == ({"enabled": True}, {"enabled": False})
    assert found.config["optimizer"]["params"]["betas"] == [0.9, 0.999]
    assert found.config["scheduler"]["params"]["warmup_max_lr"] == found.config["optimizer"]["params"]["lr"]
    assert found.config["scheduler"]["params"]["warmup_num_steps"] > 0  # DeepSpeed 0.19.6 refuses 0
    assert found.config["zero_optimization"]["reduce_bucket_size"] == 64 * 64
    assert (
        found.config["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] is True
    )  # as the user wrote it


def test_the_users_own_is_not_changed() -> None:
    config = read("huggingface_auto.json")
    fill(config)
    assert config == read("huggingface_auto.json")


@pytest.mark.parametrize("path", sorted(CONFIGS.iterdir()), ids=lambda path: path.stem)
@pytest.mark.parametrize("world_size", [1, 2, 8])
def test_any_configuration_can_be_filled(path: Path, world_size: int) -> None:
    config = ds_config.parse(path.read_text(), path.name).values
    found = fill(config, world_size=world_size, swap_folder="/scratch/swap")
    json.dumps(found.config)
    again = fill(found.config, world_size=world_size, swap_folder="/scratch/swap")
    assert again == Filled(found.config, ())


def test_what_the_user_wrote_wins_over_what_hugging_face_would_say() -> None:
    config = {
        "train_micro_batch_size_per_gpu": 3,
        "gradient_accumulation_steps": 5,
        "train_batch_size": "auto",
        "bf16": {"enabled": True},
        "fp16": {"enabled": "auto"},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.02, "weight_decay": "auto"}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": "auto", "total_num_steps": "auto"}},
        "zero_optimization": {"stage": 2},
    }
    found = fill(config).config
    assert found["train_batch_size"] == 3 * 5 * 2
    assert (found["bf16"]["enabled"], found["fp16"]["enabled"]) == (True, False)
    assert found["scheduler"]["params"] == {"warmup_max_lr": 0.02, "total_num_steps": 20}


@pytest.mark.parametrize(
    ("written", "ranks", "micro", "accumulation", "words"),
    [
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}, 2, 4, 2, "make 16"),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4}, 3, 4, 5, "make 60"),
        ({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 4}, 2, 4, 1, "make 8"),
        ({"train_batch_size": 9, "gradient_accumulation_steps": 2}, 2, 2, 2, "make 8"),
        ({"train_batch_size": 7}, 2, 3, 1, "make 6"),
        ({"train_batch_size": 1}, 2, 1, 1, "make 2"),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}, 2, 8, 1, "make 16"),
    ],
)  # fmt: skip
def test_a_batch_for_other_ranks(
    written: dict[str, Any], ranks: int, micro: int, accumulation: int, words: str
) -> None:
    found = fill(written, world_size=ranks)
    assert "train_batch_size" not in found.config
    assert found.config["train_micro_batch_size_per_gpu"] == micro
    assert found.config["gradient_accumulation_steps"] == accumulation
    (note,) = found.notes
    assert f"train_batch_size {written['train_batch_size']} is left out" in note
    assert words in note


@pytest.mark.parametrize(
    "written",
    [
        {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2},
        {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4},
        {"train_batch_size": 16},
        {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2},
        {"train_batch_size": "16", "train_micro_batch_size_per_gpu": 3},  # DeepSpeed's to refuse
        {"train_batch_size": 16, "train_micro_batch_size_per_gpu": -1},
        {"train_batch_size": True, "train_micro_batch_size_per_gpu": 4},
        {},
    ],
)
def test_a_batch_that_stays(written: dict[str, Any]) -> None:
    found = fill(written)
    assert found.notes == ()
    assert {key: found.config[key] for key in found.config if key != "zero_allow_untested_optimizer"} == written


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "csv_monitor", "comet", "flops_profiler", "autotuning"])
def test_nothing_is_written_or_sent(name: str) -> None:
    found = fill({name: {"enabled": True, "output_path": "/home/me/runs"}})
    assert name not in found.config
    assert name in found.notes[0]


@pytest.mark.parametrize(
    "section",
    [
        {"elasticity": {"enabled": True, "max_train_batch_size": 2000}},
        {"data_efficiency": {"enabled": True, "data_routing": {}}},
        {"curriculum_learning": {"enabled": True}},
        {"tensor_parallel": {"autotp_size": 4}},
        {"sequence_parallel_size": 4},
        {"checkpoint": {"load_universal": True}},
        {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}},
    ],
)
def test_what_only_fits_the_users_model_or_cluster_is_left_out_and_told(section: dict[str, Any]) -> None:
    found = fill(section)
    assert json.dumps(section)[1:-1] not in json.dumps(found.config)
    (note,) = found.notes
    assert next(iter(section)) in note


@pytest.mark.parametrize(
    "section",
    [
        {"elasticity": {"enabled": False}},  # DeepSpeed 0.19.8 refuses the word itself, and the user shall see it
        {"tensorboard": {"enabled": False}},
        {"tensor_parallel": {"autotp_size": 1}},
        {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 2}},
        {"checkpoint": {"parallel_write": {"pipeline_stage": True}}},
        {"pipeline": {"stages": "auto"}},
        {"wandb": True},
    ],
)
def test_what_does_no_harm_stays(section: dict[str, Any]) -> None:
    found = fill(section)
    assert found.config.items() >= section.items()
    assert found.notes == ()


def test_swap_files_go_where_the_run_may_write() -> None:
    config = read("zero3_nvme.json")
    assert swaps(config)
    assert not swaps(read("zero2_fp16.json"))
    found = fill(config, swap_folder="/scratch/swap")
    zero = found.config["zero_optimization"]
    assert (zero["offload_param"]["nvme_path"], zero["offload_optimizer"]["nvme_path"]) == ("/scratch/swap",) * 2
    assert found.notes == ("swap files go to /scratch/swap, not to /mnt/nvme",)
    assert fill(config).config["zero_optimization"]["offload_param"]["nvme_path"] == "/mnt/nvme"
    assert fill(read("zero2_fp16.json"), world_size=8, swap_folder="/scratch/swap").notes == ()


def test_what_nobody_fills_is_named() -> None:
    found = fill(
        {"steps_per_print": "auto", "optimizer": {"type": "Lion", "params": {"lr": "auto", "momentum": "auto"}}}
    )
    assert found.config["steps_per_print"] == "auto"
    assert [note.split(" ")[0] for note in found.notes] == ["steps_per_print", "optimizer.params.momentum"]


@real
def test_nonsense_reaches_deepspeed_whose_words_are_shown() -> None:
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": True,
        "zero_optimization": {"stage": 2, "offload_optimizer": True},
    }
    found = run("config", 1, config=config, config_path="ds_config.json")
    assert (found.outcome, found.ranks[0].last_phase) == ("failed", "initialize")
    assert found.ranks[0].error
    assert "deepspeed/runtime" in (found.output_tail or "").rsplit("Traceback", 1)[-1], found.output_tail
