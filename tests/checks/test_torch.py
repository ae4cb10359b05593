"""torch: installed, importable, with a CUDA that starts; and the words in which its failures are told."""

from typing import Any

import pytest
from dsdoctor_checks import torch as family

from dsdoctor import healthy as h
from dsdoctor.facts import (
    DeepSpeed,
    Distribution,
    Environment,
    Gpu,
    Gpus,
    Host,
    Import,
    Packages,
    Purpose,
    Python,
    Torch,
    TorchLive,
)
from dsdoctor.model import Check, Status, Verdict
from dsdoctor.registry import checks_of
from dsdoctor.testing import machine, verdict

HOST = Host(system="linux", kernel="6.1", machine="x86_64", package_manager="apt", is_root=True)
PYTHON = Python(
    executable="/env/bin/python",
    chosen_because="--python",
    version="3.11.7",
    prefix="/env",
    base_prefix="/usr",
    environment="venv",
)
OK = Import(outcome="ok", seconds=2.0)
GPUS = Gpus(
    nvml="ok",
    driver_version="580.159.04",
    driver_cuda="13.0",
    devices=(Gpu(index=0, name="NVIDIA H200", compute_capability="9.0"),),
)
NO_GPU = Gpus(nvml="library-missing", pci_nvidia=0)
TORCH = Torch(version="2.13.0+cu130", cuda="13.0", path="/env/lib/torch")


def packages(**versions: str) -> Packages:
    names = {name.replace("_", "-"): version for name, version in versions.items()}
    return Packages(distributions={n: Distribution(name=n, version=v, location="/env/lib") for n, v in names.items()})


def failed(error_type: str, error: str, traceback: str | None = None) -> TorchLive:
    return TorchLive(imported=Import(outcome="error", error_type=error_type, error=error, traceback=traceback))


def only(found: Verdict) -> Any:
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    return finding


def test_an_absent_torch_is_said_once() -> None:
    bare = machine(packages(), failed("ModuleNotFoundError", "No module named 'torch'"), PYTHON, HOST, GPUS)
    finding = only(verdict(family.torch_installed, bare))
    assert finding.cause == "pip-needs-torch-first"
    assert finding.remedy.commands == ("/env/bin/python -m pip install torch",)
    assert verdict(family.torch_import, bare).status is Status.NOT_APPLICABLE


def test_an_older_driver_gets_the_torch_that_it_can_run() -> None:
    old = Gpus(nvml="ok", driver_cuda="12.7", devices=GPUS.devices)
    finding = only(verdict(family.torch_installed, machine(packages(), PYTHON, HOST, old)))
    assert finding.remedy.commands[0].endswith("/whl/cu126 torch")


@pytest.mark.parametrize(
    ("imported", "cause", "word"),
    [
        (Import(outcome="signal", signal="SIGBUS", during="import torch"), "import-crashes", "shorter"),
        (Import(outcome="signal", signal="SIGILL", during="import torch"), "import-crashes", "another kind of processor"),
        (Import(outcome="timed-out", seconds=60.0, during="import torch"), "import-hangs", "60 s"),
        (Import(outcome="exited", exit_code=7), "import-crashes", "exit code 7"),
        (Import(outcome="error", error_type="ImportError", error="libcudnn.so.9: cannot open shared object file: No such file or directory"), "runtime-lib-not-found", "libcudnn.so.9"),
        (Import(outcome="error", error_type="ImportError", error="/x/libtorch_cuda.so: undefined symbol: ncclCommRegister"), "nccl-lib-conflict", "ncclCommRegister"),
        (Import(outcome="error", error_type="ImportError", error="/x/libcublas.so.11: undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11"), "torch-cublas-lib-conflict", "cublasLt"),
        (Import(outcome="error", error_type="ImportError", error="/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found"), "glibcxx-missing", "GLIBCXX_3.4.29"),
        (Import(outcome="error", error_type="ValueError", error="something new"), "import-crashes", "something new"),
    ],
)  # fmt: skip
def test_a_failed_import_is_named_by_how_it_ended(imported: Import, cause: str, word: str) -> None:
    finding = only(verdict(family.torch_import, machine(TorchLive(imported=imported), PYTHON, HOST)))
    assert finding.cause == cause
    assert word in finding.message
    assert finding.remedy is not None


def test_an_import_that_was_not_reached_is_unknown() -> None:
    live = TorchLive(imported=Import(outcome="not-reached"))
    assert verdict(family.torch_import, machine(live, PYTHON)).status is Status.UNKNOWN


def test_the_missing_library_appears_in_the_order() -> None:
    live = failed("ImportError", "libcudnn.so.9: cannot open shared object file: No such file or directory")
    assert "libcudnn.so.9" in only(verdict(family.torch_import, machine(live, PYTHON, HOST))).remedy.order


def test_the_extension_builder_without_setuptools() -> None:
    broken = Import(outcome="error", error_type="ModuleNotFoundError", error="No module named 'setuptools.command'")
    live = TorchLive(imported=OK, cpp_extension=broken)
    finding = only(verdict(family.extension_builder, machine(live, PYTHON, HOST)))
    assert finding.cause == "distutils-missing-py312"
    healthy = TorchLive(imported=OK, cpp_extension=OK)
    assert verdict(family.extension_builder, machine(healthy, PYTHON)).status is Status.PASSED


