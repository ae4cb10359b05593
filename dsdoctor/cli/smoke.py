"""`dsdoctor smoke`."""

import sys
from typing import Any

import click

from dsdoctor.cli.guard import guarded
from dsdoctor.cli.smoke_options import smoke_options


@click.command("smoke")
@click.argument("recipes", nargs=-1)
@smoke_options
def command(**values: Any) -> None:
    """Run tiny but real DeepSpeed trainings, and watch them.

    RECIPES are names such as zero2 or pipeline (see --list); without one it is zero2, with --config your own ds_config.
    Exit code 1: a run did not come to its end or its numbers are wrong; 3: nothing of it can be run here.
    """
    sys.exit(guarded(lambda: _smoke(values)))


def _smoke(values: dict[str, Any]) -> int:
    from dsdoctor.cli.exit_codes import exit_code
    from dsdoctor.cli.options import request
    from dsdoctor.cli.output import render, render_smoke, write
    from dsdoctor.cli.progress import progress
    from dsdoctor.cli.smoke_events import recording
    from dsdoctor.examination import examine
    from dsdoctor.smoke.recipes import listing

    if values["as_list"]:
        click.echo(listing())
        return 0
    wanted = request(values)
    wanted_live = not values["as_json"] or sys.stderr.isatty()
    with progress(wanted_live) as live, recording(values["events"], live) as observe:
        report = examine(wanted, observe)
    if values["html"]:
        from dsdoctor.cli.privacy import shown
        from dsdoctor.render import smoke_html

        write(smoke_html.render(shown(report, "html", None)), values["html"])
    write(
        render(report, "json", 0, to_file=False) if values["as_json"] else render_smoke(report, values["verbose"]), None
    )
    ran = report.facts.smoke.runs if report.facts.smoke is not None else ()
    if ran and all(run.outcome == "not-applicable" for run in ran):
        return 3  # nothing could be run: no result, and no good one
    return exit_code(report, wanted.settings.fail_on or "error")
