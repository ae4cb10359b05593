"""Questions to the table of DeepSpeed's config keys, and the words that all CFG findings share."""

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from dsdoctor.api import (
    AccelerateConfig,
    ConfigEdit,
    ConfigWords,
    DeepSpeed,
    DsConfig,
    Evidence,
    Finding,
    FrameworkName,
    Remedy,
    RunPlan,
    Severity,
    TrainingArgs,
    unknown,
)
from dsdoctor_checks import versions
from dsdoctor_checks.tables import Later, Sections

TABLE = Sections("ds_config_keys")
KEYS = Later(lambda: TABLE["keys"])
GONE = Later(lambda: TABLE["gone"])
REFUSE = Later(lambda: dict.fromkeys(TABLE["blocks"]["refuse"]))  # blocks that stop at an unknown key (pydantic models)
IGNORE = Later(lambda: dict.fromkeys(TABLE["blocks"]["ignore"]))
FREE = Later(lambda: dict.fromkeys(TABLE["blocks"]["free"]))
ALIASES = Later(lambda: {also: key for key, also in TABLE["keys"].having("also").items()})
STAGE = "zero_optimization.stage"
_MOST_EVIDENCE = 6


def parsed(config: DsConfig) -> DsConfig:
    """The config, or the end of the check when its text could not be read (CFG001 tells why)."""
    if config.problem is not None:
        unknown(f"{config.path} could not be parsed (CFG001)")
    return config


def release(version: str | None) -> tuple[int, ...]:
    """versions.release, and () for a version that is not known."""
    return versions.release(version) if version and version[0].isdigit() else ()


def newer_than_table(deepspeed: DeepSpeed | None) -> bool:
    return deepspeed is not None and release(deepspeed.version) > release(TABLE["about"]["deepspeed"])


def taken_here(words: ConfigWords | None, key: str) -> bool:
    """True when the patient's own DeepSpeed was asked and knows the key, whatever the table says."""
    if words is None or any(key == out or key.startswith(f"{out}.") for out in words.left_out):
        return False
    house, root = key.rpartition(".")[0], key.partition(".")[0]
    refused = [word.key for word in words.words if word.kind != "deprecated"]
    return key in words.known or (house in REFUSE and key not in refused and root not in refused)


def shown(value: Any) -> str:
    """A value as it stands in JSON, printable and short."""
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):
        text = str(type(value).__name__)
    return text if len(text) <= 80 else text[:77] + "..."


def plain(key: str) -> str:
    """A key for a sentence: printable and short."""
    text = "".join(c if c.isprintable() else "?" for c in key)
    return text if len(text) <= 120 else text[:117] + "..."


def evidence(config: DsConfig, *keys: str) -> tuple[Evidence, ...]:
    """Where the keys stand and what they say."""
    return tuple(
        Evidence(where=config.where(key), text=f"{plain(key.rpartition('.')[2])}: {shown(config.get(key))}")
        for key in keys[:_MOST_EVIDENCE]
        if key in config.places
    ) or (Evidence(where=config.path, text=f"{', '.join(keys)} is not given"),)


def remedy(config: DsConfig, order: str, edits: tuple[ConfigEdit, ...] = ()) -> Remedy:
    """An edit of the file: DeepSpeed has no command for it, so the order names the place; ``edits`` do it when that is safe."""
    return Remedy(
        order=order,
        safety="safe" if edits else "manual",
        verify=f"dsdoctor check --config {shlex.quote(config.path)} --only CFG",
        edits=edits,
    )


def framework_of(
    accelerate: AccelerateConfig | None, arguments: TrainingArgs | None, plan: RunPlan | None
) -> FrameworkName | None:
    """What starts DeepSpeed: as somebody said, else as the files beside the config tell."""
    if plan is not None and plan.framework is not None:
        return plan.framework
    return "hf" if arguments is not None else "accelerate" if accelerate is not None else None


