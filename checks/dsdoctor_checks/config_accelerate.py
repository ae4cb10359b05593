"""Accelerate's YAML against itself and against the DeepSpeed config. Of the family CFG (see config.py).

Source of the rules: accelerate 1.15.0, utils/dataclasses.py (DeepSpeedPlugin), utils/launch.py, commands/launch.py and
accelerator.py (_prepare_deepspeed), run on 2026-11-30 (tests/config_truth/test_frameworks.py).
"""

from collections.abc import Iterator

from dsdoctor.api import (  # fmt: skip
    AccelerateConfig,
    DsConfig,
    Evidence,
    Finding,
    Gpus,
    Remedy,
    RunPlan,
    Severity,
    TrainingArgs,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.config_keys import TABLE, Clash, framework_of, on, parsed, shown, told, whole
from dsdoctor_checks.config_rules import autos

_DS = "deepspeed_config"
_BATCH, _MICRO = "train_batch_size", "train_micro_batch_size_per_gpu"
_FILE = f"{_DS}.deepspeed_config_file"
_CLASHING = ("gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device", "offload_param_device",
             "offload_param_nvme_path", "offload_optimizer_nvme_path", "zero3_save_16bit_model")  # fmt: skip
_TRAINER_ONLY = ("optimizer.params.betas", "optimizer.params.eps")


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


def _precision_of_the_script(
    yaml: AccelerateConfig, config: DsConfig, arguments: TrainingArgs | None
) -> Iterator[Finding]:
    """A note where "auto" waits for a precision that neither file gives."""
    waiting = [f"{name}.enabled" for name in ("bf16", "fp16") if config.get(f"{name}.enabled") == "auto"]
    if waiting and arguments is None:
        what = f"{' and '.join(waiting)} auto follow --mixed_precision, or the script's: {yaml.path} gives none, so fp32 is left"
        order = "Set bf16.enabled or fp16.enabled to true, or start with accelerate launch --mixed_precision bf16"
        yield told(config, Clash(tuple(waiting), what, order, "accelerate-mixed-precision-conflict", Severity.INFO))


@check("CFG048", "Accelerate and DeepSpeed mean the same precision", causes=["accelerate-mixed-precision-conflict"], guards=["config"])  # fmt: skip
def precisions_agree(
    accelerate: AccelerateConfig | None, config: DsConfig | None, arguments: TrainingArgs | None
) -> Iterator[Finding]:
    """ "`--mixed_precision` arg cannot be set to `bf16` when `fp16` is set in the DeepSpeed config file".

    bf16 or fp16 "auto" follows mixed_precision; where nobody gives one, both are off.
    """
    yaml = _asked(accelerate)
    if config is None:
        not_applicable("the precision is given in one place only")
    if yaml.get("mixed_precision") is None:
        yield from _precision_of_the_script(yaml, parsed(config), arguments)
        return
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


def _who(accelerate: AccelerateConfig | None, arguments: TrainingArgs | None, plan: RunPlan | None) -> str:
    """hf (the Trainer) or accelerate; the end of the check when neither runs this, as far as anybody said."""
    named = framework_of(accelerate, arguments, plan)
    if named not in ("hf", "accelerate"):
        not_applicable("nobody said that Hugging Face runs this")
    return named


def _unfilled(config: DsConfig, who: str) -> Iterator[Clash]:
    filled = TABLE["auto"]["filled_by_hugging_face"]
    for key in autos(config.values):
        if key not in filled:
            note = " (DeepSpeed would understand it)" if key in TABLE["auto"]["native"] else ""
            what = f"{key} is auto, which stops transformers and accelerate: they have no value for it{note}"
        elif who == "accelerate" and key in _TRAINER_ONLY:
            what = f"{key} is auto, and Accelerate without the Trainer has no value for it"
        else:
            continue
        yield Clash((key,), what, f"Give {key} a value, or remove it", "auto-unsupported-key")
    if who == "accelerate" and config.get(_BATCH) == "auto" and config.get(_MICRO) is None:
        what = f"{_BATCH} is auto, and without {_MICRO} Accelerate cannot compute it"
        yield Clash((_BATCH, _MICRO), what, f'Give {_MICRO}: "auto", or a number', "auto-unsupported-key")


@check("CFG050", 'Hugging Face can fill every "auto"', causes=["auto-unsupported-key", "config-incomplete"], guards=["config"])  # fmt: skip
def hugging_face_fills_auto(
    config: DsConfig, accelerate: AccelerateConfig | None, arguments: TrainingArgs | None, plan: RunPlan | None
) -> Iterator[Finding]:
    """transformers and accelerate refuse an "auto" that they have no value for, with a ValueError: "not found in kwargs".

    That is so where DeepSpeed itself knows the word, too. Both also want a zero_optimization section in the file.
    """
    who = _who(accelerate, arguments, plan)
    sure = plan is not None and plan.framework is not None
    for clash in _unfilled(parsed(config), who):
        guess = who == "accelerate" and not sure and clash.keys[0] in (*_TRAINER_ONLY, _BATCH)
        yield told(config, clash._replace(severity=Severity.WARNING if guess else None))
    if "zero_optimization" not in config.values:
        what = "there is no zero_optimization section, and Hugging Face stops without one"
        order = 'Add "zero_optimization": {"stage": 0}'
        yield told(config, Clash(("zero_optimization",), what, order, "config-incomplete"))
