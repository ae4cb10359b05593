"""Hugging Face TrainingArguments from a JSON or YAML file, as HfArgumentParser reads them (transformers 5.24, hf_argparser.py).

JSON is read with the places of its keys; YAML in the form that the Accelerate reader takes (one key a line, blocks, simple values).
"""

from dsdoctor.facts.training_args import TrainingArgs
from dsdoctor.readers import accelerate_config, ds_config, pasted


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
