"""`dsdoctor tui`."""

import sys
from typing import Any

import click

from dsdoctor.cli.guard import guarded
from dsdoctor.cli.options import examination_options, request


@click.command("tui")
@examination_options
def command(**values: Any) -> None:
    """Examine this machine, or a --snapshot, interactively."""
    sys.exit(guarded(lambda: _open(values)))


def _open(values: dict[str, Any]) -> int:
    wanted = request(values)
    from dsdoctor.tui.app import run_app

    return run_app(wanted)
