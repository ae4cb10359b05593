"""What `dsdoctor config` does with its files."""

from pathlib import Path
from typing import Any

import click

from dsdoctor.cli.exit_codes import exit_code
from dsdoctor.cli.output import render, write
from dsdoctor.config_examination import judge_config, mend
from dsdoctor.examination import ExaminationError
from dsdoctor.facts import RunPlan
from dsdoctor.render.plain import clean
from dsdoctor.request import Request
from dsdoctor.settings import load_settings


def judge_files(values: dict[str, Any]) -> int:
    """Judge each file; the worst exit code. Raises ExaminationError."""
    files = values["files"]
    if not files:
        raise ExaminationError("name a ds_config, or begin one with --new")
    if (values["write"] or values["lean"]) and not values["fix"]:
        raise ExaminationError(f"--{'write' if values['write'] else 'lean'} belongs to --fix")
    if values["as_json"] and (len(files) > 1 or values["fix"]):
        raise ExaminationError("--json is for one file, and not for --fix")
    return max(_one(file, values) for file in files)


def _one(file: str, values: dict[str, Any]) -> int:
    request = Request(
        config=file,
        snapshot=values["snapshot"],
        accelerate_config=values["accelerate_config"],
        training_args=values["training_args"],
        model=values["model"],
        run_plan=_plan(values),
        settings=load_settings(Path.cwd()),
    )
    report = judge_config(request, values["release"])
    if values["fix"]:
        fixed, patch = mend(report, lean=values["lean"])
        if values["write"] and patch:
            write(fixed.text, file)
        write(clean(patch), None)  # a text from a file: no escape of it reaches a screen
        click.echo(f"dsdoctor: {file}: {len(fixed.done)} mended{'' if values['write'] else ' (not written)'}", err=True)
        return 0
    write(render(report, "json" if values["as_json"] else "text", values["verbose"], to_file=False), None)
    return exit_code(report, values["fail_on"])


def _plan(values: dict[str, Any]) -> RunPlan | None:
    if values["gpus"] is None and values["framework"] is None:
        return None
    said = f"--gpus {values['gpus']}" + (f" --nodes {values['nodes']}" if values["nodes"] > 1 else "")
    return RunPlan(gpus_per_node=values["gpus"], nodes=values["nodes"], framework=values["framework"], named_by=said)
