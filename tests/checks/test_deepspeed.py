"""DeepSpeed: installed, whole, importable, on the right accelerator, and in the company of frameworks that take it."""

from typing import Any

import pytest
from dsdoctor_checks import deepspeed as family

from dsdoctor import healthy as h
from dsdoctor.facts import DeepSpeedLive, Import, Snapshot
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict


def only(check: Check, snapshot: Snapshot) -> Finding:
    found = verdict(check, snapshot)
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    return finding


def broken(error_type: str, error: str) -> DeepSpeedLive:
    return DeepSpeedLive(imported=Import(outcome="error", error_type=error_type, error=error))


@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check) -> None:
    found = verdict(check, h.healthy())
    assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.status, found.reason, found.findings)


def test_an_absent_deepspeed_is_said_once() -> None:
    gone = h.healthy(
        h.packages({"deepspeed": None}), broken("ModuleNotFoundError", "No module named 'deepspeed'")
    ).replace(deepspeed=None)
    finding = only(family.deepspeed_installed, gone)
    assert finding.remedy is not None
    assert finding.remedy.commands == ("/home/user/env/bin/python -m pip install deepspeed",)
    assert verdict(family.deepspeed_import, gone).status is Status.NOT_APPLICABLE


def test_only_the_root_of_a_broken_torch_is_told() -> None:
    torch = h.torch_live(imported=Import(outcome="signal", signal="SIGBUS"))
    sick = h.healthy(torch, broken("ImportError", "x"))
    found = verdict(family.deepspeed_import, sick)
    assert found.status is Status.NOT_APPLICABLE
    assert "TORCH002" in (found.reason or "")


@pytest.mark.parametrize(
    ("error_type", "error", "cause"),
    [  # the last lines of real ds_report tracebacks
        ("ModuleNotFoundError", "No module named 'distutils'", "distutils-missing-py312"),
        ("ModuleNotFoundError", "No module named 'torch._six'", "torch-six-removed"),
        ("AttributeError", "'FieldInfo' object has no attribute 'required'. Did you mean: 'is_required'?", "pydantic-v2-break"),
        ("ImportError", "cannot import name 'BUFSIZE' from 'numpy' (/x/numpy/__init__.py)", "numpy2-break"),
        ("RuntimeError", "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "triton-no-driver-on-cpu-host"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'df'", "import-crashes"),
        ("ValueError", "DS_ACCELERATOR must be one of ['cuda', 'cpu']. Value \"bogus\" is not supported", "ds-accelerator-invalid"),
        ("ValueError", "NPU_Accelerator requires torch_npu, which is not installed on this system.", "import-crashes"),
        ("deepspeed.ops.op_builder.builder.MissingCUDAException", "CUDA_HOME does not exist, unable to compile CUDA op(s)", "cuda-home-missing-at-import"),
        ("ModuleNotFoundError", "No module named 'deepspeed.accelerator'", "offline-install-layout"),
        ("ModuleNotFoundError", "No module named 'hjson'", "import-crashes"),
    ],
)  # fmt: skip
def test_the_last_line_of_a_traceback_names_the_cause(error_type: str, error: str, cause: str) -> None:
    finding = only(family.deepspeed_import, h.healthy(broken(error_type, error)))
    assert finding.cause == cause
    assert error[:40] in finding.message
    assert finding.remedy is not None
    assert finding.remedy.verify is not None


def test_a_missing_requirement_is_installed_by_name() -> None:
    finding = only(family.deepspeed_import, h.healthy(broken("ModuleNotFoundError", "No module named 'hjson'")))
    assert finding.remedy is not None
    assert finding.remedy.commands == ("/home/user/env/bin/python -m pip install hjson",)


def test_a_copy_without_its_folders() -> None:
    finding = only(family.layout_whole, h.healthy(h.deepspeed(has_accelerator_package=False)))
    assert "deepspeed/accelerator" in finding.message
    assert (
        verdict(family.layout_whole, h.healthy(h.deepspeed(has_accelerator_package=None, has_op_builder=None))).status
        is Status.UNKNOWN
    )


