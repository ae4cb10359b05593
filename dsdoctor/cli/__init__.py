"""The command line: one thin module per command, loaded when it is called."""

import gc
import os
import signal
import sys
from importlib import import_module
from typing import Any

import click

from dsdoctor import __version__
from dsdoctor.cli.group import COMMANDS, LazyGroup

__all__ = ["COMMANDS", "main", "root"]
EPILOG = "Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage, 3 the doctor failed, 130 interrupted."


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, message="dsdoctor %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """The doctor for DeepSpeed set-ups: names the cause, with proof, and the command that mends it here.

    `dsdoctor --json` is short for `dsdoctor check --json`.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """The entry point. An error of our own is one sentence and exit 3; DSDOCTOR_DEBUG=1 shows its traceback."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed, as by `>&-`: print() would write to the other one
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    gc.set_threshold(50_000)  # a short life: fewer looks for cycles save some hundredths of a second
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.excepthook = _last_words
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
    try:
        root(prog_name="dsdoctor")
    finally:
        gc.freeze()  # nor a last look at everything: the process ends


def _terminated(number: int, frame: Any) -> None:
    """As Ctrl-C: children are ended, files removed, and what is known by then is told."""
    raise KeyboardInterrupt


def _last_words(*raised: Any) -> None:
    import_module("dsdoctor.cli.guard").last_words(*raised)
