"""The command line: one thin module per command, loaded when it is called."""

import sys
from importlib import import_module
from typing import Any

import click

from dsdoctor import __version__

# command -> (module, one-line help): the help lives here so that `dsdoctor --help` loads no command.
COMMANDS = {
    "check": ("dsdoctor.cli.check", "Examine this machine and say what to mend."),
    "tui": ("dsdoctor.cli.tui", "The same, interactive."),
    "snapshot": ("dsdoctor.cli.snapshot", "Record this machine in a file (redacted), to be judged anywhere."),
    "explain": ("dsdoctor.cli.explain", "Say what a check or a cause is about."),
    "list": ("dsdoctor.cli.list", "List the checks."),
    "schema": ("dsdoctor.cli.schema", "Print the JSON Schema of `check --json`."),
    "completion": ("dsdoctor.cli.completion", "Print the shell completion script."),
}
EPILOG = "Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage, 3 the doctor failed, 130 interrupted."


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
        """A reader that went away (`| head -1`) is no failure; click would make it exit 1, which means findings."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            import_module("dsdoctor.cli.terminal").forget_stdout()
            ctx.exit(0)


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="dsdoctor %(version)s")
def root() -> None:
    """The doctor for DeepSpeed set-ups: names the cause, with proof, and the command that mends it here.

    `dsdoctor --json` is short for `dsdoctor check --json`.
    """


def main() -> None:
    """The entry point. An error of our own is one sentence and exit 3; DSDOCTOR_DEBUG=1 shows its traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    root(prog_name="dsdoctor")
