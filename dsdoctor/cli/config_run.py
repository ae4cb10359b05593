"""What `dsdoctor config` does with its files."""

import shlex
from pathlib import Path
from typing import Any

import click

from dsdoctor.cli.config_begin import WISHES
from dsdoctor.cli.exit_codes import exit_code
from dsdoctor.cli.notes import notes
from dsdoctor.cli.output import render_configs, write
from dsdoctor.config_examination import look
from dsdoctor.facts import RunPlan
from dsdoctor.request import ExaminationError, Request
from dsdoctor.settings import Settings, load_settings

_FACTS = ("gpus", "nodes", "framework", "accelerate_config", "training_args", "model", "snapshot", "release")
_SAID = {"accelerate_config": "--accelerate", "training_args": "--training-args", "release": "--deepspeed"}


def judge_files(values: dict[str, Any]) -> int:
    """Judge each file; the worst exit code. Raises ExaminationError."""
    _usage(values)
    settings = _settings()
    judged = [
        look(_request(file, values, settings), values["release"], again(file, values)) for file in values["files"]
    ]
    fail_on = values["fail_on"] or settings.fail_on or "error"
    if values["fix"] or values["lean"]:
        from dsdoctor.cli.config_mend import mend_files

        return mend_files(judged, values, fail_on)
    form = "json" if values["as_json"] else values["form"] or "text"
    output = None if values["output"] == "-" else values["output"]
    write(render_configs(judged, form, values["verbose"], to_file=bool(output), fail_on=fail_on), output)
    for note in dict.fromkeys(note for one in judged for note in notes(one.report, one.request, "config")):
        click.echo(f"dsdoctor: {note}", err=True)
    return max(exit_code(one.report, fail_on) for one in judged)


def again(file: str, values: dict[str, Any]) -> str:
    """The command that judges ``file`` as this one does."""
    words = ["dsdoctor", "config", file]
    for name in _FACTS:
        if values[name] is not None and (name != "nodes" or values["nodes"] > 1):
            words += [_SAID.get(name, f"--{name}"), str(values[name])]
    return shlex.join(words)


def _usage(values: dict[str, Any]) -> None:
    """Raise ExaminationError for what makes no sense together."""
    files, form = values["files"], values["form"]
    if not files:
        raise ExaminationError("name a ds_config, or begin one with --new")
    if strange := [name for name in WISHES if values[name] is not None]:
        raise ExaminationError(f"--{strange[0].replace('_', '-')} belongs to --new")
    if files.count("-") > 1:
        raise ExaminationError("standard input can be read once")
    if values["write"] and not values["fix"]:
        raise ExaminationError("--write belongs to --fix")
    if values["lean"] and not values["fix"] and len(files) > 1:
        raise ExaminationError("--lean prints one FILE; --fix --lean takes several")
    if values["as_json"] and form not in (None, "json"):
        raise ExaminationError(f"--json and --format {form} contradict each other")
    if (values["as_json"] or form) and (values["fix"] or values["lean"]):
        raise ExaminationError("--fix and --lean print a text of their own: leave --json and --format out")


def _settings() -> Settings:
    try:
        return load_settings(Path.cwd())
    except FileNotFoundError:  # the folder is gone
        return Settings()


def _request(file: str, values: dict[str, Any], settings: Settings) -> Request:
    return Request(
        config=file,
        snapshot=values["snapshot"],
        accelerate_config=values["accelerate_config"],
        training_args=values["training_args"],
        model=values["model"],
        run_plan=_plan(values),
        settings=settings,
    )


def _plan(values: dict[str, Any]) -> RunPlan | None:
    if values["gpus"] is None and values["framework"] is None:
        return None
    said = f"--gpus {values['gpus']}" + (f" --nodes {values['nodes']}" if values["nodes"] > 1 else "")
    return RunPlan(gpus_per_node=values["gpus"], nodes=values["nodes"], framework=values["framework"], named_by=said)
