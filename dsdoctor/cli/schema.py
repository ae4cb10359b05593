"""`dsdoctor schema`."""

import click


@click.command("schema")
@click.argument("document", type=click.Choice(["check", "fit"]), default="check")
def command(document: str) -> None:
    """Print the JSON Schema (2020-12) of the document that `check --json` writes, or that of `fit --json`."""
    import json

    from dsdoctor.render.json import schema, schema_of

    if document == "fit":
        from dsdoctor.fit.report import FIT_SCHEMA_VERSION, FitReport

        made = schema_of(FitReport, "fit", FIT_SCHEMA_VERSION)
    else:
        made = schema()
    click.echo(json.dumps(made, indent=1))
