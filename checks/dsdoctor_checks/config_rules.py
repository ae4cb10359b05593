"""Rules between keys of the config, and between the config and the machine. The second module of the family CFG (see config.py).

Source of the rules: deepspeed 0.19.8, runtime/config.py, runtime/engine.py and runtime/zero, run and read on 2026-11-30.
"""

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    AccelerateConfig,
    DeepSpeed,
    DeepSpeedLive,
    DsConfig,
    Finding,
    Gpus,
    RunPlan,
    Severity,
    TrainingArgs,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.config_keys import (
    REFUSE,
    STAGE,
    TABLE,
    Clash,
    block,
    evidence,
    framework_of,
    newer_than_table,
    on,
    parsed,
    plain,
    release,
    remedy,
    shown,
    stage,
    told,
)

_PARAM, _OPTIMIZER = "zero_optimization.offload_param", "zero_optimization.offload_optimizer"


def _device(config: DsConfig, name: str) -> str:
    return str(block(config, name).get("device", "none")).lower()


@check(
    "CFG007",
    "Offload fits the ZeRO stage",
    causes=["offload-param-needs-stage3", "config-no-effect"],
    severity=Severity.WARNING,
)
def offload_fits_the_stage(config: DsConfig) -> Iterator[Finding]:
    """Parameters can be offloaded at stage 3 only, optimizer states from stage 1 on; below, DeepSpeed ignores the wish."""
    level = stage(parsed(config))
    if level is None:
        not_applicable(f"the stage is {shown(config.get(STAGE))}, filled in by Hugging Face")
    for name, needs, what in ((_PARAM, 3, "parameters"), (_OPTIMIZER, 1, "optimizer states")):
        if _device(config, name) in ("cpu", "nvme") and level < needs:
            yield Finding(
                message=f"{config.where(f'{name}.device')}: {name} is {_device(config, name)} and the ZeRO stage is {level}: {what} stay on the GPU, silently",
                cause="offload-param-needs-stage3" if needs == 3 else "config-no-effect",
                subject=name,
                evidence=evidence(config, f"{name}.device", STAGE),
                remedy=remedy(config, f"Set {STAGE} to {needs}, or remove {name} ({config.where(name)})"),
            )


@check(
    "CFG008",
    "NVMe offload has a path and the right stage",
    causes=["nvme-path-missing", "config-no-effect"],
    guards=["config", "aio"],
)
def nvme_has_a_path(config: DsConfig) -> Iterator[Finding]:
    """Without nvme_path the engine dies with a TypeError on None; at stages 1 and 2 nvme is silently treated as cpu.

    For nvme_path "auto" transformers and accelerate put "none", and DeepSpeed swaps into a folder of that name.
    """
    used = [name for name in (_PARAM, _OPTIMIZER) if _device(parsed(config), name) == "nvme"]
    if not used:
        not_applicable("nothing is offloaded to NVMe")
    for name in used:
        path, where = f"{name}.nvme_path", f"{name}.device"
        if config.get(path) in (None, "", "auto"):
            said = 'auto, for which Hugging Face writes the text "none"' if config.get(path) else "not given"
            what = f"{where} is nvme, and nvme_path is {said}"
            order = f"Set {path} to a folder on a local NVMe disk ({config.where(where)})"
            yield told(config, Clash((path, where), what, order, "nvme-path-missing"))
        if name == _OPTIMIZER and stage(config) in (1, 2):
            what = f"{where} is nvme at stage {stage(config)}: DeepSpeed treats it as cpu, so it fills host RAM"
            order = f"Set {STAGE} to 3, or the device to cpu ({config.where(where)})"
            yield told(config, Clash((where, STAGE), what, order, "config-no-effect", Severity.WARNING))


@check("CFG009", "fp16 and bf16 are not both on", causes=["fp16-bf16-both"], guards=["config"])
def one_precision(config: DsConfig) -> Iterator[Finding]:
    """A run has one half precision; DeepSpeed stops with an AssertionError when both are enabled."""
    half = "bf16.enabled" if "bf16" in parsed(config).values else "bfloat16.enabled"
    if on(config.get("fp16.enabled")) and on(config.get(half)):
        yield Finding(
            message=f"{config.where(half)}: fp16.enabled is {shown(config.get('fp16.enabled'))} and {half} is {shown(config.get(half))}",
            cause="fp16-bf16-both",
            evidence=evidence(config, "fp16.enabled", half),
            remedy=remedy(
                config,
                f"Keep {half} on GPUs of compute capability 8.0 and above, else fp16; set the other to false",
            ),
        )


