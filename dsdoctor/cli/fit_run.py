"""What `dsdoctor fit` does with its options."""

import os
import shlex
from typing import Any, Final

import click
from msgspec import structs

from dsdoctor.cli.output import render_fit, write
from dsdoctor.fit.report import FitReport
from dsdoctor.fit.training import Training
from dsdoctor.fit_examination import Question, judge_fit
from dsdoctor.request import ExaminationError

_OF_THE_ANSWER: Final = ("output", "force", "as_json", "verbose", "framework")  # they do not change the question
_NAMES: Final = (
    "model",
    "params",
    "layers",
    "hidden",
    "vocab",
    "gpus",
    "snapshot",
    "nvme",
    "vram",
    "ram",
    "nvme_free",
    "strategy",
)
_TRAINING: Final = (
    "micro_batch",
    "optimizer",
    "checkpointing",
    "attention",
    "lora_rank",
    "accumulation",
    "nodes",
    "zero_init",
)


def answer(options: list[click.Parameter], values: dict[str, Any]) -> int:
    """Judge, show, write; the exit code. Raises ExaminationError."""
    if not values["output"] and (values["force"] or values["framework"] != "none"):
        raise ExaminationError("--force and --framework belong to --write")
    training = Training(sequence=values["sequence"] or 0, **{name: values[name] for name in _TRAINING})
    question = Question(
        training=training,
        dtype=values["dtype"],
        command=_again(options, values),
        **{name: values[name] for name in _NAMES},
    )
    report = judge_fit(question)
    if values["output"]:
        report = _write(report, values)
    if values["output"] != "-":
        write(render_fit(report, values["as_json"], values["verbose"]), None)
    unwritten = values["output"] is not None and report.written is None
    return 1 if report.outcome == "no" or unwritten else 0


def _again(options: list[click.Parameter], values: dict[str, Any]) -> str:
    """The same question as a command."""
    words = ["dsdoctor", "fit"]
    for option in options:
        value = values.get(option.name or "")
        if option.name in _OF_THE_ANSWER or value in (None, False) or value == option.default:
            continue
        words += [option.opts[0]] if value is True else [option.opts[0], str(value)]
    return shlex.join(words)


def _write(report: FitReport, values: dict[str, Any]) -> FitReport:
    """The config of the answer ('-': to stdout, alone). A file that is there stays, unless --force is given."""
    from dsdoctor.config.planned import config_text

    fit, output = report.chosen, values["output"]
    if fit is None or report.outcome == "no":
        click.echo(f"dsdoctor: {output} is not written: {_why_not(report)}", err=True)
        return report
    if output != "-" and os.path.exists(output) and not values["force"]:
        raise ExaminationError(f"{output} is there already, and is not written over without --force")
    path = report.machine.room.nvme_path or "/local_nvme"
    write(config_text(fit.plan, report.training, nvme_path=path, framework=values["framework"]), output)
    return structs.replace(report, written=output)


def _why_not(report: FitReport) -> str:
    if report.outcome != "no":
        return "whether anything fits is not known; a --strategy that is named is written"
    return f"{report.choice} does not fit" if report.named else "nothing fits"
