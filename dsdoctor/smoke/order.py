"""What the user asked to be run, and what of it can be: jobs, or runs that are not applicable and why. Pure."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from dsdoctor.facts import DsConfig, Gpus, SmokeRun, Snapshot, TorchLive
from dsdoctor.smoke.own_config import swaps
from dsdoctor.smoke.recipes import BY_NAME, DEFAULT, RECIPES, Recipe

Launcher = Literal["none", "deepspeed", "torchrun"]
SEED = 7


class SmokeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``ranks`` None: as many as there are GPUs, on a CPU as many as the recipe needs. ``limit_s`` is for one recipe."""

    recipes: tuple[str, ...] = (DEFAULT,)
    everything: bool = False  # those that the capabilities do not call blocked
    ranks: int | None = None
    cpu: bool = False
    steps: int = 8
    dtype: str | None = None
    nvme: str | None = None  # folder for swap files
    launcher: Launcher = "none"
    limit_s: float = 600.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one recipe. ``visible`` are the NVML indices of its GPUs."""

    recipe: Recipe
    ranks: int
    use_gpu: bool
    steps: int = 8
    dtype: str | None = None
    nvme: str | None = None
    config: Mapping[str, Any] | None = None  # the user's, as it was written
    config_path: str | None = None
    best_dtype: str = "fp32"  # of this device: what "auto" becomes
    launcher: Launcher = "none"
    limit_s: float = 600.0
    visible: tuple[int, ...] = ()

    @property
    def swaps(self) -> bool:
        """True when it writes swap files into a folder of ``nvme``."""
        return self.nvme is not None and (self.recipe.swaps or (self.config is not None and swaps(self.config)))


class UnknownRecipe(ValueError):
    """No recipe has that name; the message says which is near."""


def check_names(order: SmokeOrder) -> None:
    """Raises UnknownRecipe for a name that is none."""
    for name in order.recipes:
        if name not in BY_NAME:
            near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(BY_NAME)}"
            raise UnknownRecipe(f"no recipe is called {name}; {hint}")


def jobs(
    order: SmokeOrder,
    snapshot: Snapshot,
    *,
    blocked: Mapping[str, str],
) -> list[Job | SmokeRun]:
    """What to run, in order. ``blocked`` says of capabilities why they are: only --all keeps to it. Raises UnknownRecipe."""
    config = snapshot.ds_config
    use_gpu = not order.cpu and gpus_of(snapshot) > 0
    found: list[Job | SmokeRun] = []
    for recipe in _chosen(order, config is not None):
        ranks = _ranks(order, recipe, snapshot, use_gpu)
        why = _hindrance(recipe, ranks, snapshot, use_gpu, order, config is not None)
        if why is None and order.everything and recipe.capability in blocked:
            why = f"{recipe.capability} is blocked: {blocked[recipe.capability]}"
        if why is not None:
            found.append(SmokeRun(recipe=recipe.name, outcome="not-applicable", because=why, world_size=ranks))
            continue
        found.append(
            Job(
                recipe=recipe,
                ranks=ranks,
                use_gpu=use_gpu,
                steps=order.steps,
                dtype=order.dtype,
                nvme=order.nvme or (_own_folder(config) if recipe.takes_config else None),
                config=config.values if config is not None and recipe.takes_config else None,
                config_path=config.path if config is not None and recipe.takes_config else None,
                best_dtype=_best_dtype(snapshot) if use_gpu else "fp32",
                launcher=order.launcher,
                limit_s=order.limit_s,
                visible=visible(snapshot, ranks) if use_gpu else (),
            )
        )
    return found


def gpus_of(snapshot: Snapshot) -> int:
    """How many GPUs torch sees; before torch was imported, how many NVML knows."""
    live = snapshot.torch_live
    if isinstance(live, TorchLive) and live.cuda_available is not None:
        return (live.device_count or 0) if live.cuda_available else 0
    return len(snapshot.gpus.devices) if isinstance(snapshot.gpus, Gpus) else 0


def _best_dtype(snapshot: Snapshot) -> str:
    """bf16 where every GPU has it, else fp16."""
    found = snapshot.torch_live.capabilities if snapshot.torch_live is not None else ()
    return "bf16" if found and all(float(capability) >= 8 for capability in found) else "fp16"


def _own_folder(config: DsConfig | None) -> str | None:
    """Where the user's configuration would swap."""
    sections = ("offload_optimizer", "offload_param")
    named = [config.get(f"zero_optimization.{section}.nvme_path") for section in sections] if config else []
    return next((path for path in named if isinstance(path, str) and path), None)


def visible(snapshot: Snapshot, ranks: int) -> tuple[int, ...]:
    """NVML indices of the first ``ranks`` GPUs that CUDA_VISIBLE_DEVICES leaves; empty when it names them otherwise."""
    named = snapshot.environment.get("CUDA_VISIBLE_DEVICES") if snapshot.environment else None
    if not named:
        return tuple(range(ranks))
    parts = [part.strip() for part in named.split(",")]
    return tuple(int(part) for part in parts[:ranks]) if all(part.isdigit() for part in parts) else ()


def _chosen(order: SmokeOrder, with_config: bool) -> Iterable[Recipe]:
    if order.everything:
        return [recipe for recipe in RECIPES if recipe.name != "config" or with_config]
    check_names(order)
    names = ("config",) if with_config and order.recipes == (DEFAULT,) else order.recipes
    return [BY_NAME[name] for name in dict.fromkeys(names)]


def _ranks(order: SmokeOrder, recipe: Recipe, snapshot: Snapshot, use_gpu: bool) -> int:
    if order.ranks is not None:
        return order.ranks
    return gpus_of(snapshot) if use_gpu else recipe.least_ranks


def _hindrance(
    recipe: Recipe, ranks: int, snapshot: Snapshot, use_gpu: bool, order: SmokeOrder, with_config: bool
) -> str | None:
    """Why this recipe cannot run here, or None."""
    there = gpus_of(snapshot)
    if use_gpu and ranks > there:
        return f"{ranks} ranks were asked for and torch sees {there} GPU{'s' if there > 1 else ''}: two ranks on one GPU are refused by NCCL"
    if ranks < recipe.least_ranks:
        have = "there is one GPU; --cpu tries it on the CPU" if use_gpu else f"{ranks} was asked for"
        return f"it needs {recipe.least_ranks} ranks, and {have}"
    missing = [
        name for name in recipe.packages if snapshot.packages is not None and not snapshot.packages.version(name)
    ]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    if recipe.swaps and order.nvme is None:
        return "it needs a folder on a disk: --nvme PATH"
    if recipe.swaps and snapshot.host is not None and snapshot.host.system != "linux":
        return "async_io exists on Linux only"
    if recipe.name == "config" and not with_config:
        return "it needs a ds_config: --config FILE"
    if with_config and recipe.takes_config and snapshot.ds_config and snapshot.ds_config.problem:
        return f"{snapshot.ds_config.path} cannot be read: {snapshot.ds_config.problem}"
    return None
