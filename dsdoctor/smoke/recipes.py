"""The recipes: tiny but real trainings, each by the module of ``patient/`` that runs it and what it needs."""

import msgspec


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """``capability`` is what it proves: `--all` runs those whose capability is not blocked."""

    name: str
    title: str  # noun phrase
    module: str  # of dsdoctor/smoke/patient
    capability: str
    stage: int | None = None
    least_ranks: int = 1
    packages: tuple[str, ...] = ()  # distributions beside torch and DeepSpeed
    swaps: bool = False  # needs a folder on a disk
    takes_config: bool = False  # runs with the user's ds_config when one is given


RECIPES = (
    Recipe(name="zero1", title="ZeRO-1: optimizer states partitioned", module="zero", capability="zero1", stage=1),
    Recipe(name="zero2", title="ZeRO-2: gradients too", module="zero", capability="zero2", stage=2),
    Recipe(name="zero3", title="ZeRO-3: parameters too", module="zero", capability="zero3", stage=3),
    Recipe(name="zero2-offload", title="ZeRO-2, optimizer on the CPU", module="zero", capability="optimizer-offload-cpu", stage=2),
    Recipe(name="zero3-offload", title="ZeRO-3, optimizer and parameters on the CPU", module="zero", capability="param-offload-cpu", stage=3),
    Recipe(name="zero3-nvme", title="ZeRO-Infinity: optimizer and parameters on a disk", module="zero", capability="nvme-offload", stage=3, swaps=True),
    Recipe(name="pipeline", title="pipeline parallelism", module="pipeline", capability="pipeline-3d", least_ranks=2),
    Recipe(name="3d", title="pipeline x data x tensor parallelism", module="pipeline", capability="pipeline-3d", least_ranks=2),
    Recipe(name="moe", title="mixture of experts, expert parallel", module="moe", capability="moe"),
    Recipe(name="accelerate", title="Hugging Face Accelerate with its DeepSpeedPlugin", module="huggingface", capability="accelerate", packages=("accelerate", "transformers"), takes_config=True),
    Recipe(name="trainer", title="Hugging Face Trainer with a random tiny model", module="huggingface", capability="hf-trainer", packages=("transformers", "accelerate"), takes_config=True),
    Recipe(name="comm", title="collectives: right sums, and their rates", module="comm", capability="several-gpus", least_ranks=2),
    Recipe(name="checkpoint", title="save, resume, consolidate: the same loss", module="checkpoint", capability="zero2", stage=2),
    Recipe(name="config", title="your own ds_config on the tiny model", module="zero", capability="zero2", takes_config=True),
)  # fmt: skip
DEFAULT = "zero2"
BY_NAME = {recipe.name: recipe for recipe in RECIPES}


def listing() -> str:
    """One line per recipe: what it is, and what it needs."""
    width = max(len(recipe.name) for recipe in RECIPES)
    return "\n".join(f"{recipe.name:{width}}  {recipe.title}{_needs(recipe)}" for recipe in RECIPES)


def _needs(recipe: Recipe) -> str:
    needs = [f"{recipe.least_ranks} ranks"] if recipe.least_ranks > 1 else []
    needs += [*recipe.packages, *(["--nvme PATH"] if recipe.swaps else [])]
    needs += ["--config FILE"] if recipe.name == "config" else []
    return f" (needs {', '.join(needs)})" if needs else ""
