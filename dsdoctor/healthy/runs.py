"""What the user asks for, and trainings that ran."""

from typing import Any

from dsdoctor.facts import DsConfig, Purpose, Smoke, SmokeAftermath, SmokePhase, SmokeRank, SmokeRun, SmokeStep
from dsdoctor.healthy.base import GIB, bent


def ds_config(values: dict[str, Any] | None = None, **changes: Any) -> DsConfig:
    """A parsed ds_config; a small good ZeRO-2 one by default. Places of keys are made up line by line."""
    given = values if values is not None else {
        "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    }  # fmt: skip
    places: dict[str, tuple[int, int]] = {}

    def walk(here: dict[str, Any], prefix: str) -> None:
        for key, value in here.items():
            places[f"{prefix}{key}"] = (len(places) + 2, 3)
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")

    walk(given, "")
    return bent(DsConfig(path="ds_config.json", values=given, places=places), changes)


def smoke_rank(rank: int = 0, world_size: int = 1, **changes: Any) -> SmokeRank:
    """A rank of a run that ended well: it holds its share of 16 384 master weights."""
    fact = SmokeRank(
        rank=rank,
        ending="ok",
        exit_code=0,
        last_phase="steps",
        device=f"cuda:{rank}",
        loss=0.2134,
        parameter_elements=16384,
        held_parameter_elements=16384,
        held_state_elements=16384 // world_size,
        state_bytes=12 * 16384 // world_size,
        peak_bytes=40 << 20,
        peak_reserved_bytes=44 << 20,
        peak_phase="first step",
        peak_host_bytes=1900 << 20,
    )
    return bent(fact, changes)


_LOSSES = (1.1, 0.9, 0.7, 0.55, 0.44, 0.35, 0.28, 0.22)

_SMOKE_PHASES = (
    ("import torch", 2.6),
    ("import deepspeed", 1.1),
    ("initialize", 3.0),
    ("first step", 0.2),
    ("steps", 0.1),
)


def smoke_run(recipe: str = "zero2", **changes: Any) -> SmokeRun:
    """A run that ended well, of a ZeRO recipe if its name says so. ``losses`` stands for ``steps``; ``world_size`` makes
    the ranks, which ``rank`` (a mapping of fields) changes one and all."""
    count = changes.get("world_size", 1)
    losses = changes.pop("losses", _LOSSES)
    stage = int(recipe[4]) if recipe.startswith("zero") else None
    own = {"held_parameter_elements": 16384 // count} if stage == 3 else {}
    own |= changes.pop("rank", {})
    fact = SmokeRun(
        recipe=recipe,
        outcome="ok",
        accelerator="cuda",
        device="NVIDIA H200",
        stage=stage,
        dtype="bf16",
        phases=tuple(SmokePhase(name=name, seconds=seconds) for name, seconds in _SMOKE_PHASES),
        steps=tuple(SmokeStep(number=i + 1, loss=loss, ms=9.0 if i else 180.0) for i, loss in enumerate(losses)),
        ranks=tuple(smoke_rank(rank, count, **own) for rank in range(count)),
        seconds=9.0,
    )
    return bent(fact, changes)


def fallen_run(recipe: str = "zero2", *, fell: int = 0, **changes: Any) -> SmokeRun:
    """A run that fell in "initialize": rank ``fell`` first, as ``rank`` (a mapping of fields) says; the others were torn down."""
    outcome, count, own = changes.pop("outcome", "failed"), changes.get("world_size", 1), changes.pop("rank", {})
    gone: dict[str, Any] = {"loss": None, "held_state_elements": None, "state_bytes": None, "last_phase": "initialize"}
    ranks = [smoke_rank(r, **gone, ending="torn-down", exit_code=None, signal="SIGTERM") for r in range(count)]
    ranks[fell] = smoke_rank(fell, **{**gone, "ending": outcome, "exit_code": None, **own})
    phases = (SmokePhase(name="import torch", seconds=2.6), SmokePhase(name="initialize", seconds=None))
    fallen = {"losses": (), "fell_first": fell, "ranks": tuple(ranks), "phases": phases, **changes}
    return smoke_run(recipe, outcome=outcome, **fallen)


def aftermath(**changes: Any) -> SmokeAftermath:
    """Of a run for which there was room enough of everything."""
    fact = SmokeAftermath(
        oom_kills=0,
        memory_limit_bytes=128 * GIB,
        least_available_bytes=110 * GIB,
        shm_total_bytes=64 * GIB,
        shm_least_free_bytes=62 * GIB,
    )
    return bent(fact, changes)


def smoke(*runs: SmokeRun, **changes: Any) -> Smoke:
    """The given runs; without any, one ZeRO-2 run that ended well, with ``changes``."""
    return Smoke(runs=runs or (smoke_run(**changes),))


def purpose(**changes: Any) -> Purpose:
    return bent(Purpose(name="single-gpu", because="one GPU is here"), changes)