@pytest.mark.parametrize(
    ("variables", "packages", "cause", "word", "command"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, {}, "cpu-accelerator-on-gpu-host", "CUDA_VISIBLE_DEVICES", "unset CUDA_VISIBLE_DEVICES"),
        ({"DS_ACCELERATOR": "cpu"}, {}, "cpu-accelerator-on-gpu-host", "DS_ACCELERATOR", "unset DS_ACCELERATOR"),
        ({}, {"intel-extension-for-pytorch": "2.1"}, "ipex-import-forces-cpu", "intel-extension", "export DS_ACCELERATOR=cuda"),
    ],
)  # fmt: skip
def test_the_cpu_accelerator_beside_a_gpu(
    variables: dict[str, str], packages: Any, cause: str, word: str, command: str
) -> None:
    sick = h.healthy(h.deepspeed_live(accelerator="cpu"), h.environment(**variables), h.packages(packages))
    finding = only(family.accelerator_is_gpu, sick)
    assert finding.cause == cause
    assert word in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == (command,)


def test_the_cpu_accelerator_without_a_gpu_is_right() -> None:
    plain = h.healthy(h.no_gpus(), h.deepspeed_live(accelerator="cpu"))
    assert verdict(family.accelerator_is_gpu, plain).status is Status.NOT_APPLICABLE


def test_ds_accelerator_in_capitals_is_lowered() -> None:
    finding = only(family.accelerator_name, h.healthy(h.environment(DS_ACCELERATOR="CUDA")))
    assert finding.cause == "ds-accelerator-invalid"
    assert finding.remedy is not None
    assert finding.remedy.commands == ("export DS_ACCELERATOR=cuda",)
    bogus = only(family.accelerator_name, h.healthy(h.environment(DS_ACCELERATOR="bogus")))
    assert bogus.remedy is not None
    assert bogus.remedy.commands == ("unset DS_ACCELERATOR",)


def test_a_broken_release_and_one_that_is_newer_than_the_table() -> None:
    assert only(family.release_not_broken, h.healthy(h.deepspeed(version="0.6.2"))).cause == "sdist-release-broken"
    assert verdict(family.release_not_broken, h.healthy(h.deepspeed(version="0.13.3"))).status is Status.PASSED
    built = h.deepspeed(version="0.13.3", prebuilt_ops=("cpu_adam",))
    assert only(family.release_not_broken, h.healthy(built)).cause == "ds-build-parallel-race"
    newer = verdict(family.deepspeed_known, h.healthy(h.deepspeed(version="0.99.0")))
    assert (newer.status, "newer than I know" in (newer.reason or "")) == (Status.UNKNOWN, True)


def test_prebuilt_ops_of_another_torch() -> None:  # recorded: 0.16.9 built with torch 2.5, torch then updated to 2.13
    sick = h.deepspeed(version="0.16.9", built_torch="2.5", prebuilt_ops=("cpu_adam",))
    finding = only(family.prebuilt_ops_fit, h.healthy(sick, h.torch(version="2.13.0+cu130")))
    assert "2.5" in finding.message
    assert "2.13.0+cu130" in finding.message
    assert "cpu_adam" in finding.message
    fits = h.deepspeed(built_torch="2.11", built_cuda="13.0", prebuilt_ops=("fused_adam",))
    assert verdict(family.prebuilt_ops_fit, h.healthy(fits)).status is Status.PASSED
    other_cuda = h.deepspeed(built_torch="2.11", built_cuda="12.8", prebuilt_ops=("fused_adam",))
    assert "12.8" in only(family.prebuilt_ops_fit, h.healthy(other_cuda)).message


