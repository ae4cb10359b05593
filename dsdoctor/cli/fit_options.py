"""Options of `dsdoctor fit`: the model, the training, the machine, the answer."""

import click

from dsdoctor.cli.options import F

OPTIMIZERS = ["adamw", "adamw-fused", "adamw-torch", "adamw-8bit", "lion", "adafactor", "sgd"]
STRATEGIES = [
    "ddp", "zero1", "zero2", "zero3", "zero1-cpu", "zero2-cpu", "zero3-cpu", "zero3-cpu-params", "zero3-nvme", "zero3-nvme-params",
]  # fmt: skip

FIT = (
    click.option("--model", metavar="PATH", help="The model's config.json, or the folder that holds it."),
    click.option("--params", metavar="SIZE", help="Instead: its size, such as 7B; the rest is guessed."),
    click.option("--layers", type=int, help="With --params."),
    click.option("--hidden", type=int, help="With --params: the hidden size."),
    click.option("--vocab", type=int, help="With --params: words of the vocabulary."),
    click.option("--seq", "sequence", type=click.IntRange(1, 10**7), help="Tokens of a sequence (2048, or the model's positions)."),
    click.option("--micro-batch", type=click.IntRange(1, 10**6), default=1, help="Sequences on one GPU at once (1)."),
    click.option("--accumulation", type=click.IntRange(1, 10**6), default=1, help="Micro batches for one step (1)."),
    click.option("--dtype", type=click.Choice(["bf16", "fp16", "fp32"]), help="bf16 by default, fp16 where the GPUs have none."),
    click.option("--optimizer", type=click.Choice(OPTIMIZERS), default="adamw", help="adamw by default: DeepSpeed's own."),
    click.option("--attention", type=click.Choice(["sdpa", "flash", "eager"]), default="sdpa", help="sdpa by default."),
    click.option("--activation-checkpointing", "checkpointing", is_flag=True, help="Activations are computed again in backward."),
    click.option("--zero-init", is_flag=True, help="The model is made inside deepspeed.zero.Init: at stage 3 no rank has it whole."),
    click.option("--lora-rank", type=click.IntRange(0, 65_536), default=0, help="Train LoRA adapters only."),
    click.option("--gpus", type=click.IntRange(1, 1024), help="GPUs of a node (all that are here)."),
    click.option("--nodes", type=click.IntRange(1, 100_000), default=1, help="Such nodes (1)."),
    click.option("--snapshot", metavar="FILE", help="Ask about this recorded machine."),
    click.option("--vram", metavar="SIZE", help="Ask about GPUs with so much free memory, such as 24G."),
    click.option("--ram", metavar="SIZE", help="Ask about a node with so much free RAM."),
    click.option("--nvme", metavar="FOLDER", help="A folder on the NVMe drive to offload to."),
    click.option("--nvme-free", metavar="SIZE", help="Ask about an NVMe drive with so much room."),
    click.option("--strategy", type=click.Choice(STRATEGIES), help="Ask about this one, item by item."),
    click.option("--write", "output", metavar="FILE", help="Write the ds_config of the answer there ('-': to stdout, alone)."),
    click.option("--framework", type=click.Choice(["none", "hf", "accelerate"]), default="none", help="With --write: who reads it."),
    click.option("--force", is_flag=True, help="With --write: also over a file that is there."),
    click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON (`dsdoctor schema fit`)."),
    click.option("-v", "--verbose", count=True, help="Also the items of its account; -vv: of every strategy."),
)  # fmt: skip


def fit_options(function: F) -> F:
    """Add the options of `dsdoctor fit`."""
    for option in reversed(FIT):
        function = option(function)
    return function
