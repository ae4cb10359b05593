"""Settings of ZeRO, precision and optimizer that exclude each other. Of the family CFG (see config.py).

Source of the rules: deepspeed 0.19.8, runtime/config.py, runtime/engine.py, runtime/precision_config.py, runtime/zero/config.py,
stage_1_and_2.py and stage3.py, read and (where they stop the parsing) run on 2026-11-30.
"""

from collections.abc import Iterator

from dsdoctor.api import DeepSpeed, DsConfig, Finding, Severity, check
from dsdoctor_checks.config_keys import KEYS, Clash, block, device, on, parsed, release, shown, stage, told, whole

_ZERO = "zero_optimization"
_STAGE = f"{_ZERO}.stage"
_OPTIMIZER = f"{_ZERO}.offload_optimizer"
_HALF = ("fp16.fp16_master_weights_and_grads", "bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states")


def _off(config: DsConfig, key: str) -> bool:
    """True when a switch is given and says no."""
    value = config.get(key)
    return value is False or value == 0 or (isinstance(value, str) and value.lower() in ("false", "no", "off", "0"))


def _clipping(config: DsConfig, deepspeed: DeepSpeed | None) -> bool:
    """True when gradients are clipped: by default since 0.19.3."""
    given = config.get("gradient_clipping")
    if given is None:
        return deepspeed is None or release(deepspeed.version) >= (0, 19, 3)
    return isinstance(given, int | float) and given > 0


def _half_states(config: DsConfig) -> Iterator[Clash]:
    for key in _HALF:
        if on(config.get(key)) and stage(config) == 0:
            yield Clash((key, _STAGE), f"{key} needs ZeRO, and the stage is 0", f"Set {_STAGE} to 1, 2 or 3")
    states, master = _HALF[2], _HALF[1]
    if on(config.get(states)) and not on(config.get(master)):
        what = f"{states} is on without {master}"
        yield Clash((states, master), what, f"Set {master} to true too, or remove {states}")
    fp16 = _HALF[0]
    needy = [key for key in (fp16, master) if on(config.get(key)) and not (key == master and on(config.get(states)))]
    for key in needy if stage(config) and device(config, _OPTIMIZER) == "none" else ():
        what = f"{key} works with CPU offload and DeepSpeedCPUAdam only, and {_OPTIMIZER} is off"
        yield Clash((key, f"{_OPTIMIZER}.device"), what, f"Set {_OPTIMIZER}.device to cpu, or remove {key}")
    if on(config.get(fp16)) and on(config.get(master)):
        yield Clash((fp16, master), f"{fp16} and {master} exclude each other", "Keep that of your precision")


@check("CFG019", "Half-precision master weights have what they need", causes=["config-conflict"], guards=["config"])
def half_states_fit(config: DsConfig) -> Iterator[Finding]:
    """Master weights in fp16 or bf16 exist under ZeRO only; bf16 optimizer states need bf16 master weights; fp16 ones CPU offload."""
    for clash in _half_states(parsed(config)):
        yield told(config, clash)


def _grad_norm(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Clash]:
    key = f"{_ZERO}.compute_grad_norm"
    if not _off(config, key):
        return
    level = stage(config)
    if level in (0, 3):
        yield Clash(
            (key, _STAGE), f"{key} false works at stage 1 and 2 only, and the stage is {level}", f"Remove {key}"
        )
    elif _clipping(config, deepspeed):
        given = shown(config.get("gradient_clipping")) if "gradient_clipping" in config.values else "1.0 by default"
        what = f"{key} is false and gradient_clipping is {given}: clipping needs the norm"
        yield Clash((key, "gradient_clipping"), what, f"Set gradient_clipping to 0, or remove {key}")
    grads = "data_types.grad_accum_dtype"
    if level == 1 and on(config.get("bf16.enabled")) and str(config.get(grads)).lower() in ("fp32", "float32"):
        yield Clash((key, grads), f"{key} false does not go with bf16 and {grads} fp32 at stage 1", f"Remove {key}")
    for other in (f"{_OPTIMIZER}.device", f"{_ZERO}.zenflow"):
        if config.get(other) not in (None, "none", "auto"):
            yield Clash((key, other), f"{key} false does not go with {other}", f"Remove {key} or {other}")


@check("CFG020", "The gradient norm is computed where it is needed", causes=["config-conflict"], guards=["config"])
def grad_norm_is_there(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Finding]:
    """compute_grad_norm may be false at stages 1 and 2 only, without gradient clipping (1.0 by default), offload and ZenFlow."""
    for clash in _grad_norm(parsed(config), deepspeed):
        yield told(config, clash)


