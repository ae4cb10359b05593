"""Hugging Face TrainingArguments from a JSON or YAML file, as HfArgumentParser reads them (transformers 5.24, hf_argparser.py).

JSON is read with the places of its keys; YAML in the form that the Accelerate reader takes (one key a line, blocks, simple values).
"""

import os

from dsdoctor.facts.training_args import TrainingArgs
from dsdoctor.readers import accelerate_config, ds_config, pasted

MOST_BYTES = 1024 * 1024


def read(path: str) -> TrainingArgs:
    """The arguments in the file ``path``; what is wrong is told in ``problem``. Never raises."""
    try:
        if os.path.isdir(path):
            return TrainingArgs(path=path, problem="it is a folder; name the file in it")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return TrainingArgs(path=path, problem=f"it cannot be read: {reason}")
    if len(data) > MOST_BYTES:
        return TrainingArgs(path=path, problem="it is larger than any file of arguments")
    return parse(data.decode("utf-8", "replace"), path)


def parse(text: str, path: str) -> TrainingArgs:
    """The arguments in ``text``: JSON when it begins with a brace, else YAML."""
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        found = ds_config.parse(text, path)
        if found.problem is None and found.strict_json is False:
            return TrainingArgs(path=path, problem="it is no plain JSON", values=found.values, places=found.places)
        return TrainingArgs(path=path, problem=found.problem, values=found.values, places=found.places)
    lines = [(number, line) for number, line in pasted.numbered(text) if line.strip()]
    if not lines:
        return TrainingArgs(path=path, problem="it is empty")
    held = accelerate_config._yaml(lines, path)
    problem = held.problem or (None if held.values else "it holds no arguments")
    return TrainingArgs(path=path, problem=problem, values=held.values, places=held.places)
