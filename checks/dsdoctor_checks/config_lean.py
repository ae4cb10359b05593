"""What could be left out of the config: settings without effect and settings that say the default. Of the family CFG (see config.py).

Source of the rules: deepspeed 0.19.8, runtime/engine.py, runtime/pipe/engine.py, runtime/zero and the monitors, read on 2026-11-30;
defaults: tables/ds_config_defaults.toml.
"""

from collections.abc import Iterator

from dsdoctor.api import ConfigEdit, DsConfig, Finding, Severity, check
from dsdoctor_checks.config_keys import (  # fmt: skip
    KEYS,
    Clash,
    block,
    device,
    evidence,
    on,
    parsed,
    plain,
    remedy,
    shown,
    stage,
    told,
    whole,
)
from dsdoctor_checks.tables import Sections

_DEFAULTS = Sections("ds_config_defaults")
_ZERO = "zero_optimization"
_PARAM, _OPTIMIZER = f"{_ZERO}.offload_param", f"{_ZERO}.offload_optimizer"
_MOST = 8  # settings named in one finding
_SWITCHED = ("fp16", "bf16", "tensorboard", "wandb", "csv_monitor", "comet", "comms_logger", "flops_profiler", "hybrid_engine",
             "autotuning", "torch_autocast", "expert_parallel")  # fmt: skip
_NVME_ONLY = {
    _PARAM: ("buffer_count", "buffer_size", "max_in_cpu", "nvme_path"),
    _OPTIMIZER: ("buffer_count", "pipeline_read", "pipeline_write", "fast_init", "nvme_path"),
}
_FIRST_TWO = ("round_robin_gradients", "allgather_partitions", "allgather_bucket_size", "use_multi_rank_bucket_allreduce", "parameter_alignment", "ignore_unused_parameters")  # fmt: skip
_LAST_ONLY = ("sub_group_size", "zero_hpz_partition_size", "memory_efficient_linear", "override_module_apply",
              "log_trace_cache_warnings", "save_muon_momentum_buffer_in_memory", "leaf_module")  # fmt: skip
_NEVER = (
    "pipeline.stages",
    "pipeline.partition",
    "pipeline.seed_layers",
)  # the PipelineModule of the script decides these


def _at_this_stage(config: DsConfig) -> Iterator[tuple[str, str]]:
    level, held = stage(config), block(config, _ZERO)
    if level is None:
        return
    for key in held:
        dotted = f"{_ZERO}.{key}"
        if (
            level == 0
            and key != "stage"
            and dotted in KEYS
            and not key.startswith(("offload_", "zero_quantized", "cpu_offload"))
        ):
            yield dotted, "the ZeRO stage is 0"
        elif level < 3 and ((key.startswith("stage3_") and dotted in KEYS) or key in _LAST_ONLY):
            yield dotted, f"the ZeRO stage is {level}"
        elif level == 3 and key in _FIRST_TWO:
            yield dotted, "it belongs to the stages 1 and 2, and the stage is 3"


def _nvme_settings(config: DsConfig) -> Iterator[tuple[str, str]]:
    uses = [name for name in (_PARAM, _OPTIMIZER) if device(config, name) == "nvme"]
    if "aio" in config.values and not uses and not config.get("checkpoint.writer"):
        yield "aio", "nothing is offloaded to NVMe"
    for name, keys in _NVME_ONLY.items():
        if name not in uses and device(config, name) != "auto":
            yield from (
                (f"{name}.{key}", f"{name}.device is {device(config, name)}")
                for key in keys
                if key in block(config, name)
            )


def _switched_off(config: DsConfig) -> Iterator[tuple[str, str]]:
    for name in _SWITCHED:
        held = block(config, name)
        if held and not on(held.get("enabled", False)) and held.get("enabled") != "auto":
            yield from (
                (f"{name}.{key}", f"{name}.enabled is {shown(held.get('enabled', False))}")
                for key in held
                if key != "enabled"
            )


def _others(config: DsConfig) -> Iterator[tuple[str, str]]:
    if "bf16" in config.values and "bfloat16" in config.values:
        yield "bfloat16", "bf16 is there too"
    if whole(config.get("fp16.loss_scale", 0)) and on(config.get("fp16.enabled")):
        for key in ("initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale"):
            if f"fp16.{key}" in config.places:
                yield f"fp16.{key}", "fp16.loss_scale is fixed"
    for key in _NEVER:
        if key in config.places and config.get(key) not in ("auto", False):
            yield key, "DeepSpeed never reads it; the PipelineModule of the script decides"


def idle(config: DsConfig) -> dict[str, str]:
    """Keys that nothing reads as the rest stands, and why."""
    found: dict[str, str] = {}
    for rule in (_nvme_settings, _at_this_stage, _switched_off, _others):
        for key, why in rule(config):
            found.setdefault(key, why)
    return found


def _gone(key: str) -> tuple[ConfigEdit, ...]:
    return (ConfigEdit(action="remove", key=key),)


@check("CFG017", "Every setting has an effect", causes=["config-no-effect"], severity=Severity.INFO)
def settings_have_an_effect(config: DsConfig) -> Iterator[Finding]:
    """Settings that the rest of the config switches off do no harm, but they mislead the next reader."""
    for key, why in idle(parsed(config)).items():
        yield Finding(
            message=f"{config.where(key)}: {plain(key)} has no effect: {why}",
            cause="config-no-effect",
            subject=plain(key),
            evidence=evidence(config, key),
            remedy=remedy(config, f"Remove {plain(key)} ({config.where(key)})", _gone(key)),
        )


def restated(config: DsConfig) -> list[str]:
    """Keys whose value is DeepSpeed's default, in every release that has them."""
    return [
        key
        for key in config.places
        if key in _DEFAULTS["defaults"]
        and isinstance(config.get(key), bool) is isinstance(_DEFAULTS["defaults"][key], bool)
        and config.get(key) == _DEFAULTS["defaults"][key]
        and not key.endswith((".enabled", ".stage", ".device"))
    ]


@check("CFG045", "The config says only what differs from the defaults", causes=["config-no-effect"], severity=Severity.INFO)  # fmt: skip
def defaults_are_left_out(config: DsConfig) -> Iterator[Finding]:
    """A lean config shows what was chosen; settings that repeat the defaults hide it, and freeze a default that a later release mends."""
    found = restated(parsed(config))
    idle_keys = idle(config)
    found = [key for key in found if key not in idle_keys]
    if not found:
        return
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    edits = tuple(edit for key in found for edit in _gone(key))
    what = f"{len(found)} setting{'s' if len(found) > 1 else ''} say{'s' if len(found) == 1 else ''} the default: {', '.join(found[:_MOST])}{more}"
    yield told(
        config,
        Clash(tuple(found), what, "Remove them, or keep those that you want to stay", "config-no-effect", edits=edits),
    )
