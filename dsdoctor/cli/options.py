"""Options that several commands share, and how they become a Request."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dsdoctor.request import Request

F = TypeVar("F", bound=Callable[..., Any])
CONTRADICTIONS = (("static", "smoke"), ("snapshot", "ds_report"), ("smoke", "snapshot"), ("smoke", "ds_report"))
PURPOSES = ("auto", "ci-cpu", "builder", "single-gpu", "multi-gpu", "multi-node", "offload-nvme")

EXAMINATION = (
    click.option("--python", metavar="PATH", help="Examine this interpreter or environment folder."),
    click.option("--static", is_flag=True, help="Read files only: import nothing, run nothing of the patient's."),
    click.option("--smoke", is_flag=True, help="Also train a tiny ZeRO-2 model."),
    click.option("--config", metavar="FILE", help="Also judge this ds_config.json."),
    click.option("--nvme", metavar="PATH", help="Judge this folder as a place for NVMe offload."),
    click.option("--hostfile", metavar="FILE", help="DeepSpeed's hostfile, for several nodes."),
    click.option("--purpose", type=click.Choice(PURPOSES), help="What the machine is for (guessed by default)."),
    click.option("--snapshot", metavar="FILE", help="Judge a recorded machine instead of this one."),
    click.option("--ds-report", metavar="FILE", help="Judge a pasted ds_report ('-' reads standard input)."),
    click.option("--limit", "limit_s", type=click.FloatRange(1), default=60.0, help="Seconds for importing (60)."),
    click.option("--only", multiple=True, metavar="CODE,FAMILY", help="Only these checks."),
    click.option("--skip", multiple=True, metavar="CODE,FAMILY", help="All but these checks."),
)

OPS = (
    *EXAMINATION[:2],
    *(option for option in EXAMINATION[3:9]),
    click.option("--build", is_flag=True, help="Really build and load the ops, with DeepSpeed's own builder."),
    click.option("--all", "everything", is_flag=True, help="With --build: every op of this DeepSpeed."),
    click.option("--jobs", type=click.IntRange(1), help="Compilers at once (as cores and memory allow)."),
    click.option("--timeout", type=click.FloatRange(1), default=900.0, help="Seconds for one op (900)."),
    click.option(
        "--cache", type=click.Choice(["private", "user"]), default="private", help="user: warm the real cache."
    ),
    click.option("--logs", metavar="FOLDER", help="Keep each op's whole output there."),
    click.option("--clean", is_flag=True, help="Show, and remove, what is proved stale in the extension cache."),
    click.option("--yes", is_flag=True, help="With --clean: do not ask."),
    click.option("--json", "as_json", is_flag=True, help="The whole report, `ops` among it."),
    click.option("--limit", "limit_s", type=click.FloatRange(1), default=60.0, help="Seconds for importing (60)."),
)


def examination_options(function: F) -> F:
    """Add the options that say what to examine."""
    for option in reversed(EXAMINATION):
        function = option(function)
    return function


def ops_options(function: F) -> F:
    """Add the options of `dsdoctor ops`."""
    for option in reversed(OPS):
        function = option(function)
    return function


def request(values: dict[str, Any]) -> "Request":
    """A Request from the shared options, over the project's settings. Raises SettingsError and ExaminationError."""
    from dsdoctor.cli.smoke_options import smoke_order
    from dsdoctor.request import ExaminationError, Request
    from dsdoctor.settings import load_settings

    for first, second in CONTRADICTIONS:
        if values.get(first) and values.get(second):
            names = [f"--{name.replace('_', '-')}" for name in (first, second)]
            raise ExaminationError(f"{names[0]} and {names[1]} contradict each other")
    try:
        start = Path.cwd()
    except OSError:
        start = Path("/")
    settings = load_settings(start)
    lists = {
        name: tuple(p.strip() for v in values.get(name, ()) for p in v.split(",") if p.strip())
        for name in ("only", "skip")
    }
    smoke = smoke_order(values, settings) if values.get("smoke") or "recipes" in values else None
    return Request(
        python=values["python"] or settings.python,
        static=values.get("static", False),
        smoke=smoke,
        only=lists["only"],
        skip=lists["skip"],
        config=values["config"],
        nvme=values.get("nvme"),
        logs=values.get("logs", ()),
        live=values.get("live", False),
        hostfile=values.get("hostfile"),
        purpose=None if values.get("purpose") == "auto" else values.get("purpose"),
        snapshot=values.get("snapshot"),
        ds_report=values.get("ds_report"),
        limit_s=values.get("limit_s", 60.0),
        settings=settings,
    )
