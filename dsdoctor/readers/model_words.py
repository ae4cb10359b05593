"""A model's config.json → what a ds_config has to fit."""

from typing import Any

from dsdoctor.facts import ModelConfig
from dsdoctor.fit.config import NAMES
from dsdoctor.readers import model_config

_HIDDEN = NAMES["hidden"]  # the family's own names: transformers maps each to hidden_size
_LARGEST = 10**9


def read(name: str) -> ModelConfig:
    """The facts of a config.json, or of the one in a folder; what is wrong with it is told in ``problem``. Never raises."""
    try:
        values, path = model_config.read(name)
    except model_config.Unreadable as error:
        return ModelConfig(path=error.path, problem=error.why, missing=error.missing)
    return told(values, path)


def told(values: dict[str, Any], path: str) -> ModelConfig:
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
