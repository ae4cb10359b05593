"""`dsdoctor list`."""

import sys

import click

from dsdoctor.cli.guard import guarded


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--markdown", is_flag=True, help="The catalogue with causes and coverage.")
def command(as_json: bool, markdown: bool) -> None:
    """List the checks by family."""
    sys.exit(guarded(lambda: _list(as_json, markdown)))


def _list(as_json: bool, markdown: bool) -> int:
    from dsdoctor.examination import load_knowledge
    from dsdoctor.render import catalogue

    knowledge = load_knowledge()
    if markdown:
        click.echo(catalogue.render(knowledge))
    elif as_json:
        import json

        rows = [
            {"code": c.code, "family": c.family, "title": c.title, "severity": c.severity.value, "causes": c.causes}
            for c in knowledge.checks
        ]
        click.echo(json.dumps(rows, indent=1))
    else:
        for check in knowledge.checks:
            click.echo(f"{check.code:9} {check.severity.value:8} {check.title}")
    for problem in knowledge.problems:
        print(f"dsdoctor: {problem}", file=sys.stderr)
    return 0
