"""`dsdoctor completion`."""

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script: `eval "$(dsdoctor completion bash)"`."""
    from click.shell_completion import get_completion_class

    from dsdoctor.cli import root

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"no completion for {shell}")
    click.echo(kind(root, {}, "dsdoctor", "_DSDOCTOR_COMPLETE").source())
