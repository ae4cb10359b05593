"""The table of commands, and the group that loads one when it is called."""

from importlib import import_module
from typing import Any

import click

# command -> (module, one-line help): the help lives here so that `dsdoctor --help` loads no command.
COMMANDS = {
    "check": ("dsdoctor.cli.check", "Examine this machine and say what to mend."),
    "tui": ("dsdoctor.cli.tui", "The same, interactive."),
    "ops": ("dsdoctor.cli.ops", "Say which ops build and load here, and prove it with --build."),
    "smoke": ("dsdoctor.cli.smoke", "Train tiny models for real, watch them, and say what happened."),
    "triage": ("dsdoctor.cli.triage", "Name what killed a run, from its log and whatever else it left."),
    "config": ("dsdoctor.cli.config", "Judge a ds_config, mend it, or begin a new one."),
    "fit": ("dsdoctor.cli.fit", "Will this model train here, with which ZeRO stage and offload?"),
    "snapshot": ("dsdoctor.cli.snapshot", "Record this machine in a file (redacted), to be judged anywhere."),
    "explain": ("dsdoctor.cli.explain", "Say what a check or a cause is about."),
    "list": ("dsdoctor.cli.list", "List the checks."),
    "schema": ("dsdoctor.cli.schema", "Print the JSON Schema of `check --json` or `fit --json`."),
    "completion": ("dsdoctor.cli.completion", "Print the shell completion script."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module only to run it or to print that command's help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return import_module(COMMANDS[name][0]).command  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`dsdoctor --json ...` is `dsdoctor check --json ...`."""
        if args and args[0] == "--json":
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Ctrl-C is 130, and a reader that went away (`| head -1`) no failure: click's 1 would mean findings."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)
        except BrokenPipeError:
            import_module("dsdoctor.cli.terminal").forget_stdout()
            ctx.exit(0)
