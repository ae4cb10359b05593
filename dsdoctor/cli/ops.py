"""`dsdoctor ops`."""

import sys
from typing import Any

import click

from dsdoctor.cli.guard import guarded
from dsdoctor.cli.options import ops_options


@click.command("ops")
@click.argument("names", nargs=-1)
@ops_options
def command(names: tuple[str, ...], **values: Any) -> None:
    """Which of DeepSpeed's ops build and load here; --build proves it.

    NAMES are ops such as fused_adam or cpu_adam. Without names --build takes those that the config or a first training
    run needs. Exit code 1: an op that was named or is needed here does not build; 3: no op is known.
    """
    sys.exit(guarded(lambda: _ops(names, values)))


def _ops(names: tuple[str, ...], values: dict[str, Any]) -> int:
    from dsdoctor.cli.op_clean import clean
    from dsdoctor.cli.op_run import exit_code, look
    from dsdoctor.cli.output import render, render_ops, write
    from dsdoctor.cli.progress import progress

    with progress(not values["as_json"] or sys.stderr.isatty()) as observe:
        report, chosen = look(names, values, observe)
    if values["clean"]:
        return clean(report, assume_yes=values["yes"])
    write(render(report, "json", 0, to_file=False) if values["as_json"] else render_ops(report, names), None)
    return exit_code(report, chosen)
