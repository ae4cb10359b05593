"""`dsdoctor list`."""

import sys

import click

from dsdoctor.cli.guard import guarded


@click.command("list")
@click.option("--causes", is_flag=True, help="The causes instead, with the checks that see them.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--markdown", is_flag=True, help="The catalogue of checks and causes.")
def command(causes: bool, as_json: bool, markdown: bool) -> None:
    """List the checks by family."""
    sys.exit(guarded(lambda: _list(causes, as_json, markdown)))


def _list(causes: bool, as_json: bool, markdown: bool) -> int:
    from dsdoctor.examination import load_knowledge
    from dsdoctor.render import catalogue

    knowledge = load_knowledge()
    if markdown:
        click.echo(catalogue.render(knowledge))
    elif as_json:
        import msgspec

        rows = catalogue.coverage(knowledge) if causes else catalogue.listing(knowledge)
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=1))
    elif causes:
        covered = catalogue.coverage(knowledge)
        width = max((len(c.cause) for c in covered), default=0)
        for c in covered:
            after = f" log:{len(c.signatures)}" if c.signatures else ""
            click.echo(f"{c.cause:{width}}  {c.layer:9} {', '.join(c.checks) or '-'}{after}")
        click.echo(catalogue.coverage_in_words(covered))
    else:
        for check in knowledge.checks:
            click.echo(f"{check.code:9} {check.severity.value:8} {check.title}")
    for problem in knowledge.problems:
        click.echo(f"dsdoctor: {problem}", err=True)
    return 0
