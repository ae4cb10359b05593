"""`dsdoctor check`."""

import sys
from typing import Any

import click

from dsdoctor.cli.guard import guarded
from dsdoctor.cli.options import examination_options, request


@click.command("check")
@examination_options
@click.option("--fail-on", type=click.Choice(["error", "warning", "never"]), help="Exit 1 at this severity (error).")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--format", "form", type=click.Choice(["text", "json", "junit", "sarif", "github", "markdown", "html"]))
@click.option("-o", "--output", metavar="FILE", help="Write the report there instead of stdout.")
@click.option(
    "--redact/--no-redact", default=None, help="Take out names of this machine (in markdown and html they go anyway)."
)
@click.option("-v", "--verbose", count=True, help="Also evidence and passed checks.")
@click.option("-q", "--quiet", is_flag=True, help="Only the summary and the findings.")
def command(**values: Any) -> None:
    """Examine this machine: what can I run, what is wrong, what do I type."""
    sys.exit(guarded(lambda: _check(values)))


def _check(values: dict[str, Any]) -> int:
    from dsdoctor.cli.exit_codes import exit_code
    from dsdoctor.cli.notes import notes
    from dsdoctor.cli.output import render, write
    from dsdoctor.cli.progress import progress
    from dsdoctor.examination import ExaminationError, examine

    if values["as_json"] and values["form"] not in (None, "json"):
        raise ExaminationError(f"--json and --format {values['form']} contradict each other")
    form = "json" if values["as_json"] else values["form"] or "text"
    wanted = request(values)
    output = None if values["output"] == "-" else values["output"]
    with progress(form == "text" or output is not None) as observe:
        report = examine(wanted, observe)
    verbosity = -1 if values["quiet"] else values["verbose"]
    fail_on = values["fail_on"] or wanted.settings.fail_on or "error"
    document = render(report, form, verbosity, to_file=bool(output), fail_on=fail_on, private=values["redact"])
    write(document, output)
    for note in notes(report, wanted, form):
        click.echo(f"dsdoctor: {note}", err=True)
    return exit_code(report, fail_on)
