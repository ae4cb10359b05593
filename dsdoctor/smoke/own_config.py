"""A user's own configuration, made fit for a smoke run: on the tiny model, on the ranks that are here, with no trace."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

import msgspec

LEARNING_RATE = 1e-3  # with which the tiny model learns in a few steps; Hugging Face's own 5e-5 shows nothing
ACCUMULATION, CLIPPING = 1, 1.0
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
OFFLOADS = ("offload_optimizer", "offload_param")
TRACES = ("tensorboard", "wandb", "csv_monitor", "comet", "flops_profiler", "autotuning")
TIED_TO_MODEL = ("data_efficiency", "hybrid_engine", "curriculum_learning", "progressive_layer_drop", "eigenvalue")
TIED_TO_RANKS = ("sequence_parallel_size", "data_parallel_size")
OWN_AUTO = ("pipeline.", "data_types.", "expert_parallel.", "zero_optimization.zenflow.")  # DeepSpeed's own word there


class Filled(msgspec.Struct, frozen=True):
    """``notes``: in sentences, what is not as the user wrote it, and what could not be filled."""

    config: dict[str, Any]
    notes: tuple[str, ...]


def filled(
    config: Mapping[str, Any], *, world_size: int, micro_batch: int, dtype: str, hidden_size: int, steps: int,
    swap_folder: str | None = None,
) -> Filled:  # fmt: skip
    """A copy with each ``"auto"`` replaced as Hugging Face does it, for ``world_size`` ranks. Never raises for what is in it.

    Sources, read 2026-11-30: transformers 5.24.0, integrations/deepspeed.py (HfTrainerDeepSpeedConfig:
    trainer_config_process, trainer_config_finalize; deepspeed_optim_sched) with the defaults of TrainingArguments but for
    the learning rate; accelerate 1.15.0, accelerator.py (_prepare_deepspeed) and utils/dataclasses.py (DeepSpeedPlugin).
    """
    own: dict[str, Any] = _copy(config)
    notes = [*_leave_out(own, world_size), *_swap_here(own, swap_folder)]
    for path, value in _values(own, micro_batch, dtype, hidden_size, steps).items():
        _fill(own, path, value)
    _fill(own, BATCH[0], _product(own, world_size))
    if "optimizer" not in own:
        own.setdefault("zero_allow_untested_optimizer", True)  # as both do for an optimizer of the script
    notes += _fit(own, world_size)
    left = [path for path in _autos(own) if not path.startswith(OWN_AUTO)]
    notes += [f'{path} is "auto", which Hugging Face does not fill: left so' for path in left]
    return Filled(own, tuple(notes))


def swaps(config: Mapping[str, Any]) -> bool:
    """Does this configuration offload to a disk?"""
    return any(section.get("device") == "nvme" for section in _offloads(config))


def _values(own: dict[str, Any], micro_batch: int, dtype: str, hidden_size: int, steps: int) -> dict[str, Any]:
    """What Hugging Face writes in place of ``"auto"``, by path."""
    rate = _stated(own, "optimizer.params.lr") or _stated(own, "scheduler.params.warmup_max_lr") or LEARNING_RATE
    return {
        BATCH[1]: micro_batch,
        BATCH[2]: ACCUMULATION,
        "gradient_clipping": CLIPPING,
        "optimizer.params.lr": rate,
        "optimizer.params.betas": [0.9, 0.999],
        "optimizer.params.eps": 1e-8,
        "optimizer.params.weight_decay": 0.0,
        "scheduler.params.warmup_min_lr": 0,
        "scheduler.params.warmup_max_lr": rate,
        "scheduler.params.warmup_num_steps": 1,  # max(1, 0): DeepSpeed >= 0.19.6 refuses 0
        "scheduler.params.total_num_steps": steps,
        "fp16.enabled": dtype == "fp16",
        "bf16.enabled": dtype == "bf16",
        "zero_optimization.stage": 2,
        "zero_optimization.offload_optimizer.device": "none",
        "zero_optimization.offload_param.device": "none",
        "zero_optimization.reduce_bucket_size": hidden_size * hidden_size,
        "zero_optimization.stage3_prefetch_bucket_size": int(0.9 * hidden_size * hidden_size),
        "zero_optimization.stage3_param_persistence_threshold": 10 * hidden_size,
        "zero_optimization.stage3_gather_16bit_weights_on_model_save": False,
    }


def _leave_out(own: dict[str, Any], world_size: int) -> Iterator[str]:
    """Takes away what writes or sends, and what fits the user's model or number of GPUs only. What is switched off stays:
    releases of DeepSpeed that refuse it shall do so here too."""
    for name in TRACES:
        if _enabled(own.get(name)):
            del own[name]
            yield f"{name} is left out: a smoke run writes and sends nothing"
    for name in TIED_TO_MODEL:
        if _enabled(own.get(name)):
            del own[name]
            yield f"{name} is left out: it needs your own model and data"
    for name, key in (("tensor_parallel", "autotp_size"), ("expert_parallel", "autoep_size")):
        if _more_than_one(_stated(own, f"{name}.{key}")):
            del own[name]
            yield f"{name} is left out: it splits the layers of your own model"
    if _enabled(own.get("elasticity")):
        del own["elasticity"]
        yield f"elasticity is left out: it chooses the batch and the number of GPUs, here {world_size}"
    for name in TIED_TO_RANKS:
        if _more_than_one(own.get(name)):
            yield f"{name} {own.pop(name)} is left out: here are {_ranks(world_size)}"
    hpz = _stated(own, "zero_optimization.zero_hpz_partition_size")
    if _more_than_one(hpz) and world_size % hpz:
        del own["zero_optimization"]["zero_hpz_partition_size"]
        yield f"zero_optimization.zero_hpz_partition_size {hpz} is left out: here are {_ranks(world_size)}"
    if _stated(own, "checkpoint.load_universal"):
        del own["checkpoint"]["load_universal"]
        yield "checkpoint.load_universal is left out: a smoke run loads what it has saved itself"


def _swap_here(own: dict[str, Any], folder: str | None) -> Iterator[str]:
    elsewhere = [s for s in _offloads(own) if s.get("device") == "nvme" and s.get("nvme_path") != folder]
    if folder is None or not elsewhere:
        return
    yield f"swap files go to {folder}, not to {' and '.join(sorted({str(s.get('nvme_path')) for s in elsewhere}))}"
    for section in elsewhere:
        section["nvme_path"] = folder


def _fit(own: dict[str, Any], world_size: int) -> Iterator[str]:
    """A batch that does not fit this number of ranks: micro batch and accumulation stay. Missing values are derived as in
    DeepSpeed's runtime/config.py, _set_batch_related_parameters (0.19.8)."""
    total, micro, accumulation = (own.get(key) for key in BATCH)
    if not _whole(total) or any(value is not None and not _whole(value) for value in (micro, accumulation)):
        return  # nothing to fit, or nonsense: that is DeepSpeed's to refuse
    if micro is None:
        accumulation = accumulation or 1
        micro = total // world_size // accumulation
    elif accumulation is None:
        accumulation = total // micro // world_size
    if micro * accumulation * world_size == total:
        return
    micro, accumulation = max(1, micro), max(1, accumulation)
    del own[BATCH[0]]
    own.update({BATCH[1]: micro, BATCH[2]: accumulation})
    yield (
        f"train_batch_size {total} is left out: {_ranks(world_size)} with micro batch {micro}, accumulated {accumulation}"
        f" times, make {micro * accumulation * world_size}"
    )


