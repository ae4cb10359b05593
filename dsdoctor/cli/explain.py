"""`dsdoctor explain`."""

import sys

import click

from dsdoctor.cli.guard import guarded, stop


@click.command("explain")
@click.argument("name")
def command(name: str) -> None:
    """Say what a check (CODE) or a cause (slug) is about, why it matters and what mends it."""
    sys.exit(guarded(lambda: _explain(name)))


def _explain(name: str) -> int:
    from dsdoctor.cli.terminal import columns
    from dsdoctor.examination import load_knowledge
    from dsdoctor.render.explanation import Unknown, explain

    try:
        text = explain(load_knowledge(), name, min(columns(), 88))
    except Unknown as error:
        stop(str(error), 2)
    click.echo(text)
    return 0
