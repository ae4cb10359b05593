"""The files of frameworks that stand beside a ds_config, from disk: Accelerate's YAML and TrainingArguments."""

import os

from dsdoctor.facts import AccelerateConfig, TrainingArgs
from dsdoctor.readers import accelerate_config, training_args
from dsdoctor.readers.opened import content, reason

MOST_BYTES = 1024 * 1024


def read_accelerate(path: str) -> AccelerateConfig:
    """The Accelerate config in the file ``path``; what is wrong is told in ``problem``. Never raises."""
    text, problem = _read(path)
    if problem:
        return AccelerateConfig(path=path, problem=problem)
    found = accelerate_config.parse(text, path)
    return found or AccelerateConfig(path=path, problem="it is no Accelerate config (accelerate config writes one)")


def read_training_args(path: str) -> TrainingArgs:
    """The TrainingArguments in the file ``path``; what is wrong is told in ``problem``. Never raises."""
    text, problem = _read(path)
    return TrainingArgs(path=path, problem=problem) if problem else training_args.parse(text, path)


def _read(path: str) -> tuple[str, str | None]:
    """What a file holds, and why it could not be read."""
    try:
        if os.path.isdir(path):
            return "", "it is a folder; name the file in it"
        data = content(path, MOST_BYTES)
    except FileNotFoundError:
        return "", "there is no such file"
    except (OSError, ValueError) as error:
        return "", f"it cannot be read: {reason(error)}"
    if len(data) > MOST_BYTES:
        return "", f"it is larger than {MOST_BYTES // 2**20} MiB"
    return data.decode("utf-8", "replace"), None
