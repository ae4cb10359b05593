"""Hugging Face TrainingArguments and Lightning against the DeepSpeed config. Of the family CFG (see config.py).

Source of the rules: transformers 5.24.0, integrations/deepspeed.py (HfTrainerDeepSpeedConfig) and training_args.py, run on
2026-11-30 (tests/config_truth/test_frameworks.py); Lightning: lightning/pytorch/strategies/deepspeed.py
(_format_batch_size_and_grad_accum_config), read on 2026-11-30.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from dsdoctor.api import (  # fmt: skip
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
)
from dsdoctor_checks.config_keys import Clash, parsed, shown, told, whole

_DEFAULTS: dict[str, Any] = {
    "per_device_train_batch_size": 8, "gradient_accumulation_steps": 1, "max_grad_norm": 1.0, "learning_rate": 5e-5,
    "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8, "weight_decay": 0.0, "fp16": False, "bf16": False,
    "fp16_full_eval": False, "bf16_full_eval": False, "warmup_steps": 0, "max_steps": -1,
}  # fmt: skip
_NUMBERS = ("learning_rate", "max_grad_norm", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay")
_WARMUP, _TOTAL = "scheduler.params.warmup_num_steps", "scheduler.params.total_num_steps"
_SAME = (  # a key of the DeepSpeed config, and the arguments that must say the same
    ("train_micro_batch_size_per_gpu", ("per_device_train_batch_size",)),
    ("gradient_accumulation_steps", ("gradient_accumulation_steps",)),
    ("gradient_clipping", ("max_grad_norm",)),
    ("optimizer.params.lr", ("learning_rate",)),
    ("optimizer.params.betas", ("adam_beta1", "adam_beta2")),
    ("optimizer.params.eps", ("adam_epsilon",)),
    ("optimizer.params.weight_decay", ("weight_decay",)),
    ("scheduler.params.warmup_max_lr", ("learning_rate",)),
    (_WARMUP, ("warmup_steps",)),
    (_TOTAL, ("max_steps",)),
    ("fp16.enabled", ("fp16", "fp16_full_eval")),
    ("bf16.enabled", ("bf16", "bf16_full_eval")),
)

_ALWAYS: dict[str, Any] = {  # the defaults of Accelerate's plug-in, which no argument changes
    "zero_optimization.stage": 2, "zero_optimization.offload_optimizer.device": "none", "zero_optimization.offload_param.device": "none",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save": False, "scheduler.params.warmup_min_lr": 0,
}  # fmt: skip


class Pair(NamedTuple):
    """One value that stands in two places."""

    key: str
    arguments: tuple[str, ...]
    ours: Any  # what the DeepSpeed config says
    theirs: Any  # what the arguments say, defaults included
    given: bool  # False: the arguments are silent, and their default counts


def _value(arguments: TrainingArgs, name: str) -> Any:
    value = arguments.get(name, _DEFAULTS[name])
    if name in _NUMBERS and isinstance(value, str):  # YAML 1.1 reads 1e-4 as a text; CFG052 speaks of it
        try:
            return float(value)
        except ValueError:
            return value
    return value


def pairs(config: DsConfig, arguments: TrainingArgs) -> Iterator[Pair]:
    """Every value that the Trainer compares, or fills in for "auto"."""
    for key, names in _SAME:
        ours = config.get(key)
        if ours is None or (arguments.get("auto_find_batch_size") is True and "batch_size" in key):
            continue
        theirs = _theirs(key, [_value(arguments, name) for name in names])
        if theirs is None:
            continue
        yield Pair(key, names, ours, theirs, any(name in arguments.values for name in names))


def _theirs(key: str, values: list[Any]) -> Any:
    """What the Trainer makes of its arguments for ``key``; None when that needs the number of steps, which the data decide."""
    if key.endswith("betas"):
        return values
    if key.endswith(".enabled"):
        return any(values)
    if key == _TOTAL:
        return values[0] if isinstance(values[0], int) and values[0] > 0 else None
    if key == _WARMUP:
        return max(1, int(values[0])) if values[0] == 0 or (whole(values[0]) or 0) >= 1 else None
    return values[0]


def _readable(arguments: TrainingArgs | None) -> TrainingArgs:
    if arguments is None:
        not_applicable("no TrainingArguments were given")
    return arguments


def _at(arguments: TrainingArgs, names: tuple[str, ...]) -> str:
    return next((arguments.where(name) for name in names if name in arguments.places), arguments.path)


@check("CFG051", "TrainingArguments and the DeepSpeed config say the same", causes=["hf-ds-mismatch"], guards=["config"])  # fmt: skip
def arguments_agree(config: DsConfig, arguments: TrainingArgs | None) -> Iterator[Finding]:
    """ "Please correct the following DeepSpeed config values that mismatch TrainingArguments". "auto" takes the argument's value.

    The Trainer compares its defaults, too: a learning rate that stands in the JSON only is a mismatch with 5e-5.
    """
    held = _readable(arguments)
    for key, names, ours, theirs, given in pairs(parsed(config), held):
        if ours == "auto" or ours == theirs:
            continue
        default = "" if given else " by default"
        what = f"{key} is {shown(ours)}, and {'+'.join(names)} is {shown(theirs)}{default} ({_at(held, names)})"
        order = f'Set {key} to "auto", or {names[0]} to {shown(ours)}'
        # a command line may give what the file leaves out
        severity = Severity.ERROR if given else Severity.WARNING
        yield told(config, Clash((key,), what, order, "hf-ds-mismatch", severity))


@check("CFG052", "TrainingArguments can be read as they are meant", causes=["config-sci-notation-string", "config-syntax"], severity=Severity.WARNING)  # fmt: skip
def arguments_are_numbers(arguments: TrainingArgs | None) -> Iterator[Finding]:
    """YAML 1.1 reads 1e-4 as a text, for it has no point: write 1.0e-4. JSON has no such trap."""
    held = _readable(arguments)
    if held.problem:
        yield Finding(
            message=f"{held.path}: {held.problem}",
            cause="config-syntax",
            evidence=(Evidence(where=held.path, text=held.problem),),
            remedy=Remedy(order=f"Mend {held.path}", safety="manual"),
        )
    for name in _NUMBERS:
        if isinstance(held.get(name), str):
            yield Finding(
                message=f"{held.where(name)}: {name} is the text {shown(held.get(name))}, no number",
                cause="config-sci-notation-string",
                subject=name,
                evidence=(Evidence(where=held.where(name), text=f"{name}: {held.get(name)}"),),
                remedy=Remedy(order=f"Write {name} with a point, such as 1.0e-4", safety="manual"),
            )


@check("CFG053", "The global batch is what the TrainingArguments make", causes=["hf-ds-mismatch"], guards=["config"])
def global_batch_agrees(config: DsConfig, arguments: TrainingArgs | None, plan: RunPlan | None, gpus: Gpus | None) -> Iterator[Finding]:  # fmt: skip
    """train_batch_size has to be the number of processes x per_device_train_batch_size x gradient_accumulation_steps."""
    held = _readable(arguments)
    batch = whole(parsed(config).get("train_batch_size"))
    ranks = plan.ranks if plan and plan.ranks else len(gpus.devices) if gpus else 0
    if batch is None or not ranks or held.get("auto_find_batch_size") is True:
        not_applicable("train_batch_size is not given, or the number of processes is not known")
    micro, steps = (
        whole(_value(held, name)) for name in ("per_device_train_batch_size", "gradient_accumulation_steps")
    )
    if micro and steps and batch != micro * steps * ranks:
        what = f"train_batch_size is {batch}, and {ranks} processes x {micro} x {steps} ({held.path}) are {micro * steps * ranks}"
        severity = Severity.ERROR if plan and plan.ranks else Severity.WARNING
        yield told(
            config, Clash(("train_batch_size",), what, 'Set train_batch_size to "auto"', "hf-ds-mismatch", severity)
        )


@check("CFG054", "The Trainer fills in what is auto", causes=["auto-without-hf"], severity=Severity.INFO)
def autos_are_filled_with(config: DsConfig, arguments: TrainingArgs | None) -> Iterator[Finding]:
    """Tells what each "auto" becomes with these TrainingArguments; buckets follow from the model's hidden size (--model).

    Some become the same for everyone: the ZeRO stage 2, offload devices none.
    """
    held = _readable(arguments)
    filled = {pair.key: pair.theirs for pair in pairs(parsed(config), held) if pair.ours == "auto"}
    filled |= {key: value for key, value in _ALWAYS.items() if config.get(key) == "auto"}
    if not filled:
        not_applicable("no auto is filled from the TrainingArguments")
    what = f"{held.path} fills in {', '.join(f'{key} = {shown(value)}' for key, value in filled.items())}"
    keys = tuple(filled)
    yield told(config, Clash(keys, what, "Nothing to do, if these values are meant", "auto-without-hf"))


@check(
    "CFG055", "Lightning alone sets the accumulation", causes=["lightning-config-conflict"], severity=Severity.WARNING
)
def lightning_owns_accumulation(config: DsConfig, plan: RunPlan | None) -> Iterator[Finding]:
    """Lightning stops at gradient_accumulation_steps in the config: it sets it from accumulate_grad_batches.

    "Do not set `gradient_accumulation_steps` in the DeepSpeed config". It adds the micro batch and the clipping only where the
    config is silent; a fixed train_batch_size then no longer adds up.
    """
    if plan is None or plan.framework != "lightning":
        not_applicable("nobody said that Lightning runs this")
    steps, cause = "gradient_accumulation_steps", "lightning-config-conflict"
    if steps in parsed(config).values:
        what = f"{steps} is given, at which Lightning stops: its Trainer has accumulate_grad_batches for it"
        order = f"Remove {steps}, and pass accumulate_grad_batches to the Trainer"
        yield told(config, Clash((steps,), what, order, cause, Severity.ERROR))
    if config.get("train_batch_size") is not None:
        what = "train_batch_size is fixed, and Lightning sets the accumulation"
        order = "Leave train_batch_size out, and keep train_micro_batch_size_per_gpu"
        yield told(config, Clash(("train_batch_size",), what, order, cause))