def test_a_prebuild_with_cuda_13_needs_an_arch_list() -> None:
    finding = only(family.default_archs, h.healthy(h.environment(DS_BUILD_OPS="1")))
    assert finding.remedy is not None
    assert finding.remedy.commands == ("export TORCH_CUDA_ARCH_LIST=9.0",)
    named = h.environment(DS_BUILD_OPS="1", TORCH_CUDA_ARCH_LIST="9.0")
    assert verdict(family.default_archs, h.healthy(named)).status is Status.PASSED
    cuda12 = h.healthy(h.environment(DS_BUILD_OPS="1"), h.toolkits(h.toolkit(version="12.8")))
    assert verdict(family.default_archs, cuda12).status is Status.PASSED


def test_building_every_op_without_libaio_or_without_a_gpu() -> None:
    asked = h.environment(DS_BUILD_OPS="1")
    no_aio = verdict(family.ops_can_be_built, h.healthy(asked, h.compilers(libaio_header=None)))
    assert "ds-build-ops-aborts-on-libaio" in {f.cause for f in no_aio.findings}
    blind = verdict(family.ops_can_be_built, h.healthy(asked, h.torch_live(cuda_available=False)))
    assert "conda-forge-build-oneccl" in {f.cause for f in blind.findings}


@pytest.mark.parametrize(
    ("changes", "check", "cause"),
    [
        ({"launcher_on_path": "/usr/local/bin/deepspeed"}, family.launcher_on_path, "deepspeed-not-on-path"),
        ({"launcher_interpreter": "/old/bin/python", "launcher_interpreter_exists": False}, family.launcher_shebang, "copied-env-broken-shebang"),
        ({"launcher_executable": False}, family.launcher_executable, "deepspeed-script-not-executable"),
    ],
)  # fmt: skip
def test_the_deepspeed_program(changes: dict[str, Any], check: Check, cause: str) -> None:
    finding = only(check, h.healthy(h.deepspeed(**changes)))
    assert finding.cause == cause
    assert str(next(iter(changes.values()))) in finding.message or "no execute permission" in finding.message


@pytest.mark.parametrize(
    ("check", "deepspeed", "packages", "cause"),
    [
        (family.wanted_minimum, "0.9.2", {"transformers": "4.31.0", "accelerate": None}, "hf-min-deepspeed-version"),
        (family.wanted_minimum, "0.9.2", {"transformers": "4.30.2", "accelerate": None}, None),
        (family.optimizer_train_fits, "0.15.0", {"transformers": "4.45.0", "accelerate": "0.33.0"}, "zero-optimizer-no-attr-train"),
        (family.optimizer_train_fits, "0.15.0", {"transformers": "4.45.0", "accelerate": "0.34.0"}, None),
        (family.no_sync_fits, "0.16.0", {"transformers": "4.47.1"}, "no-sync-zero23"),
        (family.no_sync_fits, "0.15.4", {"transformers": "4.47.1"}, None),
        (family.upper_bounds, "0.19.8", {"llamafactory": "0.9.4"}, "framework-upper-bound"),
        (family.upper_bounds, "0.16.9", {"llamafactory": "0.9.4"}, None),
    ],
)  # fmt: skip
def test_frameworks_at_their_bounds(
    check: Check, deepspeed: str, packages: dict[str, str | None], cause: str | None
) -> None:
    found = verdict(check, h.healthy(h.deepspeed(version=deepspeed), h.packages(packages)))
    assert (found.findings[0].cause if found.findings else None) == cause
    assert found.status is (Status.FAILED if cause else Status.PASSED)


def test_two_copies_of_deepspeed() -> None:
    found = verdict(family.one_deepspeed, h.healthy(h.deepspeed_live(version="0.14.0")))
    assert found.severity is Severity.WARNING
    assert "0.14.0" in found.findings[0].message


def test_wheel_is_fresh_unless_it_was_built_beside_torch_1() -> None:
    old = verdict(family.wheel_is_fresh, h.healthy(h.deepspeed(built_torch="1.13", built_cuda="11.7")))
    assert "torch 1.13" in old.findings[0].message
    assert verdict(family.wheel_is_fresh, h.healthy(h.deepspeed(built_torch="2.4"))).status is Status.PASSED
    assert verdict(family.wheel_is_fresh, h.healthy()).status is Status.NOT_APPLICABLE