def _reduction(config: DsConfig) -> Iterator[Clash]:
    level, summed = stage(config), str(config.get("gradient_allreduce_op")).lower() == "sum"
    for key, bad in ((_STAGE, level == 3), (f"{_ZERO}.zenflow", isinstance(config.get(f"{_ZERO}.zenflow"), dict)),
                     ("compile.deepcompile", on(config.get("compile.deepcompile")))):  # fmt: skip
        if summed and bad:
            what = f"gradient_allreduce_op is sum, which does not go with {key} {shown(config.get(key))}"
            yield Clash(("gradient_allreduce_op", key), what, "Set gradient_allreduce_op to mean")
    scatters = not _off(config, f"{_ZERO}.reduce_scatter") and not summed
    factor = config.get("gradient_predivide_factor", 1)
    for key, bad in (("prescale_gradients", on(config.get("prescale_gradients"))), ("gradient_predivide_factor", factor not in (1, None, "auto"))):  # fmt: skip
        if bad and scatters and level in (2, 3):
            what = f"{key} is {shown(config.get(key))}, which ZeRO-{level} does not take while reduce_scatter is on"
            yield Clash((key, f"{_ZERO}.reduce_scatter"), what, f"Remove {key}, or set {_ZERO}.reduce_scatter to false")
    bucket = f"{_ZERO}.allgather_bucket_size"
    if level in (1, 2) and (whole(config.get(bucket)) or 0) % 2:
        yield Clash((bucket,), f"{bucket} is {config.get(bucket)}; it has to be even", f"Make {bucket} a multiple of 2")


@check("CFG021", "Gradients are reduced in a way that this stage has", causes=["config-conflict"], guards=["config"])
def reduction_fits(config: DsConfig) -> Iterator[Finding]:
    """Sums, pre-scaling and pre-division go with some ZeRO stages only; DeepSpeed stops with an AssertionError or ValueError."""
    for clash in _reduction(parsed(config)):
        yield told(config, clash)


@check("CFG060", "No switch of an older ZeRO is on", causes=["config-deprecated-key"], guards=["config"])
def no_old_switch(config: DsConfig) -> Iterator[Finding]:
    """legacy_stage1 stops the engine: "The deprecated version of ZeRO Stage 1 is not supported"; elastic checkpoints ended with stage 3."""
    level, cause = stage(parsed(config)), "config-deprecated-key"
    legacy, elastic = f"{_ZERO}.legacy_stage1", f"{_ZERO}.elastic_checkpoint"
    if level and on(config.get(legacy)):
        yield told(config, Clash((legacy,), f"{legacy} is on, at which the engine stops", f"Remove {legacy}", cause))
    if level == 3 and on(config.get(elastic)):
        what = f"{elastic} is on, which stage 3 no longer supports"
        order = f"Remove {elastic}, and use checkpoint.load_universal"
        yield told(config, Clash((elastic, _STAGE), what, order, cause, Severity.WARNING))


@check("CFG022", "No setting is given by its old and its new name", causes=["config-conflict"], guards=["config"])
def one_name_each(config: DsConfig) -> Iterator[Finding]:
    """ "Cannot provide deprecated parameter 'cpu_offload' and replacing parameter 'offload_optimizer' together"."""
    held = block(parsed(config), _ZERO)
    for name in held:
        row = KEYS.get(f"{_ZERO}.{name}", {})
        new = str(row.get("instead"))
        also = [new, new.removeprefix("stage3_")]
        both = [other for other in also if other in held and held[other] != "auto"]
        if row.get("old") and both and " or " not in new and held[name] != "auto":
            old_key, new_key = f"{_ZERO}.{name}", f"{_ZERO}.{both[0]}"
            yield told(
                config, Clash((old_key, new_key), f"{old_key} is the old name of {new_key}", f"Remove {old_key}")
            )


@check(
    "CFG023", "Partial offload is used at stage 3", causes=["config-conflict", "config-no-effect"], guards=["config"]
)
def partial_offload_fits(config: DsConfig) -> Iterator[Finding]:
    """offload_optimizer.ratio below 1 stops the parsing below stage 3 (also when the device is none); super_offload does nothing there."""
    level = stage(parsed(config))
    ratio, fast = f"{_OPTIMIZER}.ratio", f"{_OPTIMIZER}.super_offload"
    given = config.get(ratio)
    try:
        part = float(given) if isinstance(given, int | float | str) and given != "auto" else 1.0
    except ValueError:
        part = 1.0
    if level is not None and level < 3:
        if part < 1:
            what = f"{ratio} is {shown(given)} and the ZeRO stage is {level}; parts can be offloaded at stage 3 only"
            yield told(config, Clash((ratio, _STAGE), what, f"Set {_STAGE} to 3, or remove {ratio}"))
        if on(config.get(fast)):
            what = f"{fast} has no effect at stage {level}"
            order = f"Set {_STAGE} to 3, or remove {fast}"
            yield told(config, Clash((fast, _STAGE), what, order, "config-no-effect", Severity.WARNING))
