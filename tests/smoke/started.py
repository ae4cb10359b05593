"""Starts a recipe of the patient for real, on DeepSpeed's CPU accelerator, and gives what each rank told."""

import json
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor.facts import Python
from dsdoctor.probes.system import System
from dsdoctor.smoke import folder as smoke_folder
from dsdoctor.smoke import launch
from dsdoctor.smoke.recipes import BY_NAME

WORKER = Path(launch.__file__).parent / "patient/worker.py"
LIMIT_S = 400.0  # a first run compiles an op


class Told(msgspec.Struct, frozen=True):
    """What one rank told, and how it ended."""

    events: list[dict[str, Any]]
    code: int
    output: str

    def of(self, what: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["what"] == what]

    @property
    def losses(self) -> list[float]:
        return [event["loss"] for event in self.of("step")]

    @property
    def phases(self) -> list[str]:
        return [event["name"] for event in self.of("end")]

    @property
    def proofs(self) -> dict[str, dict[str, Any]]:
        return {event["name"]: event for event in self.of("proof")}

    @property
    def facts(self) -> dict[str, Any]:
        return {key: value for event in self.of("rank") for key, value in event.items()}

    @property
    def ended_well(self) -> bool:
        return self.code == 0 and self.events[-1]["what"] == "done"


def start(recipe: str, ranks: int, folder: Path, *, first: str = "", **order: Any) -> list[Told]:
    """``first``: Python that each rank runs before the worker. ``order``: what is not as usual in it."""
    for name in ("events", "stacks"):
        (folder / name).mkdir()
    given = BY_NAME[recipe]
    usual = {"dtype": "fp32", "seed": 7, "steps": 4, "stage": given.stage, "nvme": None, "config": None, "cpu": True}
    text = json.dumps({"recipe": recipe, "module": given.module, "folder": str(folder), **usual, **order})
    program = f"{first}\nimport runpy\nrunpy.run_path({str(WORKER)!r}, run_name='__main__')"
    env, started = environment(ranks), []
    for rank in range(ranks):
        with (folder / f"output{rank}").open("wb") as out:
            mine = {**env, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            started.append(
                subprocess.Popen([sys.executable, "-c", program, text], env=mine, stdout=out, stderr=out, cwd=folder)
            )
    try:
        codes = [process.wait(LIMIT_S) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [told(folder, rank, code) for rank, code in enumerate(codes)]


def told(folder: Path, rank: int, code: int) -> Told:
    lines = (folder / f"events/rank{rank}").read_text().splitlines()
    return Told(
        [json.loads(line) for line in lines], code, (folder / f"output{rank}").read_text(errors="replace")[-3000:]
    )


def environment(ranks: int) -> Mapping[str, str]:
    """As the runner makes it, with its cache of compiled ops; for several ranks."""
    python = Python(
        executable=sys.executable, chosen_because="-", version=platform.python_version(), prefix=sys.prefix,
        base_prefix=sys.base_prefix, site_packages=(sysconfig.get_path("purelib"),),
    )  # fmt: skip
    cache = smoke_folder.cache_folder(System(), python)
    world = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "LOCAL_SIZE": str(ranks)}
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(launch.free_port())}
    here = {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **world, **address, **here, "TORCH_EXTENSIONS_DIR": cache or ""}
