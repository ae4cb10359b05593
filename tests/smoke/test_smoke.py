"""The smoke run: what its events say, what it changes in the environment, and one real training."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from dsdoctor.events import nobody
from dsdoctor.facts import Python
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System
from dsdoctor.smoke import runner

PYTHON = Python(executable=sys.executable, chosen_because="-", version="3.11.7", prefix=sys.prefix, base_prefix="/usr")
START = b"""{"begin": "import torch"}
{"end": "import torch", "seconds": 2.5}
{"begin": "import deepspeed"}
{"end": "import deepspeed", "seconds": 3.5}
{"begin": "initialize"}
"""
REST = b"""{"end": "initialize", "seconds": 60.0}
{"accelerator": "cpu", "device": "cpu", "dtype": "fp32", "stage": 2, "world_size": 1}
{"begin": "first step"}
{"step_ms": 20.123, "loss": 1.5}
{"end": "first step", "seconds": 0.02}
{"begin": "steps"}
{"step_ms": 4.0, "loss": 1.25}
{"end": "steps", "seconds": 0.1}
{"steps": 2}
{"peak_host_bytes": 1048576}
{"done": true}
"""
RAISED = b"""{"error_type": "RuntimeError", "error": "Ninja is required"}
{"peak_host_bytes": 1048576}
"""


def test_good() -> None:
    found = runner.told(Ran(ending="exited", code=0, answer=START + REST, stdout="chatter"))
    assert (found.outcome, found.losses, found.step_ms) == ("ok", (1.5, 1.25), (20.12, 4.0))
    assert (found.accelerator, found.dtype, found.stage, found.steps) == ("cpu", "fp32", 2, 2)
    assert [p.name for p in found.phases] == ["import torch", "import deepspeed", "initialize", "first step", "steps"]
    assert (found.output_tail, found.peak_host_bytes) == (None, 1048576)


def test_raised() -> None:
    found = runner.told(Ran(ending="exited", code=1, answer=START + RAISED, stderr="Traceback"))
    assert (found.outcome, found.error_type, found.error) == ("failed", "RuntimeError", "Ninja is required")
    assert (found.last_phase, found.exit_code) == ("initialize", 1)
    assert "Traceback" in (found.output_tail or "")


@pytest.mark.parametrize(
    ("ran", "outcome"),
    [
        (Ran(ending="signalled", code=-9, signal="SIGKILL", answer=START + b'{"end": "init'), "signal"),
        (Ran(ending="timed-out", answer=START), "timed-out"),
        (Ran(ending="exited", code=0, answer=START), "exited"),
        (Ran(ending="exited", code=3, answer=START + b"[1]\n7\n\xff\n"), "exited"),
    ],
)
def test_cut_off(ran: Ran, outcome: str) -> None:
    found = runner.told(ran)
    assert (found.outcome, found.last_phase, found.losses) == (outcome, "initialize", ())
    assert found.signal == ran.signal


def test_crash_after_the_last_step_is_not_ok() -> None:
    assert runner.told(Ran(ending="signalled", code=-11, signal="SIGSEGV", answer=START + REST)).outcome == "signal"


def test_never_started() -> None:
    found = runner.told(Ran(ending="not-started", problem="Permission denied"))
    assert (found.outcome, found.last_phase) == ("not-reached", "start")


def test_environment(tmp_path: Path) -> None:
    user = {"HOME": str(tmp_path), "TORCH_EXTENSIONS_DIR": "/theirs", "RANK": "3", "LOCAL_SIZE": "8", "KEPT": "yes"}
    env = runner.environment(System(env=user), PYTHON, use_gpu=False)
    assert {n: env[n] for n in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR")} == {
        "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
    }  # fmt: skip
    assert 0 < int(env["MASTER_PORT"]) < 65536
    assert (env["DS_ACCELERATOR"], env["CUDA_VISIBLE_DEVICES"], env["KEPT"]) == ("cpu", "", "yes")
    assert "LOCAL_SIZE" not in env
    assert env["TORCH_EXTENSIONS_DIR"].startswith(str(tmp_path / ".cache/dsdoctor"))
    gpu = runner.environment(System(env=user), PYTHON, use_gpu=True)
    assert "DS_ACCELERATOR" not in gpu
    assert "CUDA_VISIBLE_DEVICES" not in gpu


@pytest.mark.parametrize("user", [{}, {"HOME": "/proc/none"}, {"XDG_CACHE_HOME": "relative"}])
def test_without_a_home_the_users_cache_is_still_not_touched(user: dict[str, str]) -> None:
    found = runner.environment(System(env={**user, "TORCH_EXTENSIONS_DIR": "/theirs"}), PYTHON, use_gpu=False)
    folder = Path(found["TORCH_EXTENSIONS_DIR"])
    assert folder.is_absolute()
    assert folder != Path("/theirs")
    folder.rmdir()


def test_lock_of_a_killed_run_is_released_and_a_young_one_is_not(tmp_path: Path) -> None:
    for name in ("old", "young"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").write_text("")
    os.utime(tmp_path / "old/lock", (1, 1))
    runner.release_locks(System(), str(tmp_path), runner.OLD_LOCK_S)
    assert [p.parent.name for p in tmp_path.glob("*/lock")] == ["young"]


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs torch and deepspeed")
def test_a_real_training() -> None:
    found = runner.run(System(), PYTHON, use_gpu=False, limit_s=400.0, observe=nobody)
    assert found.outcome == "ok", found.output_tail
    assert (found.accelerator, found.steps) == ("cpu", 8)
    assert len(found.losses) == 8
    assert found.losses[-1] < found.losses[0]
