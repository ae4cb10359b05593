"""The live probe on patients whose torch misbehaves, and on the real one."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from dsdoctor.facts import DsReport, Python, Snapshot, Unavailable
from dsdoctor.facts.snapshot import decode, encode
from dsdoctor.probes import patient
from dsdoctor.probes.system import System

SEGV = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
GOOD_TORCH = """
class version: cuda = None
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
__version__ = "2.6.0+cpu"
"""


def examine(folder: Path, limit_s: float = 60.0, **modules: str) -> patient.Live:
    for name, source in modules.items():
        package = folder.joinpath("fake", *name.split("__"))
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text(source)
    (folder / "work").mkdir()
    env = {**os.environ, "PYTHONPATH": str(folder / "fake")}
    person = Python(executable=sys.executable, chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr")
    return patient.probe(System(env=env, cwd=str(folder / "work")), person, limit_s)


def test_torch_raises(tmp_path: Path) -> None:
    live = examine(tmp_path, torch="raise ImportError('libcudart.so.12: cannot open shared object file \\udcff')")
    found = live.torch_live.imported
    assert (found.outcome, found.error_type, found.during) == ("error", "ImportError", "import torch")
    assert "libcudart.so.12" in (found.error or "")
    assert "fake" in (found.traceback or "")
    assert live.deepspeed_live.imported.outcome == "not-reached"
    assert isinstance(live.ds_report, Unavailable)
    assert live.ds_report.kind == "depends"
    snapshot = Snapshot(tool_version="0", torch_live=live.torch_live)
    assert decode(encode(snapshot), "it") == snapshot


def test_torch_ends_the_interpreter(tmp_path: Path) -> None:
    found = examine(tmp_path, torch="raise SystemExit('no licence')").torch_live.imported
    assert (found.outcome, found.error_type, found.error) == ("error", "SystemExit", "no licence")


def test_torch_crashes(tmp_path: Path) -> None:
    found = examine(tmp_path, torch=SEGV).torch_live.imported
    assert (found.outcome, found.signal, found.during) == ("signal", "SIGSEGV", "import torch")
    assert "Segmentation fault" in (found.traceback or "")


def test_torch_exits_at_once(tmp_path: Path) -> None:
    found = examine(tmp_path, torch="import os; os._exit(7)").torch_live.imported
    assert (found.outcome, found.exit_code, found.during) == ("exited", 7, "import torch")


def test_torch_chatters(tmp_path: Path) -> None:
    noise = "import os\nfor _ in range(50): os.write(1, b'\\xff' * 100000)\n"
    live = examine(tmp_path, torch=noise + GOOD_TORCH, torch__utils="", torch__utils__cpp_extension="CUDA_HOME = '/c'")
    assert live.torch_live.imported.outcome == "ok"
    assert (live.torch_live.version, live.torch_live.cuda_available) == ("2.6.0+cpu", False)
    assert live.torch_live.cuda_home == "/c"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_torch_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "STALL_S", 3.0)
    found = examine(tmp_path, 60.0, torch="import time; time.sleep(600)").torch_live.imported
    assert (found.outcome, found.during) == ("timed-out", "import torch")
    assert "neither computed nor read" in (found.error or "")


def test_what_came_before_a_crash_is_kept(tmp_path: Path) -> None:
    live = examine(tmp_path, torch=GOOD_TORCH, torch__utils="", torch__utils__cpp_extension=SEGV)
    assert (live.torch_live.imported.outcome, live.torch_live.version) == ("ok", "2.6.0+cpu")
    assert live.torch_live.cpp_extension is not None
    assert (live.torch_live.cpp_extension.outcome, live.torch_live.cpp_extension.signal) == ("signal", "SIGSEGV")
    assert live.deepspeed_live.imported.outcome == "not-reached"


def test_deepspeed_crashes_with_its_stack(tmp_path: Path) -> None:
    extension = "CUDA_HOME = None"
    live = examine(tmp_path, torch=GOOD_TORCH, deepspeed=SEGV, torch__utils="", torch__utils__cpp_extension=extension)
    found = live.deepspeed_live.imported
    assert (found.outcome, found.signal, found.during) == ("signal", "SIGSEGV", "import deepspeed")
    assert "Segmentation fault" in (found.traceback or "")
    assert live.torch_live.imported.outcome == "ok"


def test_starting_cuda_crashes(tmp_path: Path) -> None:
    torch = GOOD_TORCH.replace("lambda: False", f"lambda: exec({SEGV!r})")
    live = examine(tmp_path, torch=torch)
    assert live.torch_live.imported.outcome == "ok"
    assert live.torch_live.cuda_error == "starting CUDA died of SIGSEGV"
    assert live.torch_live.cuda_available is False


def test_interpreter_that_cannot_be_started(tmp_path: Path) -> None:
    person = Python(executable=str(tmp_path / "none"), chosen_because="-", version="3", prefix="/v", base_prefix="/v")
    found = patient.probe(System(), person, 10.0).torch_live.imported
    assert (found.outcome, found.error_type, found.error) == ("error", "OSError", "No such file or directory")


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs torch and deepspeed")
def test_the_real_ones(tmp_path: Path) -> None:
    env = {**os.environ, "DS_ACCELERATOR": "cpu"}
    person = Python(executable=sys.executable, chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr")
    live = patient.probe(System(env=env, cwd=str(tmp_path)), person, 300.0)
    assert (live.torch_live.imported.outcome, live.deepspeed_live.imported.outcome) == ("ok", "ok")
    assert (live.deepspeed_live.accelerator, live.deepspeed_live.accelerator_why) == ("cpu", "DS_ACCELERATOR")
    assert isinstance(live.ds_report, DsReport)
    assert live.ds_report.complete
    assert live.ds_report.deepspeed_version == live.deepspeed_live.version
    assert live.ds_report.torch_version == live.torch_live.version
