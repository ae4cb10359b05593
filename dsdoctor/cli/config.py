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
@click.option("--lean", is_flag=True, help="Print the file mended, without what does nothing; with --fix as a patch.")
@click.option("--new", is_flag=True, help="Print a lean config to start from instead.")
@click.option("--stage", type=click.IntRange(0, 3), help="With --new: the ZeRO stage (2).")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32"]), help="With --new (bf16).")
@click.option("--offload-optimizer", type=_DEVICE, help="With --new (none).")
@click.option("--offload-param", type=_DEVICE, help="With --new (none).")
@click.option("--nvme-path", metavar="FOLDER", help="With --new: where NVMe offload goes.")
@click.option("--micro-batch", type=click.IntRange(1), help="With --new: samples of a GPU at once (1).")
@click.option("--fail-on", type=click.Choice(["error", "warning", "never"]), help="Exit 1 at this severity (error).")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--format", "form", type=click.Choice(["text", "json", "junit", "sarif", "github"]))
@click.option("-o", "--output", metavar="FILE", help="Write the result there instead of stdout.")
@click.option("-v", "--verbose", count=True, help="Also evidence and passed checks.")
def command(**values: Any) -> None:
    """Is this ds_config right? Judge FILEs ('-' reads standard input), mend them, or begin a new one."""
    sys.exit(guarded(lambda: _begin(values) if values["new"] else _judge(values)))


def _begin(values: dict[str, Any]) -> int:
    from dsdoctor.cli.config_begin import begin

    return begin(values)


def _judge(values: dict[str, Any]) -> int:
    from dsdoctor.cli.config_run import judge_files

    return judge_files(values)
