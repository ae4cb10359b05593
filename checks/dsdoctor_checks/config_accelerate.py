"""Accelerate's YAML against itself and against the DeepSpeed config. Of the family CFG (see config.py).

Source of the rules: accelerate 1.15.0, utils/dataclasses.py (DeepSpeedPlugin), utils/launch.py, commands/launch.py and
accelerator.py (_prepare_deepspeed), read on 2026-11-30.
"""

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (  # fmt: skip
    AccelerateConfig,
    DsConfig,
    Evidence,
    Finding,
    Gpus,
    Remedy,
    RunPlan,
    Severity,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.config_keys import TABLE, Clash, on, parsed, shown, told, whole
from dsdoctor_checks.config_rules import autos

_DS = "deepspeed_config"
_FILE = f"{_DS}.deepspeed_config_file"
_CLASHING = ("gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device", "offload_param_device",
             "offload_param_nvme_path", "offload_optimizer_nvme_path", "zero3_save_16bit_model")  # fmt: skip
_FILLED = frozenset({  # what Accelerate alone puts in place of "auto": the Trainer fills more
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping", "fp16.enabled", "bf16.enabled",
    "optimizer.params.lr", "optimizer.params.weight_decay", "scheduler.params.warmup_min_lr", "scheduler.params.warmup_max_lr",
    "scheduler.params.warmup_num_steps", "scheduler.params.total_num_steps", "zero_optimization.stage",
    "zero_optimization.reduce_bucket_size", "zero_optimization.stage3_prefetch_bucket_size",
    "zero_optimization.stage3_param_persistence_threshold", "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device",
    "zero_optimization.offload_optimizer.nvme_path", "zero_optimization.offload_param.nvme_path",
})  # fmt: skip


def _asked(accelerate: AccelerateConfig | None) -> AccelerateConfig:
    """The YAML, or the end of the check."""
    if accelerate is None:
        not_applicable("no Accelerate config was given")
    if accelerate.problem and not accelerate.values:
        unknown(f"{accelerate.path} could not be read (CFG059)")
    if str(accelerate.get("distributed_type", "DEEPSPEED")).upper() != "DEEPSPEED" or accelerate.get("use_cpu") is True:
        not_applicable(f"{accelerate.path} does not start DeepSpeed")
    return accelerate


def said(accelerate: AccelerateConfig, key: str, what: str, order: str, cause: str, severity: Severity | None = None) -> Finding:  # fmt: skip
    """A finding at a key of the YAML."""
    where = accelerate.where(key)
    return Finding(
        message=f"{where}: {what}",
        cause=cause,
        subject=key,
        severity=severity,
        evidence=(Evidence(where=where, text=f"{key.rpartition('.')[2]}: {shown(accelerate.get(key))}"),),
        remedy=Remedy(order=order, safety="manual"),
    )


@check("CFG059", "The Accelerate config can be read", causes=["config-syntax"], severity=Severity.WARNING)
def accelerate_is_readable(accelerate: AccelerateConfig | None) -> Iterator[Finding]:
    """Read is the form that `accelerate config` writes: one key a line, blocks by indentation."""
    if accelerate is None:
        not_applicable("no Accelerate config was given")
    if accelerate.problem:
        yield Finding(
            message=f"{accelerate.path}: {accelerate.problem}",
            cause="config-syntax",
            evidence=(Evidence(where=accelerate.path, text=accelerate.problem),),
            remedy=Remedy(order="Write it anew with accelerate config, or name the right file", safety="manual"),
        )


@check(
    "CFG046", "Accelerate is told of DeepSpeed in one place", causes=["accelerate-config-conflict"], guards=["config"]
)
def accelerate_has_one_source(accelerate: AccelerateConfig | None) -> Iterator[Finding]:
    """With deepspeed_config_file the other DeepSpeed fields, and mixed_precision, stop the run: "... will be ignored"."""
    yaml = _asked(accelerate)
    if not yaml.get(_FILE):
        not_applicable("the YAML names no DeepSpeed file")
    for name in _CLASHING:
        key = f"{_DS}.{name}"
        if name in (yaml.get(_DS) or {}):
            what = f"{name} stands beside deepspeed_config_file ({yaml.get(_FILE)}): Accelerate stops"
            yield said(
                yaml, key, what, f"Remove {name} here and set it in the DeepSpeed file", "accelerate-config-conflict"
            )
    if yaml.get("mixed_precision") is not None:
        what = (
            "mixed_precision stands beside deepspeed_config_file: Accelerate stops, unless --mixed_precision is given"
        )
        order = "Remove mixed_precision here and set fp16 or bf16 in the DeepSpeed file"
        yield said(yaml, "mixed_precision", what, order, "accelerate-config-conflict")


@check("CFG047", "Accelerate passes the NVMe paths on", causes=["accelerate-nvme-path-dropped", "nvme-path-missing"], guards=["config"])  # fmt: skip
def nvme_paths_arrive(accelerate: AccelerateConfig | None) -> Iterator[Finding]:
    """Its launcher hands the devices over and not the paths: the plug-in finds none and takes the text "none" as the path."""
    yaml = _asked(accelerate)
    for name in ("offload_optimizer", "offload_param"):
        if str(yaml.get(f"{_DS}.{name}_device")).lower() == "nvme":
            key = f"{_DS}.{name}_nvme_path"
            path = yaml.get(key)
            what = f"{name}_device is nvme; its path {shown(path)} does not reach DeepSpeed, which swaps into a folder named none"
            order = (
                f"Put {name} with device and nvme_path into a DeepSpeed file, and name that as deepspeed_config_file"
            )
            yield said(yaml, key if path else f"{_DS}.{name}_device", what, order, "accelerate-nvme-path-dropped")


def _precision_clash(mixed: str, config: DsConfig) -> str | None:
    """The type that the DeepSpeed file enables and that does not go with Accelerate's mixed precision."""
    if mixed not in ("fp16", "bf16", "fp8"):
        return next((name for name in ("fp16", "bf16") if on(config.get(f"{name}.enabled"))), None)
    other = "bf16" if mixed == "fp16" else "fp16"
    return other if on(config.get(f"{other}.enabled")) else None


@check("CFG048", "Accelerate and DeepSpeed mean the same precision", causes=["accelerate-mixed-precision-conflict"], guards=["config"])  # fmt: skip
def precisions_agree(accelerate: AccelerateConfig | None, config: DsConfig | None) -> Iterator[Finding]:
    """ "`--mixed_precision` arg cannot be set to `bf16` when `fp16` is set in the DeepSpeed config file"."""
    yaml = _asked(accelerate)
    if config is None or yaml.get("mixed_precision") is None:
        not_applicable("the precision is given in one place only")
    mixed = str(yaml.get("mixed_precision")).lower()
    name = _precision_clash(mixed, parsed(config))
    if name is not None:
        what = f"mixed_precision is {mixed}, and {name}.enabled is true ({config.where(f'{name}.enabled')})"
        severity = Severity.ERROR if mixed in ("fp16", "bf16", "fp8") else Severity.WARNING
        order = f'Set mixed_precision to {name}, or {name}.enabled to "auto"'
        yield said(yaml, "mixed_precision", what, order, "accelerate-mixed-precision-conflict", severity)


@check("CFG049", "Process and machine counts of Accelerate fit", causes=["accelerate-multinode-counts", "more-processes-than-gpus"], guards=["config"])  # fmt: skip
def counts_fit(accelerate: AccelerateConfig | None, gpus: Gpus | None) -> Iterator[Finding]:
    """num_processes counts all machines: each gets num_processes divided by num_machines. The pdsh launcher needs a hostfile."""
    yaml = _asked(accelerate)
    processes, machines = whole(yaml.get("num_processes")), whole(yaml.get("num_machines")) or 1
    launcher = yaml.get(f"{_DS}.deepspeed_multinode_launcher") or "pdsh"
    if processes and machines > 1 and processes % machines:
        what = f"num_processes {processes} cannot be shared out to num_machines {machines}"
        yield said(
            yaml, "num_processes", what, f"Make num_processes a multiple of {machines}", "accelerate-multinode-counts"
        )
    here = len(gpus.devices) if gpus else 0
    if processes and here and processes // machines > here:
        what = f"{processes // machines} processes on each machine; this machine has {here} GPUs"
        yield said(yaml, "num_processes", what, f"Set num_processes to {here * machines}", "more-processes-than-gpus", Severity.WARNING)  # fmt: skip
    if machines > 1 and launcher not in ("standard", "nossh", "slurm") and not yaml.get(f"{_DS}.deepspeed_hostfile"):
        what = f"num_machines is {machines}, the launcher {launcher}, and there is no deepspeed_hostfile: one machine starts"
        order = 'Give deepspeed_hostfile, or set deepspeed_multinode_launcher to "standard" and start every machine'
        yield said(yaml, "num_machines", what, order, "accelerate-multinode-counts", Severity.WARNING)


def _accelerate_alone(accelerate: AccelerateConfig | None, plan: RunPlan | None, trainer: Any) -> bool:
    if plan is not None and plan.framework is not None:
        return plan.framework == "accelerate"
    return accelerate is not None and trainer is None


@check("CFG050", 'Accelerate can fill every "auto"', causes=["auto-unsupported-key", "config-incomplete"], guards=["config"])  # fmt: skip
def accelerate_fills_auto(
    config: DsConfig, accelerate: AccelerateConfig | None, plan: RunPlan | None
) -> Iterator[Finding]:
    """Accelerate alone (without the Trainer) refuses an "auto" that it has no value for, such as betas and eps: a ValueError.

    It also wants a zero_optimization section in the file.
    """
    if not _accelerate_alone(accelerate, plan, None):
        not_applicable("nobody said that Accelerate runs this without the Trainer")
    sure = plan is not None and plan.framework == "accelerate"
    severity = Severity.ERROR if sure else Severity.WARNING
    for key in autos(parsed(config).values):
        if key not in _FILLED:
            native = (
                " (DeepSpeed would understand it, Accelerate does not let it pass)"
                if key in TABLE["auto"]["native"]
                else ""
            )
            what = f"{key} is auto, and Accelerate has no value for it{native}"
            yield told(config, Clash((key,), what, f"Give {key} a value", "auto-unsupported-key", severity))
    if "zero_optimization" not in config.values:
        what = "there is no zero_optimization section, and Accelerate stops without one"
        order = 'Add "zero_optimization": {"stage": 0}'
        yield told(config, Clash(("zero_optimization",), what, order, "config-incomplete", severity))
