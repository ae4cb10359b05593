"""Options of `dsdoctor smoke`, and what they order."""

from typing import TYPE_CHECKING, Any

import click

from dsdoctor.cli.options import EXAMINATION, F

if TYPE_CHECKING:
    from dsdoctor.settings import Settings
    from dsdoctor.smoke.order import SmokeOrder

SMOKE = (
    click.option("--all", "everything", is_flag=True, help="Every recipe that is not blocked here."),
    click.option("--list", "as_list", is_flag=True, help="List the recipes, and what each needs."),
    click.option("--gpus", "--ranks", "ranks", type=click.IntRange(1), help="Ranks: one per GPU (all that torch sees); with --cpu as few as a recipe needs."),
    click.option("--cpu", is_flag=True, help="DeepSpeed's CPU accelerator, whatever GPUs there are."),
    click.option("--steps", type=click.IntRange(1, 10_000), default=8, help="Optimizer steps (8)."),
    click.option("--dtype", type=click.Choice(["fp32", "bf16", "fp16"]), help="The best of the device by default."),
    click.option("--launcher", type=click.Choice(["none", "deepspeed", "torchrun"]), default="none", help="What starts the ranks (dsdoctor itself)."),
    click.option("--timeout", type=click.FloatRange(1), default=600.0, help="Seconds for one recipe (600); silence ends it earlier."),
    click.option("--events", metavar="FILE", help="Keep all events there, one JSON line each."),
    click.option("--html", metavar="FILE", help="Also write a page with the curves there."),
    click.option("--json", "as_json", is_flag=True, help="The whole report, the runs in facts.smoke."),
    click.option("-v", "--verbose", count=True, help="Also evidence."),
    click.option("--config", metavar="FILE", help="Train with this ds_config (config, accelerate, trainer), and judge it."),
    click.option("--nvme", metavar="PATH", help="Swap files of NVMe offload go there, and are removed."),
    *(EXAMINATION[i] for i in (0, 9)),
)  # fmt: skip


def smoke_options(function: F) -> F:
    """Add the options of `dsdoctor smoke`."""
    for option in reversed(SMOKE):
        function = option(function)
    return function


def smoke_order(values: dict[str, Any], settings: "Settings") -> "SmokeOrder":
    """What is to be trained; `check --smoke` takes the defaults."""
    from dsdoctor.smoke.order import SmokeOrder

    plain: dict[str, Any] = {
        name: values[name] for name in ("everything", "ranks", "cpu", "steps", "dtype", "launcher") if name in values
    }
    plain |= {"recipes": values["recipes"]} if values.get("recipes") else {}
    plain |= {"limit_s": values["timeout"]} if "timeout" in values else {}
    return SmokeOrder(**plain, nvme=values["nvme"] or settings.nvme)
