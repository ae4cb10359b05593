"""`dsdoctor schema`."""

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema (2020-12) of the document that `check --json` writes."""
    import json

    from dsdoctor.render.json import schema

    click.echo(json.dumps(schema(), indent=1))
