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


CUDA_TORCH = """
import types
__version__ = "2.6.0+cu126"
version = types.SimpleNamespace(cuda="12.6")
class Tensor(float):
    def __add__(self, other): return Tensor(float(self) + float(other))
    def sum(self): return self
def ones(rows, columns, device): return Tensor(rows * columns)
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    init = staticmethod(lambda: None)
    get_device_name = staticmethod(lambda i: "NVIDIA H200")
    get_device_capability = staticmethod(lambda i: (9, 0))
    is_bf16_supported = staticmethod(lambda: True)
    get_arch_list = staticmethod(lambda: ["sm_90"])
    nccl = types.SimpleNamespace(version=lambda: (2, 27, 7))
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91002))
"""
ACCELERATOR = """
class Accelerator:
    _name = "cuda"
    def device_name(self): return "cuda"
    def communication_backend_name(self): return "nccl"
    def is_bf16_supported(self): return True
    def is_fp16_supported(self): return None
def get_accelerator(): return Accelerator()
"""
REPORT = """
import os, sys
def cli_main():
    print("-" * 50)
    print("DeepSpeed general environment info:")
    print("torch version .................... 2.6.0+cu126")
    print("deepspeed info ................... 0.16.9, unknown, unknown")
    {then}
"""


def whole(folder: Path, limit_s: float = 60.0, then: str = "pass", **modules: str) -> patient.Live:
    """A patient in order, with a GPU, except for what ``modules`` replaces; ``then`` ends its ds_report."""
    fine = {
        "torch": CUDA_TORCH, "torch__utils": "", "torch__utils__cpp_extension": "CUDA_HOME = '/usr/local/cuda'",
        "deepspeed": "__version__ = '0.16.9'", "deepspeed__accelerator": ACCELERATOR,
        "deepspeed__env_report": REPORT.replace("{then}", then),
    }  # fmt: skip
    return examine(folder, limit_s, **{**fine, **modules})


def test_patient_in_order(tmp_path: Path) -> None:
    live = whole(tmp_path)
    torch, deepspeed = live.torch_live, live.deepspeed_live
    assert (torch.cuda_available, torch.devices, torch.capabilities) == (True, ("NVIDIA H200",), ("9.0",))
    assert (torch.cudnn, torch.nccl, torch.architectures) == ("9.10.2", "2.27.7", ("sm_90",))
    assert torch.kernel is not None
    assert torch.kernel.outcome == "ok"
    assert (deepspeed.accelerator, deepspeed.communication_backend, deepspeed.bf16) == ("cuda", "nccl", True)
    assert deepspeed.fp16 is False  # the accelerator's None means no
    assert isinstance(live.ds_report, DsReport)
    assert live.ds_report.deepspeed_version == "0.16.9"


def test_cuda_that_hangs_costs_nothing_that_needs_no_driver(tmp_path: Path) -> None:
    hanging = CUDA_TORCH.replace(
        "init = staticmethod(lambda: None)", "init = staticmethod(lambda: __import__('time').sleep(600))"
    )
    live = whole(tmp_path, 5.0, torch=hanging)
    torch = live.torch_live
    assert (torch.imported.outcome, torch.version, torch.cuda_home) == ("ok", "2.6.0+cu126", "/usr/local/cuda")
    assert torch.cuda_available is False
    assert "starting CUDA gave no answer" in (torch.cuda_error or "")
    assert live.deepspeed_live.imported.outcome == "not-reached"
    assert isinstance(live.ds_report, Unavailable)
    assert "start CUDA gave no answer" in live.ds_report.detail


def test_driver_that_torch_finds_too_old(tmp_path: Path) -> None:
    old = CUDA_TORCH.replace("is_available = staticmethod(lambda: True)", """
    def is_available():
        import warnings
        warnings.warn("CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).")
        return False
""")  # fmt: skip
    live = whole(tmp_path, torch=old)
    assert "too old (found version 11040)" in (live.torch_live.cuda_error or "")
    assert (live.torch_live.cuda_available, live.torch_live.kernel) == (False, None)
    assert live.deepspeed_live.imported.outcome == "ok"


def test_gpu_without_code_for_it_does_not_hide_deepspeed(tmp_path: Path) -> None:
    broken = CUDA_TORCH + "\ndef ones(*_, **__): raise RuntimeError('CUDA error: no kernel image is available')\n"
    live = whole(tmp_path, torch=broken)
    kernel = live.torch_live.kernel
    assert kernel is not None
    assert (kernel.outcome, kernel.error) == ("error", "CUDA error: no kernel image is available")
    assert live.deepspeed_live.imported.outcome == "ok"


@pytest.mark.parametrize(
    ("then", "kind", "words"),
    [("__import__('time').sleep(600)", "timed-out", "no answer"), (SEGV.replace("; ", "\n    "), "failed", "SIGSEGV")],
)
def test_ds_report_that_never_returns(tmp_path: Path, then: str, kind: str, words: str) -> None:
    live = whole(tmp_path, 6.0, then)
    assert live.deepspeed_live.imported.outcome == "ok"
    assert isinstance(live.ds_report, Unavailable)
    assert live.ds_report.kind == kind
    assert words in live.ds_report.detail


def test_ds_report_that_raises_keeps_what_it_had_said(tmp_path: Path) -> None:
    report = whole(tmp_path, then="raise RuntimeError('Unable to find CUDA_HOME')").ds_report
    assert isinstance(report, DsReport)
    assert report.torch_version == "2.6.0+cu126"
    assert (report.fault_type, report.fault) == ("RuntimeError", "Unable to find CUDA_HOME")


def test_words_of_programs_that_ds_report_starts_are_in_it(tmp_path: Path) -> None:
    line = "deepspeed wheel compiled w. ...... torch 2.4, cuda 12.1"
    report = whole(tmp_path, then=f"sys.stdout.flush(); os.system('echo {line}')").ds_report
    assert isinstance(report, DsReport)
    assert report.wheel_torch == "2.4"


def test_folder_without_deepspeed(tmp_path: Path) -> None:
    live = whole(tmp_path, deepspeed="raise ModuleNotFoundError(\"No module named 'deepspeed'\")")
    assert live.torch_live.imported.outcome == "ok"
    assert live.deepspeed_live.imported.error_type == "ModuleNotFoundError"
    assert isinstance(live.ds_report, Unavailable)
    assert live.ds_report.kind == "depends"


@pytest.mark.parametrize(
    "source", ["import sys; sys.stdout = None", "import sys; sys.stderr.close(); sys.stdout.close()"]
)
def test_torch_that_takes_the_streams_away(tmp_path: Path, source: str) -> None:
    live = whole(tmp_path, torch=f"{source}\n{CUDA_TORCH}")
    assert (live.torch_live.imported.outcome, live.deepspeed_live.imported.outcome) == ("ok", "ok")


def test_exception_that_cannot_be_printed(tmp_path: Path) -> None:
    source = "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd"
    found = whole(tmp_path, torch=source).torch_live.imported
    assert (found.outcome, found.error_type, found.error) == ("error", "Odd", None)


def test_file_in_the_working_folder_is_imported_as_training_would(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/torch.py").write_text("raise AttributeError('not the real one')")
    system = System(cwd=str(tmp_path / "work"))
    person = Python(executable=sys.executable, chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr")
    found = patient.probe(system, person, 60.0).torch_live.imported
    assert (found.error_type, found.error) == ("AttributeError", "not the real one")
