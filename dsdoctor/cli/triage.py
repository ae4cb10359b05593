"""`dsdoctor triage`."""

import sys
from typing import Any

import click

from dsdoctor.cli.guard import guarded


@click.command("triage")
@click.argument("files", nargs=-1, metavar="[FILE|FOLDER|-]...")
@click.option("--live", is_flag=True, help="Also examine this machine, when the run died here.")
@click.option("--python", metavar="PATH", help="With --live: examine this interpreter or environment folder.")
@click.option("--config", metavar="FILE", help="The run's ds_config.json.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--format", "form", type=click.Choice(["text", "json", "junit", "sarif", "github", "markdown", "html"]))
@click.option("-o", "--output", metavar="FILE", help="Write the report there instead of stdout.")
@click.option("--redact/--no-redact", default=None, help="Take out names of this machine.")
@click.option("-v", "--verbose", count=True, help="More evidence, and what could not be decided.")
def command(**values: Any) -> None:
    """Name what killed a run, from whatever it left: logs, build output, ds_report, collect_env, pip list, dmesg, configs.

    All files are read as one incident; '-' (or nothing, in a pipe) reads standard input. Exit code 1: the run fell.
    """
    sys.exit(guarded(lambda: _triage(values)))


def _triage(values: dict[str, Any]) -> int:
    from dsdoctor.cli.notes import notes
    from dsdoctor.cli.options import request
    from dsdoctor.cli.output import render_triage, write
    from dsdoctor.examination import ExaminationError, triage

    files = values["files"] or (() if sys.stdin.isatty() else ("-",))
    if not files:
        raise ExaminationError("name a file, or pipe a log in: dsdoctor triage train.log")
    if values["as_json"] and values["form"] not in (None, "json"):
        raise ExaminationError(f"--json and --format {values['form']} contradict each other")
    form = "json" if values["as_json"] else values["form"] or "text"
    wanted = request({**values, "logs": tuple(files)})
    if values["live"]:
        from dsdoctor.cli.progress import progress

        with progress(True) as observe:
            report = triage(wanted, observe)
    else:
        report = triage(wanted)
    output = None if values["output"] == "-" else values["output"]
    write(render_triage(report, form, values["verbose"], to_file=bool(output), private=values["redact"]), output)
    for note in notes(report, wanted, form):
        click.echo(f"dsdoctor: {note}", err=True)
    if report.interrupted:
        return 130
    return 1 if report.counts.errors or (report.story is not None and report.story.fell) else 0
