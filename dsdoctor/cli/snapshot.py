"""`dsdoctor snapshot`."""

import sys
from typing import Any

import click

from dsdoctor.cli.guard import guarded
from dsdoctor.cli.options import examination_options, request


@click.command("snapshot")
@click.argument("file")
@examination_options
def command(file: str, **values: Any) -> None:
    """Record this machine in FILE ('-' for stdout), without names, addresses and secrets.

    `dsdoctor check --snapshot FILE` gives the same verdicts anywhere.
    """
    sys.exit(guarded(lambda: _record(file, values)))


def _record(file: str, values: dict[str, Any]) -> int:
    from dsdoctor.cli.output import write
    from dsdoctor.cli.privacy import redacted
    from dsdoctor.cli.progress import progress
    from dsdoctor.examination import examine
    from dsdoctor.render.json import document

    with progress() as observe:
        report = examine(request(values), observe)
    write(document(redacted(report.facts)), file)
    if file != "-":
        print(f"recorded in {file}; judge it with `dsdoctor check --snapshot {file}`", file=sys.stderr)
    return 130 if report.interrupted else 0
