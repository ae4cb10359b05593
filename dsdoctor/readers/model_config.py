"""A model's config.json, as Hugging Face writes it: the file, or the folder that holds it."""

import json
import os
from typing import Any

MOST_BYTES = 8 * 2**20  # the largest known one, with its tables of labels, has less than one
NAME = "config.json"


class Unreadable(ValueError):
    """No config.json can be had there; the message is one sentence with the file's name."""


def read(name: str) -> tuple[dict[str, Any], str]:
    """What the config.json says, and which file it was. Raises Unreadable."""
    path = os.path.join(name, NAME) if os.path.isdir(name) else name
    if path != name and not os.path.exists(path):
        raise Unreadable(f"{name} holds no {NAME}: name the folder of a model, or its {NAME}")
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable(f"{path}: there is no such file{_hub(name)}") from None
    except (OSError, ValueError) as error:
        said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise Unreadable(f"{path} cannot be read: {said}") from None
    if len(data) > MOST_BYTES:
        raise Unreadable(f"{path} is larger than {MOST_BYTES // 2**20} MiB: a model's {NAME} has a few kilobytes")
    return _parsed(data, path), path


def _hub(name: str) -> str:
    """A name like org/model is one of the Hub; nothing is fetched from there."""
    parts = name.split("/")
    named = len(parts) == 2 and all(parts) and parts[0] not in (".", "..", "~") and not name.endswith(".json")
    return f" (nothing is downloaded: save the {NAME} of {name} and name that file)" if named else ""


def _parsed(data: bytes, path: str) -> dict[str, Any]:
    if not data.strip():
        raise Unreadable(f"{path} is empty")
    try:
        values = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Unreadable(f"{path} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}") from None
    except RecursionError:
        raise Unreadable(f"{path} is nested deeper than any {NAME}") from None
    except ValueError as error:  # a number of thousands of digits
        raise Unreadable(f"{path}: this is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise Unreadable(f"{path} holds no object {{...}}: it is no {NAME}")
    if "zero_optimization" in values or "train_micro_batch_size_per_gpu" in values:
        raise Unreadable(f"{path} is a ds_config: --model wants the model's {NAME} (`dsdoctor config` judges this one)")
    return values
