"""How the ranks of a job are started: commands, environment, and what a launcher says of how they ended."""

import json
import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor.facts import Python
from dsdoctor.probes.system import System
from dsdoctor.smoke.order import SEED, Job

WORKER = Path(__file__).parent / "patient" / "worker.py"
_FOREIGN = ("CROSS_RANK", "CROSS_SIZE", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK",
            "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")  # fmt: skip
# deepspeed/launcher/launch.py sigkill_handler (0.19.8): the code of the first process that failed; it kills the others.
_DEEPSPEED_CODE = re.compile(r"exits with return code = (-?\d+)")
# torch/distributed/elastic/multiprocessing/errors/__init__.py _FAILURE_FORMAT_TEMPLATE (2.13)
_TORCHRUN_CODE = re.compile(r"exitcode\s*: (-?\d+) \(pid: (\d+)\)")


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One process to start: a rank, or a launcher (``rank`` None) that starts all of them."""

    argv: tuple[str, ...]
    env: dict[str, str]
    rank: int | None = None


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run works: ``folder`` is private to it, ``swap`` is for swap files, ``cache`` for compiled ops."""

    folder: str
    port: int
    swap: str | None = None
    cache: str | None = None


def launches(
    system: System, python: Python, job: Job, places: Places, config: Mapping[str, Any] | None = None
) -> list[Launch]:
    """The processes of a job. ``config`` is the DeepSpeed configuration to be used instead of the recipe's own."""
    env = environment(system, job, places)
    script = (str(WORKER), order_text(job, places, config))
    module = {
        "deepspeed": ("deepspeed.launcher.runner", "--hostfile", os.devnull, "--num_gpus", str(job.ranks)),
        "torchrun": ("torch.distributed.run", "--nproc_per_node", str(job.ranks), "--master_addr", "127.0.0.1"),
    }.get(job.launcher)
    if module is not None:
        return [Launch(argv=(python.executable, "-m", *module, "--master_port", str(places.port), *script), env=env)]
    world = {"WORLD_SIZE": str(job.ranks), "LOCAL_WORLD_SIZE": str(job.ranks), "LOCAL_SIZE": str(job.ranks)}
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(places.port)}
    return [
        Launch(
            argv=(python.executable, *script),
            env={**env, **world, **meet, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            rank=rank,
        )
        for rank in range(job.ranks)
    ]


def order_text(job: Job, places: Places, config: Mapping[str, Any] | None) -> str:
    """What the worker is told, as its one argument."""
    return json.dumps(
        {
            "recipe": job.recipe.name, "module": job.recipe.module, "stage": job.recipe.stage, "steps": job.steps,
            "dtype": job.dtype, "seed": SEED, "folder": places.folder, "nvme": places.swap, "config": config, "cpu": not job.use_gpu,
        }
    )  # fmt: skip


def environment(system: System, job: Job, places: Places) -> dict[str, str]:
    """The user's variables without those of another launcher, and those that a run of ours needs."""
    env = {name: value for name, value in system.env.items() if name not in _FOREIGN}
    env["PYTHONUNBUFFERED"] = "1"
    env.setdefault("NCCL_DEBUG", "INFO")
    env["NCCL_DEBUG_FILE"] = os.path.join(places.folder, "nccl", "%p")
    env.setdefault("OMP_NUM_THREADS", str(max(1, cores() // job.ranks)))
    if not job.use_gpu:
        env |= {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    env.pop("TORCH_EXTENSIONS_DIR", None)
    if places.cache is not None:
        env["TORCH_EXTENSIONS_DIR"] = places.cache
    return env


def cores() -> int:
    """Processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_port() -> int:
    """A TCP port that is free on the loopback now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def codes(output: str, pids: Mapping[int, int], first: int | None) -> dict[int, int]:
    """Rank -> exit code (negative: signal) as a launcher's output tells. ``pids`` are those of the ranks; ``first`` is the
    rank that was seen to fall first, of which the deepspeed launcher gives the code."""
    ranks = {pid: rank for rank, pid in pids.items()}
    found = {ranks[int(pid)]: int(code) for code, pid in _TORCHRUN_CODE.findall(output) if int(pid) in ranks}
    told = _DEEPSPEED_CODE.search(output)
    if told and first is not None:
        found.setdefault(first, int(told.group(1)))
    return found
