"""Which mistakes of a config have one safe mend, as an edit of its text. Pure functions for config.py.

Safe means: the file says afterwards what it was meant to say, and nothing that was on goes off or the other way round, except a
misspelt key, whose real name is near and not taken.
"""

from typing import Any

from dsdoctor.api import ConfigEdit, DsConfig
from dsdoctor_checks.config_keys import block, on, whole

_RENAMED = {  # the same meaning under a new name; source: tables/ds_config_keys.toml and the release notes that it names
    "aio.thread_count": "intra_op_parallelism",
    "seq_parallel_comm_data_type": "seq_parallel_communication_data_type",
    "zero_optimization.stage3_gather_fp16_weights_on_model_save": "stage3_gather_16bit_weights_on_model_save",
    "bfloat16": "bf16",
}
_TO_CPU = {"zero_optimization.cpu_offload": "offload_optimizer", "zero_optimization.cpu_offload_param": "offload_param"}
_NOTHING = object()
_YES, _NO = ("true", "yes", "on", "t", "y"), ("false", "no", "off", "f", "n")


def rename(config: DsConfig, key: str, new: str | None) -> tuple[ConfigEdit, ...]:
    """``key`` under the name ``new``, unless that is taken or the key cannot be found again."""
    house, _, name = key.rpartition(".")
    siblings = block(config, house) if house else config.values
    if new is None or new in siblings or name not in siblings or key in config.duplicates:
        return ()
    return (ConfigEdit(action="rename", key=key, value=new),)


def remove(config: DsConfig, key: str) -> tuple[ConfigEdit, ...]:
    """The file without ``key``, unless it stands there twice."""
    return () if key in config.duplicates else (ConfigEdit(action="remove", key=key),)


def move(config: DsConfig, key: str, home: str | None) -> tuple[ConfigEdit, ...]:
    """``key`` at the place where DeepSpeed looks for it, unless something stands there or on the way."""
    house, _, name = key.rpartition(".")
    siblings = block(config, house) if house else config.values
    if home is None or name not in siblings or key in config.duplicates or config.get(home, _NOTHING) is not _NOTHING:
        return ()
    parts = home.split(".")
    way = [config.get(".".join(parts[:n]), {}) for n in range(1, len(parts))]
    return (ConfigEdit(action="move", key=key, value=home),) if all(isinstance(held, dict) for held in way) else ()


def unquote(key: str, value: Any, types: list[str]) -> tuple[ConfigEdit, ...]:
    """A number or a truth value without its quotes."""
    if not isinstance(value, str):
        return ()
    text = value.strip()
    if "boolean" in types and text.lower() in (*_YES, *_NO):
        return (ConfigEdit(action="set", key=key, value="true" if text.lower() in _YES else "false"),)
    number = _number(text)
    if number is None or not {"integer", "number"} & set(types):
        return ()
    if "number" in types:
        return (ConfigEdit(action="set", key=key, value=_written(text, number)),)
    exact = whole(number)
    return () if exact is None else (ConfigEdit(action="set", key=key, value=str(exact)),)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e18 else None


def _written(text: str, number: float) -> str:
    """The number as the user wrote it, when JSON takes it so."""
    plain = text.lstrip("-")
    taken = plain[:1].isdigit() and plain[-1:].isdigit() and "_" not in plain and not (len(plain) > 1 and plain[0] == "0" and plain[1].isdigit())  # fmt: skip
    return text if taken and not plain.lower().startswith("0x") else repr(number)


def letters(key: str, value: Any, allowed: list[Any]) -> tuple[ConfigEdit, ...]:
    """The allowed value that differs in letter case only."""
    near = [a for a in allowed if isinstance(value, str) and isinstance(a, str) and a.lower() == value.strip().lower()]
    return (ConfigEdit(action="set", key=key, value=f'"{near[0]}"'),) if len(near) == 1 else ()


def current(config: DsConfig, key: str) -> tuple[ConfigEdit, ...]:
    """What replaces a deprecated or removed key without changing what is on."""
    value = config.get(key)
    if key in _RENAMED:
        return rename(config, key, _RENAMED[key])
    if key in _TO_CPU and isinstance(value, bool):
        if not value:
            return (ConfigEdit(action="remove", key=key),)
        renamed = rename(config, key, _TO_CPU[key])
        return (*renamed, ConfigEdit(action="set", key=key, value='{"device": "cpu"}')) if renamed else ()
    off = (
        value is False or value is None or (isinstance(value, dict) and "enabled" in value and not on(value["enabled"]))
    )
    return (ConfigEdit(action="remove", key=key),) if off and key not in ("bf16", "fp16") else ()