def test_cpu_only_torch_on_a_gpu_machine() -> None:
    cpu = Torch(version="2.13.0+cpu", path="/env/lib/torch")
    finding = only(verdict(family.torch_has_cuda, machine(cpu, GPUS, PYTHON, HOST)))
    assert "2.13.0+cpu" in finding.message
    assert finding.remedy.commands == ("/env/bin/python -m pip install --force-reinstall torch",)
    assert verdict(family.torch_has_cuda, machine(cpu, NO_GPU, PYTHON)).status is Status.NOT_APPLICABLE
    builder = Purpose(name="ci-cpu", because="--purpose", guessed=False)
    assert verdict(family.torch_has_cuda, machine(cpu, GPUS, builder, PYTHON)).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination", "driver-lib-mismatch-803"),
        ("Error 804: forward compatibility was attempted on non supported HW", "cuda-compat-804"),
        ("Error 802: system not yet initialized", "fabric-manager-802"),
        ("The NVIDIA driver on your system is too old (found version 11080).", "driver-too-old"),
        ("No CUDA GPUs are available", "no-gpu-visible"),
        ("a text that nobody has seen before", "no-gpu-visible"),
    ],
)  # fmt: skip
def test_the_words_of_a_cuda_that_does_not_start(text: str, cause: str) -> None:
    live = TorchLive(imported=OK, cuda_available=False, cuda_error=text)
    finding = only(verdict(family.cuda_starts, machine(TORCH, live, GPUS, PYTHON, HOST)))
    assert finding.cause == cause
    assert text[:60] in finding.message


def test_no_gpu_at_all_is_no_failure_of_torch() -> None:
    live = TorchLive(imported=OK, cuda_available=False)
    assert verdict(family.cuda_starts, machine(TORCH, live, NO_GPU, PYTHON)).status is Status.NOT_APPLICABLE
    wanted = Purpose(name="single-gpu", because="--purpose", guessed=False)
    assert verdict(family.cuda_starts, machine(TORCH, live, NO_GPU, wanted, PYTHON)).status is Status.FAILED


def test_a_gpu_without_code_for_it_is_seen_by_the_kernel_that_ran() -> None:
    ran = Import(
        outcome="error",
        error_type="RuntimeError",
        error="CUDA error: no kernel image is available for execution on the device",
    )
    live = TorchLive(imported=OK, cuda_available=True, kernel=ran)
    assert only(verdict(family.kernel_runs, machine(live, PYTHON, HOST))).cause == "gpu-newer-than-torch-binaries"
    untried = TorchLive(imported=OK, cuda_available=True)
    assert verdict(family.kernel_runs, machine(untried, PYTHON)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("version", "deepspeed", "cause"),
    [("2.1.2", "0.7.7", "torch-six-removed"), ("2.4.1", "0.14.3", "torch-elastic-private-import"), ("2.4.1", "0.14.4", None), ("2.0.1", "0.8.2", None)],
)  # fmt: skip
def test_torch_too_new_for_an_old_deepspeed(version: str, deepspeed: str, cause: str | None) -> None:
    pair = machine(
        Torch(version=version, cuda="12.1", path="/t"), DeepSpeed(version=deepspeed, path="/d"), PYTHON, HOST
    )
    found = verdict(family.torch_not_too_new, pair)
    assert (found.findings[0].cause if found.findings else None) == cause


def test_weights_only_ends_with_deepspeed_016() -> None:
    def at(release: str) -> Status:
        return verdict(
            family.checkpoints_load, machine(TORCH, DeepSpeed(version=release, path="/d"), PYTHON, HOST)
        ).status

    assert (at("0.15.4"), at("0.16.0")) == (Status.FAILED, Status.PASSED)


def test_a_second_nccl_wheel_and_an_older_one() -> None:
    both = machine(TORCH, packages(nvidia_nccl_cu12="2.27.5", nvidia_nccl_cu13="2.29.7"), PYTHON, HOST)
    assert "nvidia-nccl-cu12" in only(verdict(family.nccl_is_torchs, both)).message
    old = machine(TORCH, packages(nvidia_nccl_cu13="2.27.5"), PYTHON, HOST)
    assert "2.29.7" in only(verdict(family.nccl_is_torchs, old)).message
    own = machine(TORCH, packages(nvidia_nccl_cu13="2.29.7"), PYTHON, HOST)
    assert verdict(family.nccl_is_torchs, own).status is Status.PASSED


def test_tritons_release_and_a_torch_that_the_table_does_not_know() -> None:
    stray = machine(TORCH, packages(triton="2.0.0"), PYTHON, HOST)
    assert "3.7.1" in only(verdict(family.triton_is_torchs, stray)).message
    newer = Torch(version="2.99.0", cuda="14.0", path="/t")
    assert verdict(family.triton_is_torchs, machine(newer, packages(triton="9.0"), PYTHON)).status is Status.UNKNOWN
    told = verdict(family.torch_known, machine(newer))
    assert told.status is Status.UNKNOWN
    assert "newer than I know" in (told.reason or "")


def test_torch_and_the_driver_count_differently() -> None:
    live = TorchLive(imported=OK, cuda_available=True, device_count=7)
    eight = Gpus(nvml="ok", devices=tuple(Gpu(index=i, name="A100") for i in range(8)))
    finding = only(verdict(family.counts_agree, machine(live, eight, Environment(), HOST)))
    assert "7" in finding.message
    assert "8" in finding.message
    chosen = Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})
    assert verdict(family.counts_agree, machine(live, eight, chosen, HOST)).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check) -> None:
    found = verdict(check, h.healthy())
    assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.status, found.reason, found.findings)
