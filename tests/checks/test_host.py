"""The place of training: which systems, kernels, containers and kinds of WSL are told of, and what to type there."""

import pytest
from dsdoctor_checks import host as family

from dsdoctor import healthy as h
from dsdoctor.facts import Fact, Unavailable
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

WINDOWS = h.host(
    system="windows", kernel="10.0.22631", distribution="windows", distribution_name="Windows 11", libc=None
)
WSL2 = h.host(wsl=2, kernel="6.6.87.2-microsoft-standard-WSL2")
WSL_GPUS = h.gpus(libcuda="/usr/lib/wsl/lib/libcuda.so.1", device_nodes=(), kernel_module_version=None, pci_nvidia=None)
WANTS = h.purpose(name="single-gpu", because="--purpose", guessed=False)
CI = h.purpose(name="ci-cpu", because="no GPU and CI is set")


def only(check: Check, *sections: Fact) -> Finding:
    found = verdict(check, h.healthy(*sections))
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    return finding


def status(check: Check, *sections: Fact) -> Status:
    return verdict(check, h.healthy(*sections)).status


@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check) -> None:
    found = verdict(check, h.healthy())
    assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.status, found.reason, found.findings)


@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_healthy_wsl_is_quiet_but_for_its_limit_of_pinned_memory(check: Check) -> None:
    found = verdict(check, h.healthy(WSL2, WSL_GPUS, WANTS))
    if check.code == "HOST006":
        assert (found.status, found.severity) == (Status.FAILED, Severity.INFO)
    else:
        assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.reason, found.findings)


def test_windows_is_sent_to_wsl() -> None:
    finding = only(family.platform_trains, WINDOWS)
    assert finding.cause == "windows-shell-used-instead-of-wsl"
    assert "Windows 11" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("wsl --install -d Ubuntu",)


def test_a_mac_is_a_note_not_a_fault() -> None:
    finding = only(family.platform_trains, h.host(system="darwin", kernel="23.4.0", distribution_name="macOS 14.4"))
    assert (finding.cause, finding.severity) == ("macos-mps", Severity.INFO)


@pytest.mark.parametrize(("kernel", "found"), [
    ("4.18.0-553.el8_10.x86_64", Status.FAILED), ("5.4.0-150-generic", Status.FAILED),
    ("5.5.0", Status.PASSED), ("5.15.0-1", Status.PASSED), ("6.1.0-18-amd64", Status.PASSED),
])  # fmt: skip
def test_kernels_before_5_5_are_told_of(kernel: str, found: Status) -> None:
    assert status(family.kernel_new, h.host(kernel=kernel)) is found


def test_the_kernel_number_of_gvisor_and_of_windows_says_nothing() -> None:
    assert status(family.kernel_new, h.host(kernel="4.4.0", container="gvisor")) is Status.NOT_APPLICABLE
    assert status(family.kernel_new, WINDOWS) is Status.NOT_APPLICABLE


@pytest.mark.parametrize(("container", "word"), [
    ("docker", "--gpus all"), ("podman", "nvidia.com/gpu=all"), ("kubernetes", "nvidia.com/gpu: 1"), ("singularity", "--nv"),
])  # fmt: skip
def test_a_container_without_its_gpu_is_told_how_to_get_it(container: str, word: str) -> None:
    finding = only(family.container_has_gpu, h.host(container=container), h.no_gpus(pci_nvidia=2), CI)
    assert finding.cause == "container-no-gpu"
    assert "shows 2 NVIDIA" in finding.message
    assert finding.remedy is not None
    assert word in " ".join((finding.remedy.order, *finding.remedy.commands))


def test_a_container_for_the_cpu_needs_no_gpu() -> None:
    docker = h.host(container="docker")
    assert status(family.container_has_gpu, docker, h.no_gpus(), CI) is Status.NOT_APPLICABLE
    builder = h.purpose(name="builder", because="--purpose", guessed=False)
    assert status(family.container_has_gpu, docker, h.no_gpus(pci_nvidia=8), builder) is Status.NOT_APPLICABLE
    assert status(family.container_has_gpu, docker, h.gpus(), WANTS) is Status.PASSED
    assert status(family.container_has_gpu, docker, h.no_gpus(), WANTS) is Status.FAILED


