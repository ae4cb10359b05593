"""What is written in the form of pane 7, as a question of `dsdoctor fit` and as the command that asks the same."""

import shlex
from collections.abc import Mapping
from typing import Final, get_args

from dsdoctor.fit.config import BadConfig
from dsdoctor.fit.shapes import parameters_of
from dsdoctor.fit.training import OPTIMIZERS, Dtype, Training
from dsdoctor.fit_examination import Question
from dsdoctor.request import ExaminationError

KEPT: Final = "kept"
_MOST: Final = {"sequence": 10**7, "micro-batch": 10**6, "gpus": 1024}
_OPTIONS: Final = {"sequence": "--seq", "micro-batch": "--micro-batch", "gpus": "--gpus"}


def question(said: Mapping[str, str], origin: str) -> Question:
    """``said``: the form's fields by name, empty for the usual. Raises ExaminationError, one sentence."""
    model = said["model"].strip()
    if not model:
        raise ExaminationError("Which model? Write its size, such as 7B, or the path of its config.json.")
    size = _is_size(model)
    words = ["dsdoctor", "fit", "--params" if size else "--model", model]
    numbers = {name: _number(name, said[name]) for name in _MOST}
    for name, number in numbers.items():
        if number is not None and (name, number) != ("micro-batch", 1):
            words += [_OPTIONS[name], str(number)]
    dtype = next((kind for kind in get_args(Dtype) if kind == said["dtype"]), None)
    optimizer = next(kind for kind in OPTIMIZERS if kind == said["optimizer"])
    again = said["activations"] != KEPT
    words += ["--dtype", dtype] if dtype else []
    words += ["--optimizer", optimizer] if optimizer != OPTIMIZERS[0] else []
    words += ["--activation-checkpointing"] if again else []
    words += ["--snapshot", origin] if origin != "this machine" else []
    training = Training(
        sequence=numbers["sequence"] or 0,
        micro_batch=numbers["micro-batch"] or 1,
        optimizer=optimizer,
        checkpointing=again,
    )
    return Question(
        model=None if size else model,
        params=model if size else None,
        training=training,
        dtype=dtype,
        gpus=numbers["gpus"],
        command=shlex.join(words),
    )


def _is_size(text: str) -> bool:
    try:
        return parameters_of(text) > 0
    except BadConfig:
        return False


def _number(name: str, text: str) -> int | None:
    if not text.strip():
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= _MOST[name]:
        raise ExaminationError(f"The {name} is a number from 1 to {_MOST[name]:,}.")
    return number