def block(config: DsConfig, name: str) -> dict[str, Any]:
    """The object at ``name``, or an empty one."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


@cache
def children(name: str) -> dict[str, str]:
    """Key -> dotted name of all that the table lists directly in a block ("" for the top level)."""
    start = f"{_current(name)}." if name else ""
    every = [*KEYS, *ALIASES, *GONE]
    return {k[len(start) :].split(".")[0]: k for k in every if k.startswith(start)}


def blocks(config: DsConfig) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every block of the table that the config gives as an object, with its dotted name."""
    for name in sorted({*REFUSE, *IGNORE}):
        if isinstance(config.get(name), dict) and name not in FREE:
            yield name, config.get(name)


def nearest(key: str, names: Iterator[str] | list[str]) -> str | None:
    """The real name that ``key`` most looks like."""
    import difflib

    found = difflib.get_close_matches(key.lower()[:100], list(names), n=1, cutoff=0.75)
    return found[0] if found else None


_PARAMETERS = {  # what people write beside params instead of into it; source: torch.optim 2.13, deepspeed/runtime/lr_schedules.py
    "optimizer": ("lr", "betas", "eps", "weight_decay", "momentum", "amsgrad", "bias_correction", "fused", "adam_w_mode", "torch_adam"),
    "scheduler": ("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type", "total_num_steps", "warmup_min_ratio", "cos_min_ratio"),
}  # fmt: skip
_TELLING = ("stage", "hysteresis", "offload_param", "zenflow")  # other names of one word are too common to tell a home


def homes_of(name: str, key: str) -> list[str]:
    """The dotted names under which a key that stands in block ``name`` may belong; names that anybody may use tell nothing."""
    if key in KEYS and name:
        return [] if KEYS[key].get("old") else [key]
    parameters = [f"{block}.params.{key}" for block, known in _PARAMETERS.items() if key in known]
    if name in ("optimizer", "scheduler", "") and parameters:
        return [place for place in parameters if not name or place.startswith(f"{name}.")]
    if "_" not in key and key not in _TELLING:
        return []
    return [
        place
        for place, entry in KEYS.items()
        if "." in place and place.rpartition(".")[2] == key and place != f"{name}.{key}" and not entry.get("old")
    ]


def _current(name: str) -> str:
    """Of two names of one block the present one."""
    return "bf16" if name == "bfloat16" else name


def row(key: str) -> dict[str, Any] | None:
    key = ALIASES.get(key, key)
    house, _, name = key.rpartition(".")
    return KEYS.get(f"{_current(house)}.{name}" if house else key)


def on(value: Any) -> bool:
    """True when DeepSpeed takes the value as yes."""
    return (
        value is True or value == 1 or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1"))
    )


def whole(value: Any) -> int | None:
    """The integer in a number or a text of digits; None for anything else, also for booleans and "auto"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
        return int(value)
    return int(value) if isinstance(value, int) or (isinstance(value, float) and value.is_integer()) else None


def stage(config: DsConfig) -> int | None:
    """The ZeRO stage; None when it is "auto" or no number (other checks speak of that)."""
    given = config.get("zero_optimization")
    if isinstance(given, bool):
        return int(given)
    value = config.get(STAGE, 0)
    return whole(value)


def truthy(value: Any) -> bool:
    """True when plain Python takes the value as yes, as the blocks without a model do: there "false" is a yes."""
    return bool(value) and value != "auto"


def device(config: DsConfig, name: str) -> str:
    """Where the offload block ``name`` sends things: none, cpu, nvme, or what else is written."""
    return str(block(config, name).get("device", "none"))


class Clash(NamedTuple):
    """What a rule between keys found: the first key is the subject and its place stands in the message."""

    keys: tuple[str, ...]
    what: str
    order: str
    cause: str = "config-conflict"
    severity: Severity | None = None
    edits: tuple[ConfigEdit, ...] = ()


def told(config: DsConfig, clash: Clash) -> Finding:
    """The finding of a clash."""
    key = next((k for k in clash.keys if k in config.places), clash.keys[0])
    return Finding(
        message=f"{config.where(key) if key in config.places else config.path}: {clash.what}",
        cause=clash.cause,
        subject=plain(clash.keys[0]),
        evidence=evidence(config, *clash.keys),
        severity=clash.severity,
        remedy=remedy(config, clash.order, clash.edits),
    )
