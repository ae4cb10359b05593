"""A model's config.json, as Hugging Face writes it: the file, or the folder that holds it."""

import json
import os
from typing import Any

from dsdoctor.readers.opened import of_file, reason

MOST_BYTES = 8 * 2**20  # the largest known one, with its tables of labels, has less than one
NAME = "config.json"


class Unreadable(ValueError):
    """No config.json can be had at ``path``; ``why`` is one sentence without the file's name."""

    def __init__(self, path: str, why: str, *, missing: bool = False) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why, self.missing = path, why, missing


def read(name: str) -> tuple[dict[str, Any], str]:
    """What the config.json says, and which file it was. Raises Unreadable."""
    path = os.path.join(name, NAME) if os.path.isdir(name) else name
    if path != name and not os.path.exists(path):
        raise Unreadable(name, f"it holds no {NAME}: name the folder of a model, or its {NAME}", missing=True)
    try:
        data = of_file(path, MOST_BYTES)
    except FileNotFoundError:
        raise Unreadable(path, f"there is no such file{_hub(name)}", missing=True) from None
    except (OSError, ValueError) as error:
        raise Unreadable(path, f"it cannot be read: {reason(error)}") from None
    if len(data) > MOST_BYTES:
        raise Unreadable(path, f"it is larger than {MOST_BYTES // 2**20} MiB: a model's {NAME} has a few kilobytes")
    return _parsed(data, path), path


def _hub(name: str) -> str:
    """A name like org/model is one of the Hub; nothing is fetched from there."""
    parts = name.split("/")
    named = len(parts) == 2 and all(parts) and parts[0] not in (".", "..", "~") and not name.endswith(".json")
    return f" (nothing is downloaded: save the {NAME} of {name} and name that file)" if named else ""


def _parsed(data: bytes, path: str) -> dict[str, Any]:
    if not data.strip():
        raise Unreadable(path, "it is empty")
    try:
        values = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Unreadable(path, "it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"{path}:{error.lineno}:{error.colno}", f"this is not JSON: {error.msg}") from None
    except RecursionError:
        raise Unreadable(path, f"it is nested deeper than any {NAME}") from None
    except ValueError as error:  # a number of thousands of digits
        raise Unreadable(path, f"this is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise Unreadable(path, f"it holds no object {{...}}: it is no {NAME}")
    if "zero_optimization" in values or "train_micro_batch_size_per_gpu" in values:
        raise Unreadable(path, f"this is a ds_config; the model's {NAME} is wanted (`dsdoctor config` judges this one)")
    return values
