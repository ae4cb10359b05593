"""A model's config.json (the file, or the folder that holds it) → what a ds_config has to fit."""

import json
import os
from typing import Any

from dsdoctor.facts import ModelConfig
from dsdoctor.fit.config import NAMES

MOST_BYTES = 8 * 2**20
_HIDDEN = NAMES["hidden"]  # the family's own names: transformers maps each to hidden_size
_LARGEST = 10**9


def read(name: str) -> ModelConfig:
    """The facts of a config.json; what is wrong with it is told in ``problem``. Never raises."""
    path = os.path.join(name, "config.json") if os.path.isdir(name) else name
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ModelConfig(path=path, problem="there is no such file")
    except (OSError, ValueError) as error:
        said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        return ModelConfig(path=path, problem=f"it cannot be read: {said}")
    if len(data) > MOST_BYTES:
        return ModelConfig(path=path, problem=f"it is larger than {MOST_BYTES // 2**20} MiB")
    return parse(data.decode("utf-8-sig", "replace"), path)


def parse(text: str, path: str) -> ModelConfig:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        return ModelConfig(path=path, problem=f"line {error.lineno} is not JSON: {error.msg}")
    except (ValueError, RecursionError):
        return ModelConfig(path=path, problem="it is not JSON")
    if not isinstance(values, dict) or "zero_optimization" in values:
        return ModelConfig(path=path, problem="it is no config.json of a model")
    inner = values.get("text_config")
    text_config: dict[str, Any] = inner if isinstance(inner, dict) else {}
    family, dtype = (
        values.get("model_type"),
        values.get("dtype") or values.get("torch_dtype") or text_config.get("dtype"),
    )
    both = {**text_config, **{key: value for key, value in values.items() if value is not None}}
    return ModelConfig(
        path=path,
        family=family if isinstance(family, str) else None,
        hidden=_hidden(values),
        text_hidden=_hidden(text_config),
        heads=_first(both, NAMES["heads"]),
        kv_heads=_first(both, NAMES["kv_heads"]),
        experts=_first(both, NAMES["experts"]),
        dtype=dtype.removeprefix("torch.") if isinstance(dtype, str) else None,
    )


def _hidden(values: dict[str, Any]) -> int | None:
    sizes = values.get("hidden_sizes")
    largest = max((size for size in map(_size, sizes) if size), default=None) if isinstance(sizes, list) else None
    return _first(values, _HIDDEN) or largest


def _first(values: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((size for name in names if (size := _size(values.get(name))) is not None), None)


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST else None
