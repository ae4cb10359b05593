"""`dsdoctor fit`."""

import sys
from typing import Any

import click

from dsdoctor.cli.fit_options import fit_options
from dsdoctor.cli.guard import guarded


@click.command("fit")
@fit_options
def command(**values: Any) -> None:
    """Will this model train here, and with which ZeRO stage and offload?

    For each strategy the bytes of a GPU, of RAM and of NVMe, against what is free. Nothing is downloaded, nothing is started.

    Exit code 0: something fits, or it cannot be known; 1: nothing fits, or not the --strategy that was named, or the config
    was not written.
    """
    sys.exit(guarded(lambda: _fit(values)))


def _fit(values: dict[str, Any]) -> int:
    from dsdoctor.cli.fit_run import answer

    return answer(command.params, values)
