"""Recipes run for real: every rank a process of the interpreter that runs the tests, on DeepSpeed's CPU accelerator."""

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.events import nobody
from dsdoctor.facts import Python, SmokeRun
from dsdoctor.probes.system import System
from dsdoctor.smoke import runner
from dsdoctor.smoke.order import Job
from dsdoctor.smoke.recipes import BY_NAME

real = pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs torch and deepspeed")


def run(recipe: str, ranks: int, steps: int = 4, shadow: Path | None = None, **rest: Any) -> SmokeRun:
    """The run; ops are compiled once, into the cache that dsdoctor keeps. ``shadow`` is put before all else on sys.path."""
    version = sys.version.split()[0]
    patient = Python(
        executable=sys.executable, chosen_because="-", version=version, prefix=sys.prefix, base_prefix=sys.base_prefix,
        site_packages=(sysconfig.get_path("purelib"),),
    )  # fmt: skip
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}  # no recipe compiles, and it loads slowly
    if shadow is not None:
        env["PYTHONPATH"] = str(shadow)
    job = Job(recipe=BY_NAME[recipe], ranks=ranks, use_gpu=False, steps=steps, **rest)
    return runner.run(System(env), patient, job, nobody)


def train(recipe: str, ranks: int, steps: int = 4, shadow: Path | None = None, **rest: Any) -> SmokeRun:
    """The same, of a run that must come to its end."""
    found = run(recipe, ranks, steps, shadow, **rest)
    assert found.outcome in ("ok", "not-applicable"), (found.because, [r.error for r in found.ranks], found.output_tail)
    return found


def proven(run: SmokeRun) -> dict[str, bool]:
    return {proof.name: proof.ok for proof in run.proofs}


def damage(folder: Path, collective: str, change: str) -> Path:
    """A sitecustomize that lets rank 1 do ``change`` to the first tensor of each call of a torch.distributed function."""
    (folder / "sitecustomize.py").write_text(
        "import os\n"
        "if os.environ.get('RANK') == '1':\n"
        "    import torch\n"
        "    import torch.distributed as d\n"
        f"    sound = d.{collective}\n"
        "    def damaged(*args, **kwargs):\n"
        "        tensor = [*args, *kwargs.values()][0]\n"
        "        done = sound(*args, **kwargs)\n"
        f"        {change}\n"
        "        return done\n"
        f"    d.{collective} = damaged\n"
    )
    return folder
