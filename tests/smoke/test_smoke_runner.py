"""The smoke runner on patients whose torch stands in for a training that goes wrong."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from dsdoctor.events import Event, nobody
from dsdoctor.facts import Python, Smoke
from dsdoctor.probes.system import System
from dsdoctor.smoke import runner

BUILDS_AND_HANGS = """
import os, time
op = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], "deepspeed_shm_comm")
os.makedirs(op)
open(os.path.join(op, "lock"), "w").close()
time.sleep(600)
"""


def patient(site: Path | None = None) -> Python:
    return Python(
        executable=sys.executable, chosen_because="-", version="3.11.7", prefix=sys.prefix, base_prefix="/usr",
        site_packages=(str(site or sysconfig.get_path("purelib")),),
    )  # fmt: skip


def train(folder: Path, torch: str, limit_s: float = 60.0) -> Smoke:
    (folder / "fake").mkdir()
    (folder / "fake" / "torch.py").write_text(torch)
    env = {**os.environ, "PYTHONPATH": str(folder / "fake"), "XDG_CACHE_HOME": str(folder / "cache")}
    (folder / "work").mkdir()
    system = System(env, cwd=str(folder / "work"))
    return runner.run(system, patient(), use_gpu=False, limit_s=limit_s, observe=nobody)


def test_torch_that_raises(tmp_path: Path) -> None:
    found = train(
        tmp_path, "print('words before')\nraise ImportError('libcudart.so.12: cannot open shared object file')"
    )
    assert (found.outcome, found.last_phase, found.exit_code) == ("failed", "import torch", 1)
    assert (found.error_type, found.error) == ("ImportError", "libcudart.so.12: cannot open shared object file")
    assert "words before" in (found.output_tail or "")
    assert "Traceback" in (found.output_tail or "")
    assert found.phases == ()


def test_the_compilers_first_error_is_kept_however_long_its_command_is(tmp_path: Path) -> None:
    """torch puts ninja's whole output into its error: commands of many kilobytes, and pages of template notes."""
    command = "[1/3] c++ " + "-I/a/folder " * 1000
    build = f"Error building extension 'op': {command}\nFAILED: op.o\n{command}\nop.h:12:3: error: expected '}}'\n"
    found = train(tmp_path, f"raise RuntimeError({build!r} + 'note: candidate template\\n' * 9000)")
    assert found.error_type == "RuntimeError"
    assert (found.error or "").startswith("Error building extension 'op'")
    assert "op.h:12:3: error: expected '}'" in (found.error or "")
    assert len(found.error or "") < 6000


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_training_that_is_killed_by_a_signal(tmp_path: Path) -> None:
    found = train(tmp_path, "import os; os.kill(os.getpid(), 4)")
    assert (found.outcome, found.signal, found.last_phase) == ("signal", "SIGILL", "import torch")
    assert "Illegal instruction" in (found.output_tail or "")


def test_training_that_ends_without_a_word(tmp_path: Path) -> None:
    found = train(tmp_path, "import os; os._exit(0)")
    assert (found.outcome, found.exit_code) == ("exited", 0)


def test_build_that_is_cut_off_leaves_no_lock_for_the_next_run(tmp_path: Path) -> None:
    found = train(tmp_path, BUILDS_AND_HANGS, limit_s=4.0)
    assert (found.outcome, found.last_phase) == ("timed-out", "import torch")
    assert [p.name for p in (tmp_path / "cache").rglob("*") if p.name in ("deepspeed_shm_comm", "lock")] == [
        "deepspeed_shm_comm"
    ]


def test_another_torch_or_deepspeed_gets_a_cache_of_its_own(tmp_path: Path) -> None:
    """ninja does not see that the torch under an op has changed, and the old op would not load."""
    folders = set()
    for torch, deepspeed in (("2.6.0+cu126", "0.16.9"), ("2.7.0", "0.16.9"), ("2.7.0", "0.17.0")):
        site = tmp_path / f"{torch}-{deepspeed}"
        for name in (f"torch-{torch}", f"deepspeed-{deepspeed}"):
            (site / f"{name}.dist-info").mkdir(parents=True)
        folders.add(runner.cache_folder(System({"XDG_CACHE_HOME": str(tmp_path / "cache")}), patient(site)))
    assert len(folders) == 3
    assert all(Path(str(folder)).is_dir() for folder in folders)


FAKE_DEEPSPEED = """
import os
from deepspeed.ops.op_builder.builder import OpBuilder

class Builder(OpBuilder):
    name = "deepspeed_shm_comm"

def initialize(**_):
    Builder().jit_load()
    raise RuntimeError("far enough")
"""
FAKE_BUILDER = """
import os, time

class OpBuilder:
    def jit_load(self, verbose=True):
        folder = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], self.name)
        os.makedirs(folder, exist_ok=True)
        if os.environ.get("HANGS"):
            time.sleep(600)
        open(os.path.join(folder, self.name + ".so"), "w").close()
"""
FAKE_TORCH = """
import types
manual_seed = lambda seed: None
cuda = types.SimpleNamespace(is_available=lambda: False)
nn = types.SimpleNamespace(Linear=lambda *_: None, ReLU=lambda: None, Sequential=lambda *_: types.SimpleNamespace(parameters=list))
"""


def builder(folder: Path) -> None:
    package = folder / "fake" / "deepspeed"
    (package / "ops" / "op_builder").mkdir(parents=True)
    (package / "__init__.py").write_text(FAKE_DEEPSPEED)
    (package / "ops" / "op_builder" / "builder.py").write_text(FAKE_BUILDER)
    (folder / "fake" / "torch.py").write_text(FAKE_TORCH)
    (folder / "work").mkdir()


def words(folder: Path, limit_s: float = 60.0, **env: str) -> tuple[list[str | None], Smoke]:
    heard: list[Event] = []
    env = {**os.environ, "PYTHONPATH": str(folder / "fake"), "XDG_CACHE_HOME": str(folder / "cache"), **env}
    system = System(env, cwd=str(folder / "work"))
    found = runner.run(system, patient(), use_gpu=False, limit_s=limit_s, observe=heard.append)
    assert {event.kind for event in heard} == {"smoke-phase"}
    return [event.detail for event in heard], found


def test_observer_hears_which_op_is_compiled_and_that_it_is_only_loaded_the_next_time(tmp_path: Path) -> None:
    builder(tmp_path)
    first, found = words(tmp_path)
    assert first[1:] == ["import torch", "import deepspeed", "initialize", "compiling deepspeed_shm_comm (first time only)", "initialize"]  # fmt: skip
    assert (found.last_phase, found.error) == ("initialize", "far enough")
    second, _ = words(tmp_path)
    assert second[-2:] == ["loading deepspeed_shm_comm", "initialize"]


def test_a_compilation_that_does_not_end_is_named(tmp_path: Path) -> None:
    builder(tmp_path)
    heard, found = words(tmp_path, 4.0, HANGS="1")
    assert heard[-1] == "compiling deepspeed_shm_comm (first time only)"
    assert (found.outcome, found.last_phase) == ("timed-out", "compile deepspeed_shm_comm")


def test_observer_hears_before_the_long_wait(tmp_path: Path) -> None:
    heard: list[Event] = []
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    nothing = patient().__class__(
        executable=str(tmp_path / "none"), chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/v"
    )
    found = runner.run(System(env), nothing, use_gpu=False, limit_s=5.0, observe=heard.append)
    assert found.outcome == "not-reached"
    assert [(event.kind, event.name) for event in heard] == [("smoke-phase", "zero2")]