def test_a_login_node_is_noticed() -> None:
    finding = only(family.not_login_node, h.host(scheduler="slurm"), h.no_gpus())
    assert finding.remedy is not None
    assert finding.remedy.commands[0].startswith("srun")
    assert status(family.not_login_node, h.host(scheduler="slurm", inside_job=True), h.no_gpus()) is Status.PASSED
    assert status(family.not_login_node, h.host(scheduler="slurm")) is Status.PASSED


@pytest.mark.parametrize(("libcuda", "word"), [
    (None, "no libcuda.so.1"), ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
])  # fmt: skip
def test_wsl_with_another_libcuda(libcuda: str | None, word: str) -> None:
    finding = only(family.wsl_libcuda, WSL2, h.gpus(libcuda=libcuda))
    assert word in finding.message
    assert finding.remedy is not None
    assert 'export LD_LIBRARY_PATH="/usr/lib/wsl/lib:$LD_LIBRARY_PATH"' in finding.remedy.commands


def test_wsl_without_any_wish_for_a_gpu_is_left_alone() -> None:
    assert status(family.wsl_libcuda, WSL2, h.no_gpus(), CI) is Status.NOT_APPLICABLE


def test_pinned_offload_in_wsl_names_the_line_of_the_config() -> None:
    offload = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}}}
    finding = only(family.wsl_pinned, WSL2, WSL_GPUS, h.ds_config(offload))
    assert finding.severity is Severity.WARNING
    assert "ds_config.json:" in finding.message
    assert status(family.wsl_pinned, WSL2, WSL_GPUS, h.ds_config()) is Status.PASSED


def test_wsl_1_blocks_a_gpu_only_when_one_is_wanted() -> None:
    wsl1 = h.host(wsl=1, kernel="4.4.0-22621-Microsoft")
    finding = only(family.wsl_two, wsl1, h.no_gpus(), WANTS, h.environment(WSL_DISTRO_NAME="Debian"))
    assert finding.remedy is not None
    assert finding.remedy.commands == ("wsl --set-version Debian 2",)
    assert status(family.wsl_two, wsl1, h.no_gpus(), CI) is Status.NOT_APPLICABLE


@pytest.mark.parametrize(("torch", "deepspeed", "found"), [
    ("2.5.1+cu124", "0.15.4", Status.FAILED), ("2.6.0", "0.16.3", Status.FAILED), ("2.6.0", "0.16.4", Status.PASSED),
    ("2.3.1", "0.15.4", Status.PASSED), ("2.7.0", "0.15.4", Status.PASSED),
])  # fmt: skip
def test_libuv_on_windows(torch: str, deepspeed: str, found: Status) -> None:
    sections = (WINDOWS, h.torch(version=torch), h.deepspeed(version=deepspeed))
    assert status(family.windows_store, *sections) is found
    assert status(family.windows_store, *sections, h.environment(USE_LIBUV="0")) is Status.PASSED


def test_libuv_is_turned_off_in_the_words_of_the_windows_shell() -> None:
    finding = only(family.windows_store, WINDOWS, h.torch(version="2.5.1"), h.deepspeed(version="0.15.4"))
    assert finding.remedy is not None
    assert finding.remedy.commands == ('set "USE_LIBUV=0"',)


def test_an_old_deepspeed_on_arm() -> None:
    finding = only(family.arm_supported, h.host(machine="aarch64"), h.deepspeed(version="0.3.16"))
    assert "0.3.16" in finding.message
    assert status(family.arm_supported, h.host(machine="aarch64")) is Status.PASSED


def test_a_linux_machine_without_deepspeed_is_not_asked_for_it() -> None:
    missing = Unavailable(kind="failed", detail="deepspeed is not installed")
    for check in (family.windows_store, family.arm_supported):
        assert verdict(check, h.healthy(deepspeed=missing)).status is Status.NOT_APPLICABLE
    assert (
        verdict(family.arm_supported, h.healthy(h.host(machine="aarch64"), deepspeed=missing)).status is Status.UNKNOWN
    )