def autos(value: Any, path: str = "") -> Iterator[str]:
    """Dotted keys whose value is "auto"."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from autos(inner, f"{path}.{key}" if path else key)
    elif value == "auto":
        yield path


@check(
    "CFG011",
    'Every "auto" has somebody who fills it in',
    causes=["auto-without-hf", "auto-unsupported-key"],
    severity=Severity.INFO,
)
def auto_is_filled(
    config: DsConfig, plan: RunPlan | None, accelerate: AccelerateConfig | None, arguments: TrainingArgs | None
) -> Iterator[Finding]:
    """Only Hugging Face replaces "auto". DeepSpeed alone takes the default in some sections and dies in others.

    What transformers and accelerate have no value for, they refuse: CFG050.
    """
    framework = framework_of(accelerate, arguments, plan)
    if framework in ("hf", "accelerate"):
        not_applicable("Hugging Face fills auto in (CFG050)")
    native, filled = TABLE["auto"]["native"], TABLE["auto"]["filled_by_hugging_face"]
    found = [k for k in autos(parsed(config).values) if k not in native and not k.startswith("expert_parallel.")]
    usual = [k for k in found if k in filled]
    if usual:
        yield _usual_autos(config, usual, alone=framework is not None)
    for key in (k for k in found if k not in filled):
        quiet = key.rpartition(".")[0] in REFUSE
        effect = "DeepSpeed takes its default" if quiet else "for DeepSpeed it is a text"
        yield Finding(
            message=f"{config.where(key)}: {plain(key)} is auto: transformers and accelerate stop at it, {effect}",
            cause="auto-unsupported-key",
            subject=plain(key),
            severity=Severity.WARNING if quiet and not usual else Severity.ERROR,
            evidence=evidence(config, key),
            remedy=remedy(config, f"Replace auto by a value, or remove {plain(key)} ({config.where(key)})"),
        )


def _usual_autos(config: DsConfig, usual: list[str], *, alone: bool) -> Finding:
    """The autos of Hugging Face's documentation; ``alone``: nobody replaces them, so that most stop DeepSpeed."""
    stops = [key for key in usual if key.rpartition(".")[0] not in REFUSE]
    named = ", ".join(usual[:3]) + ("..." if len(usual) > 3 else "")
    verb = "values are" if len(usual) > 1 else "value is"
    effect = "DeepSpeed stops at it" if stops else "DeepSpeed takes its defaults instead"
    said = effect if alone else "right with transformers or accelerate only"
    return Finding(
        severity=(Severity.ERROR if stops else Severity.WARNING) if alone else None,
        message=f"{config.where(usual[0])}: {len(usual)} {verb} auto ({named}): {said}",
        cause="auto-without-hf",
        evidence=evidence(config, *usual),
        remedy=remedy(config, "Without transformers or accelerate, replace every auto by a number"),
    )


_NEEDS = {"bf16": 8, "fp16": 7}  # major compute capability: accelerator/cuda_accelerator.py; CUDA's own for bf16
_OTHER_PRECISION = {
    "bf16": "Use fp16 instead on GPUs of compute capability 7.x, else set bf16.enabled to false",
    "fp16": "Set fp16.enabled to false, or use a GPU of compute capability 7.0 or above",
}


def _no_precision(name: str, gpus: Gpus | None, live: DeepSpeedLive | None) -> str | None:
    """Why this machine cannot compute in ``name``, or None."""
    for gpu in gpus.devices if gpus else ():
        major = release(gpu.compute_capability)[:1]
        if major and major[0] < _NEEDS[name]:
            return f"GPU {gpu.index} ({gpu.name}) has compute capability {gpu.compute_capability}, {name} needs {_NEEDS[name]}.0"
    if live is not None and (live.bf16 if name == "bf16" else live.fp16) is False:
        return f"DeepSpeed's {live.accelerator or 'chosen'} accelerator says that it has no {name}"
    return None


@check(
    "CFG012",
    "The GPUs can compute in the precision of the config",
    causes=["bf16-unsupported-gpu", "fp16-unsupported-gpu"],
    guards=["config"],
)
def gpus_can_do_the_precision(config: DsConfig, gpus: Gpus | None, live: DeepSpeedLive | None) -> Iterator[Finding]:
    """bf16 needs compute capability 8.0, fp16 7.0; DeepSpeed says "Type fp16 is not supported on your device"."""
    wanted = [n for n in ("fp16", "bf16") if on(parsed(config).get(f"{n}.enabled"))]
    if not wanted:
        not_applicable("neither fp16 nor bf16 is on")
    if gpus is None and live is None:
        unknown("neither the GPUs nor DeepSpeed's accelerator were examined")
    if live is None and gpus is not None and not gpus.devices:
        not_applicable("there is no GPU here")
    for name in wanted:
        why = _no_precision(name, gpus, live)
        if why:
            yield Finding(
                message=f"{config.where(f'{name}.enabled')}: {name}.enabled is true; {why}",
                cause=f"{name}-unsupported-gpu",
                subject=name,
                evidence=evidence(config, f"{name}.enabled"),
                remedy=remedy(config, _OTHER_PRECISION[name]),
            )


@check("CFG014", "Optimizer and scheduler have known names", causes=["optimizer-unknown"], guards=["config"])
def names_are_known(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Finding]:
    """An unknown name passes the config and fails when the engine starts: "not a supported DeepSpeed Optimizer"."""
    names = TABLE["names"]
    optimizer, scheduler = parsed(config).get("optimizer.type"), config.get("scheduler.type")
    gone = [n.lower() for n in names["gone_optimizers"]]
    was_here = deepspeed is not None and release(deepspeed.version) < release(names["gone_optimizers_since"])
    taken = [n.lower() for n in names["optimizers"]] + (gone if was_here else [])
    found = []
    if isinstance(optimizer, str) and optimizer.lower() not in taken and optimizer not in names["torch_optimizers"]:
        found.append(("optimizer.type", optimizer, names["optimizers"]))
    if isinstance(scheduler, str) and scheduler not in (*names["schedulers"], *names["torch_schedulers"]):
        found.append(("scheduler.type", scheduler, names["schedulers"]))
    if found and newer_than_table(deepspeed):
        unknown(
            f"this DeepSpeed is newer than the table ({TABLE['about']['deepspeed']}), which lacks {plain(found[0][1])}"
        )
    for key, value, known in found:
        old = f", which was removed in {names['gone_optimizers_since']}" if value.lower() in gone else ""
        yield Finding(
            message=f"{config.where(key)}: {key} is {shown(value)}{old}; DeepSpeed knows {', '.join(known)}, and torch's own names",
            cause="optimizer-unknown",
            subject=key,
            evidence=evidence(config, key),
            remedy=remedy(config, f"Give {key} one of these names ({config.where(key)})"),
        )
