"""A starting point for a ds_config: the few keys that a choice of stage, precision and offload needs, each with its reason.

Written as Hjson with comments for DeepSpeed itself; Hugging Face reads plain JSON, so its file has no comments, and "auto" where
the framework has the value. Keys: deepspeed 0.19.8, runtime/config.py and runtime/zero/config.py; what each "auto" is filled
with: transformers 5.24 and accelerate 1.15, read 2026-11-30.
"""

import json
from typing import Any, Literal

import msgspec

from dsdoctor.facts import FrameworkName

Device = Literal["none", "cpu", "nvme"]
Precision = Literal["bf16", "fp16", "fp32"]
_REASONS = {
    "train_micro_batch_size_per_gpu": "what one GPU computes at once; raise it until the memory is full",
    "gradient_accumulation_steps": "global batch = micro batch x steps x GPUs; DeepSpeed computes it",
    "gradient_clipping": "1.0 is the default since 0.19.3, 0 before; said here because it changes results",
    "optimizer": "lr is yours to choose",
    "bf16": "needs compute capability 8.0; use fp16 below",
    "fp16": "the loss scale is dynamic",
    "stage": "0: off, 1: optimizer states are split, 2: gradients too, 3: parameters too",
    "offload_optimizer": "optimizer states leave the GPU, and its step runs on the CPU; needs the op cpu_adam",
    "offload_param": "parameters wait outside of the GPU; slow, for models that do not fit otherwise",
    "nvme_path": "a folder on a local NVMe disk; swap files stay there after the run",
    "stage3_gather_16bit_weights_on_model_save": "save_16bit_model writes whole weights",
    "aio": "measure your disk with ds_nvme_tune",
}


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the config is for."""

    stage: int = 2
    precision: Precision = "bf16"
    offload_optimizer: Device = "none"
    offload_param: Device = "none"
    nvme_path: str = "/local_nvme"
    micro_batch: int = 1
    steps: int = 1
    lr: float = 1e-4
    framework: FrameworkName = "none"


def problem(wish: Wish) -> str | None:
    """Why there is no such config, one sentence."""
    if wish.stage not in (0, 1, 2, 3):
        return "ZeRO has the stages 0, 1, 2 and 3"
    if wish.offload_param != "none" and wish.stage != 3:
        return f"parameters can be offloaded at stage 3 only, not at stage {wish.stage}"
    if wish.offload_optimizer != "none" and wish.stage == 0:
        return "the optimizer can be offloaded from stage 1 on"
    if wish.offload_optimizer == "nvme" and wish.stage != 3:
        return "NVMe offload exists at stage 3 only; below it DeepSpeed would fill the host memory"
    if wish.micro_batch < 1 or wish.steps < 1:
        return "batch sizes are 1 or more"
    return None


def values(wish: Wish) -> dict[str, Any]:
    """The config as values."""
    trainer, owned = wish.framework in ("hf", "accelerate"), wish.framework == "lightning"
    made: dict[str, Any] = {"train_micro_batch_size_per_gpu": "auto" if trainer else wish.micro_batch}
    if not owned:
        made["gradient_accumulation_steps"] = "auto" if trainer else wish.steps
        made["gradient_clipping"] = "auto" if trainer else 1.0
    if wish.framework == "hf":
        params = dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")
        made |= {"train_batch_size": "auto", "optimizer": {"type": "AdamW", "params": params}}
    elif wish.framework == "none":
        made["optimizer"] = {"type": "AdamW", "params": {"lr": wish.lr}}
    if wish.precision != "fp32":
        made[wish.precision] = {"enabled": "auto" if trainer else True}
    zero: dict[str, Any] = {"stage": wish.stage}
    for name, device in (("offload_optimizer", wish.offload_optimizer), ("offload_param", wish.offload_param)):
        if device != "none":
            zero[name] = {"device": device} | ({"nvme_path": wish.nvme_path} if device == "nvme" else {})
    if wish.stage == 3:
        zero["stage3_gather_16bit_weights_on_model_save"] = True
    made["zero_optimization"] = zero
    if "nvme" in (wish.offload_optimizer, wish.offload_param):
        made["aio"] = {"block_size": 8388608, "queue_depth": 32, "intra_op_parallelism": 4}
    return made


def text(wish: Wish) -> str:
    """The config as a file."""
    return as_file(values(wish), wish.framework)


def as_file(made: dict[str, Any], framework: FrameworkName) -> str:
    """A config's values as its reader takes them: with comments for DeepSpeed, without for frameworks."""
    if framework in ("hf", "accelerate", "lightning"):
        return json.dumps(made, indent=2) + "\n"
    return "\n".join(["{", *_lines(made, 1), "}"]) + "\n"


def _lines(held: dict[str, Any], depth: int) -> list[str]:
    lines, last = [], list(held)[-1]
    for key, value in held.items():
        indent, comma = "  " * depth, "" if key == last else ","
        if key in _REASONS:
            lines.append(f"{indent}// {_REASONS[key]}")
        if isinstance(value, dict) and any(inner in _REASONS for inner in value):
            lines += [f'{indent}"{key}": {{', *_lines(value, depth + 1), f"{indent}}}{comma}"]
        else:
            lines.append(f'{indent}"{key}": {json.dumps(value)}{comma}')
    return lines
