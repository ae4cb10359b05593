"""Optimizer, scheduler and data types against the rest of the config. Of the family CFG (see config.py).

Source of the rules: deepspeed 0.19.8, runtime/engine.py (_do_sanity_check, _do_optimizer_sanity_check, _configure_optimizer),
runtime/zero/stage3.py, runtime/lr_schedules.py, read on 2026-11-30; tested optimizers: runtime/zero/utils.py.
"""

from collections.abc import Iterator

from dsdoctor.api import DeepSpeed, DsConfig, Finding, RunPlan, Severity, check, not_applicable
from dsdoctor_checks.config_keys import TABLE, Clash, block, device, newer_than_table, on, parsed, shown, stage, told

_ZERO = "zero_optimization"
_STAGE = f"{_ZERO}.stage"
_OFFLOAD = f"{_ZERO}.offload_optimizer"
_TYPE = "optimizer.type"
_TESTED = frozenset({"adam", "adamw", "adagrad", "lion", "muon", "muadam", "muadamw"})
_DTYPES = {"fp16": "fp16", "float16": "fp16", "half": "fp16", "bf16": "bf16", "bfloat16": "bf16", "fp32": "fp32", "float32": "fp32"}  # fmt: skip


def _precision(config: DsConfig) -> str | None:
    """fp16, bf16 or fp32; None when Hugging Face decides."""
    half = "bf16" if "bf16" in config.values else "bfloat16"
    switches = {"fp16": config.get("fp16.enabled"), "bf16": config.get(f"{half}.enabled")}
    if "auto" in switches.values():
        return None
    return next((name for name, value in switches.items() if on(value)), "fp32")


def _optimizer(config: DsConfig) -> str:
    return str(config.get(_TYPE, "")).lower()


@check(
    "CFG024",
    "The optimizer works at this ZeRO stage",
    causes=["config-conflict", "optimizer-untested"],
    guards=["config"],
)
def optimizer_fits_the_stage(config: DsConfig) -> Iterator[Finding]:
    """ZeRO takes Adam, AdamW, Adagrad, Lion and Muon; others only with zero_allow_untested_optimizer. Lamb wants a dynamic loss scale."""
    level, name = stage(parsed(config)), _optimizer(config)
    known = {n.lower() for n in (*TABLE["names"]["optimizers"], *TABLE["names"]["torch_optimizers"])}
    if level and name in known - _TESTED and not config.get("zero_allow_untested_optimizer"):
        what = f"{_TYPE} is {shown(config.get(_TYPE))}, which ZeRO-{level} has not been tested with: the engine stops"
        order = "Use AdamW, or set zero_allow_untested_optimizer to true"
        yield told(config, Clash((_TYPE, _STAGE), what, order, "optimizer-untested"))
    scatter = f"{_ZERO}.reduce_scatter"
    if name == "muon" and level == 3 and config.get(scatter, True) not in (False, "false", 0):
        what = "Muon does not go with reduce_scatter at stage 3, and reduce_scatter is on unless it is set to false"
        yield told(config, Clash((_TYPE, scatter), what, f"Set {scatter} to false"))
    scale = config.get("fp16.loss_scale", 0)
    if name == "lamb" and scale not in (0, "0", "auto"):
        what = f"Lamb needs a dynamic loss scale, and fp16.loss_scale is {shown(scale)}"
        yield told(config, Clash((_TYPE, "fp16.loss_scale"), what, "Set fp16.loss_scale to 0"))


@check(
    "CFG025", "Clipping is asked for where DeepSpeed reads it", causes=["config-misplaced-section"], guards=["config"]
)
def clipping_is_at_the_top(config: DsConfig) -> Iterator[Finding]:
    """max_grad_norm inside optimizer.params stops the engine: "'max_grad_norm' is not supported as an optimizer parameter"."""
    key = "optimizer.params.max_grad_norm"
    if parsed(config).get(key) is not None and config.get(_TYPE) is not None:
        what = f"{key} is no parameter of the optimizer; DeepSpeed clips by gradient_clipping at the top level"
        order = f"Move the value {shown(config.get(key))} to gradient_clipping"
        yield told(config, Clash((key, "gradient_clipping"), what, order, "config-misplaced-section"))


@check(
    "CFG026",
    "Offload has an optimizer that runs on the CPU",
    causes=["offload-needs-ds-optimizer"],
    severity=Severity.INFO,
)
def offload_has_an_optimizer(config: DsConfig, plan: RunPlan | None) -> Iterator[Finding]:
    """With offload DeepSpeed wants its own CPU optimizer: from the optimizer section, or DeepSpeedCPUAdam made in the script.

    A torch optimizer from the script stops the engine unless zero_force_ds_cpu_optimizer is false. Accelerate and the Trainer
    replace theirs by DeepSpeed's.
    """
    level = stage(parsed(config))
    if not level or device(config, _OFFLOAD) not in ("cpu", "nvme"):
        not_applicable("no optimizer is offloaded")
    if plan and plan.framework in ("hf", "accelerate"):
        not_applicable("the framework brings the optimizer")
    if config.get(_TYPE) is None and config.get("zero_force_ds_cpu_optimizer", True) is not False:
        what = f"{_OFFLOAD}.device is {device(config, _OFFLOAD)} and the config has no optimizer section"
        order = "Add an optimizer section (AdamW), or make DeepSpeedCPUAdam in the script"
        keys = (f"{_OFFLOAD}.device", "optimizer")
        yield told(config, Clash(keys, what, order, "offload-needs-ds-optimizer"))


@check("CFG027", "Data types agree with the precision", causes=["config-conflict"], guards=["config"])
def data_types_agree(config: DsConfig) -> Iterator[Finding]:
    """data_types.param_dtype has to be the enabled precision; without ZeRO gradients accumulate in the type of the model only."""
    precision = _precision(parsed(config))
    if precision is None:
        not_applicable("Hugging Face fills the precision in")
    param, accumulated = "data_types.param_dtype", "data_types.grad_accum_dtype"
    asked = _DTYPES.get(str(config.get(param)).lower())
    if asked and asked != precision:
        what = f"{param} is {asked} and the precision of the run is {precision}"
        yield told(config, Clash((param, f"{asked}.enabled"), what, f"Remove {param}, or enable {asked}"))
    kept = _DTYPES.get(str(config.get(accumulated)).lower())
    if kept and stage(config) == 0 and kept != precision:
        what = f"{accumulated} is {kept}, the model's type {precision}, and the ZeRO stage 0: an unsupported mix"
        yield told(config, Clash((accumulated, _STAGE), what, f"Set {_STAGE} to 1 or more, or remove {accumulated}"))


_NEEDS = {
    "WarmupDecayLR": ("total_num_steps",),
    "WarmupCosineLR": ("total_num_steps",),
    "OneCycle": ("cycle_min_lr", "cycle_max_lr"),
}


@check("CFG028", "The scheduler has the parameters that it needs", causes=["config-incomplete"], guards=["config"])
def scheduler_is_complete(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Finding]:
    """WarmupDecayLR and WarmupCosineLR need total_num_steps, OneCycle its two rates: else a TypeError when the engine starts."""
    given = block(parsed(config), "scheduler.params")
    kind = config.get("scheduler.type")
    if newer_than_table(deepspeed):
        not_applicable("this DeepSpeed is newer than the table")
    for name in _NEEDS.get(kind if isinstance(kind, str) else "", ()):
        if name not in given:
            key = f"scheduler.params.{name}"
            what = f"scheduler.type is {kind} and {key} is not given"
            yield told(config, Clash(("scheduler.type", key), what, f"Give {key}", "config-incomplete"))
