"""`dsdoctor config`."""

import sys
from typing import Any

import click

from dsdoctor.cli.guard import guarded

_DEVICE = click.Choice(["none", "cpu", "nvme"])


@click.command("config")
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option("--gpus", type=click.IntRange(1), help="GPUs per node of the run.")
@click.option("--nodes", type=click.IntRange(1), default=1, help="Nodes of the run (1).")
@click.option(
    "--framework", type=click.Choice(["none", "hf", "accelerate", "lightning"]), help="What starts DeepSpeed."
)
@click.option("--accelerate", "accelerate_config", metavar="YAML", help="Accelerate's config beside it.")
@click.option("--training-args", metavar="FILE", help="Hugging Face TrainingArguments beside it (JSON or YAML).")
@click.option("--model", metavar="DIR|FILE", help="The model's config.json: what auto becomes, heads, experts.")
@click.option("--snapshot", metavar="FILE", help="Judge it against this recorded machine.")
@click.option("--deepspeed", "release", metavar="VERSION", help="The DeepSpeed that will read it.")
@click.option("--fix", is_flag=True, help="Print what can safely be mended, as a patch.")
@click.option("--write", is_flag=True, help="With --fix: mend the file.")
@click.option("--lean", is_flag=True, help="With --fix: also leave out what has no effect or says the default.")
@click.option("--new", is_flag=True, help="Print a lean config to start from instead.")
@click.option("--stage", type=click.IntRange(0, 3), default=2, help="With --new: the ZeRO stage (2).")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32"]), default="bf16", help="With --new.")
@click.option("--offload-optimizer", type=_DEVICE, default="none", help="With --new.")
@click.option("--offload-param", type=_DEVICE, default="none", help="With --new.")
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "never"]), default="error", help="Exit 1 at this severity."
)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON (one FILE).")
@click.option("-v", "--verbose", count=True, help="Also evidence and passed checks.")
def command(**values: Any) -> None:
    """Is this ds_config right? Judge FILEs, mend them, or begin a new one."""
    sys.exit(guarded(lambda: _new(values) if values["new"] else _judge(values)))


def _new(values: dict[str, Any]) -> int:
    from dsdoctor.cli.output import write
    from dsdoctor.config_new import Wish, problem, text
    from dsdoctor.examination import ExaminationError

    names = ("stage", "precision", "offload_optimizer", "offload_param")
    wish = Wish(framework=values["framework"] or "none", **{name: values[name] for name in names})
    if why := problem(wish):
        raise ExaminationError(why)
    write(text(wish), None)
    return 0


def _judge(values: dict[str, Any]) -> int:
    from dsdoctor.cli.config_run import judge_files

    return judge_files(values)