def _product(own: dict[str, Any], world_size: int) -> int | str:
    micro, accumulation = own.get(BATCH[1]), own.get(BATCH[2], ACCUMULATION)
    return micro * accumulation * world_size if _whole(micro) and _whole(accumulation) else "auto"


def _fill(own: dict[str, Any], path: str, value: Any) -> None:
    *nodes, key = path.split(".")
    node: Any = own
    for name in nodes:
        node = node.get(name) if isinstance(node, dict) else None
    if isinstance(node, dict) and node.get(key) == "auto":
        node[key] = value


def _stated(own: Mapping[str, Any], path: str) -> Any:
    """A value, or None where there is none or "auto"."""
    node: Any = own
    for name in path.split("."):
        node = node.get(name) if isinstance(node, dict) else None
    return None if node == "auto" else node


def _autos(node: Any, path: str = "") -> Iterator[str]:
    if node == "auto":
        yield path
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _autos(value, f"{path}.{key}" if path else str(key))


def _offloads(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    zero = config.get("zero_optimization")
    for name in OFFLOADS:
        section = zero.get(name) if isinstance(zero, Mapping) else None
        if isinstance(section, dict):
            yield section


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _enabled(section: Any) -> bool:
    return isinstance(section, dict) and section.get("enabled") not in (None, False, "false", "False", 0)


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _more_than_one(value: Any) -> TypeGuard[int]:
    return _whole(value) and value > 1


def _ranks(count: int) -> str:
    return f"{count} rank" + "s" * (count > 1)
