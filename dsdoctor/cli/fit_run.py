"""What `dsdoctor fit` does with its options."""

import os
import shlex
from typing import Any, Final

import click

from dsdoctor.cli.output import render_fit, write
from dsdoctor.fit.report import FitReport
from dsdoctor.fit.training import Training
from dsdoctor.fit_examination import Question, judge_fit
from dsdoctor.request import ExaminationError

_OF_THE_ANSWER: Final = ("output", "force", "as_json", "verbose", "framework")  # they do not change the question
_NAMES: Final = ("model", "params", "layers", "hidden", "vocab", "gpus", "snapshot", "nvme", "vram", "ram", "nvme_free", "strategy")
_TRAINING: Final = ("micro_batch", "dtype", "optimizer", "checkpointing", "attention", "lora_rank", "accumulation", "nodes")


def answer(context: click.Context, values: dict[str, Any]) -> int:
    """Judge, show, write; the exit code. Raises ExaminationError."""
    if not values["output"] and (values["force"] or values["framework"] != "none"):
        raise ExaminationError("--force and --framework belong to --write")
    training = Training(sequence=values["sequence"] or 0, **{name: values[name] for name in _TRAINING})
    question = Question(training=training, command=_again(context, values), **{name: values[name] for name in _NAMES})
    report = judge_fit(question)
    write(render_fit(report, values["as_json"], values["verbose"]), None)
    if values["output"]:
        _write(report, values)
    return 1 if report.outcome == "no" else 0


def _again(context: click.Context, values: dict[str, Any]) -> str:
    """The same question as a command."""
    words = ["dsdoctor", "fit"]
    for option in context.command.params:
        value = values.get(option.name or "")
        if option.name in _OF_THE_ANSWER or value in (None, False) or value == option.default:
            continue
        words += [option.opts[0]] if value is True else [option.opts[0], str(value)]
    return shlex.join(words)


def _write(report: FitReport, values: dict[str, Any]) -> None:
    """The config of the answer. A file that is there stays, unless --force is given."""
    from dsdoctor.fit.written import config_text

    fit, output = report.chosen, values["output"]
    if fit is None or report.outcome == "no":
        raise ExaminationError(f"{output} is not written: nothing fits", 1)
    if os.path.exists(output) and not values["force"]:
        raise ExaminationError(f"{output} is there already, and is not written over without --force")
    path = report.machine.room.nvme_path or "/local_nvme"
    write(config_text(fit.plan, report.training, nvme_path=path, framework=values["framework"]), output)
    click.echo(f"dsdoctor: {output} has the config for {fit.plan.title}", err=True)
