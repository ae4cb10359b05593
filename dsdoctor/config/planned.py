"""The ds_config of a strategy: what `config --new` writes for its stage, precision and offload, and what the optimizer needs."""

from typing import Any, Final

from dsdoctor.config.new import Device, Wish, as_file, values
from dsdoctor.facts import FrameworkName
from dsdoctor.fit.strategies import Strategy, Where
from dsdoctor.fit.training import Training

UNTESTED: Final = ("adamw-8bit", "adafactor", "sgd")  # optimizers that ZeRO takes only when told to
_DEVICES: Final[dict[Where, Device]] = {"gpu": "none", "cpu": "cpu", "nvme": "nvme"}


def ds_config(
    plan: Strategy, training: Training, *, nvme_path: str = "/local_nvme", framework: FrameworkName = "none"
) -> dict[str, Any]:
    """The config as values, in the order in which it is written."""
    wish = Wish(
        stage=plan.stage,
        precision=training.dtype,
        offload_optimizer=_DEVICES[plan.optimizer],
        offload_param=_DEVICES[plan.parameters],
        nvme_path=nvme_path,
        micro_batch=training.micro_batch,
        steps=training.accumulation,
        framework=framework,
    )
    made = values(wish)
    zero = made["zero_optimization"]
    zero |= _buckets(plan, training)
    for key in ("offload_optimizer", "offload_param"):
        if key in zero and not training.pin_memory:
            zero[key]["pin_memory"] = False
    if "optimizer" in made:
        ours = _optimizer(training, made["optimizer"])
        made |= {"optimizer": ours} if ours else {}
        if ours is None:
            del made["optimizer"]
    return made | _allowed(plan, training)


def config_text(plan: Strategy, training: Training, *, nvme_path: str, framework: FrameworkName) -> str:
    """The config as a file."""
    return as_file(ds_config(plan, training, nvme_path=nvme_path, framework=framework), framework)


def _optimizer(training: Training, usual: dict[str, Any]) -> dict[str, Any] | None:
    """Those that DeepSpeed makes by itself, with the usual parameters; None: the training script makes it."""
    params = usual["params"]
    match training.optimizer:
        case "adamw":
            return usual
        case "adamw-torch":
            return {"type": "AdamW", "params": params | {"torch_adam": True}}
        case "adamw-fused":
            return {"type": "AdamW", "params": params | {"torch_adam": True, "fused": True}}
        case "lion":
            return {"type": "Lion", "params": {k: v for k, v in params.items() if k != "eps"}}
        case "sgd":
            return {"type": "SGD", "params": {k: v for k, v in params.items() if k not in ("eps", "betas")}}
        case _:
            return None


def _allowed(plan: Strategy, training: Training) -> dict[str, Any]:
    """What DeepSpeed refuses unless it is told."""
    if not plan.stage or training.optimizer not in UNTESTED:
        return {}
    made: dict[str, Any] = {"zero_allow_untested_optimizer": True}
    if plan.optimizer != "gpu" and training.optimizer != "sgd":
        made["zero_force_ds_cpu_optimizer"] = False
    return made


def _buckets(plan: Strategy, training: Training) -> dict[str, Any]:
    """Sizes that are not DeepSpeed's own."""
    given, usual = training.buckets, type(training.buckets)()
    names = {"reduce_bucket_size": "reduce"} if plan.stage else {}
    names |= {"allgather_bucket_size": "allgather"} if 0 < plan.stage < 3 else {}
    if plan.stage == 3:
        names |= {
            "stage3_prefetch_bucket_size": "prefetch",
            "stage3_max_live_parameters": "live",
            "stage3_param_persistence_threshold": "persistence",
            "sub_group_size": "sub_group",
        }
    made = {key: getattr(given, name) for key, name in names.items() if getattr(given, name) != getattr(usual, name)}
    return made | ({"overlap_comm": given.overlap} if plan.stage and given.overlap is not None else {})
