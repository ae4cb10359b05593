"""GPUs and their driver: silent, mismatched, too old, lost, broken, busy, hidden, or without code in torch."""

from typing import Any

import pytest
from dsdoctor_checks import gpu as family

from dsdoctor import healthy as h
from dsdoctor.facts import Fact, GpuLink, GpuProcess, Gpus, Unavailable
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

GIB = h.GIB
WANTS = h.purpose(name="single-gpu", because="--purpose", guessed=False)
CI = h.purpose(name="ci-cpu", because="no GPU was found")
NO_CUDA = h.torch_live(0, cuda_available=False, capabilities=(), devices=(), architectures=(), kernel=None)
NOT_LOADED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


def only(check: Check, *sections: Fact) -> Finding:
    found = verdict(check, h.healthy(*sections))
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    return finding


def status(check: Check, *sections: Fact, **missing: Unavailable) -> Status:
    return verdict(check, h.healthy(*sections, **missing)).status


def one(name: str, capability: str, **changes: Any) -> Gpus:
    return h.gpus(devices=(h.gpu(name=name, compute_capability=capability),), **changes)


def silent(state: str, **changes: Any) -> Gpus:
    return h.gpus(nvml=state, driver_version=None, driver_cuda=None, devices=(), **changes)


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check, count: int) -> None:
    found = verdict(check, h.healthy(h.gpus(count), h.torch_live(count)))
    assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.status, found.reason, found.findings)


@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_machine_for_the_cpu_has_nothing_to_judge(check: Check) -> None:
    assert status(check, h.no_gpus(), CI, NO_CUDA) is Status.NOT_APPLICABLE


@pytest.mark.parametrize("state", ["library-missing", "driver-not-loaded", "no-permission", "error", "no-devices"])
def test_a_silent_driver_is_one_finding_not_many(state: str) -> None:
    snapshot = h.healthy(silent(state, kernel_module_version=None), WANTS, NO_CUDA)
    failed = [c.code for c in checks_of(family) if verdict(c, snapshot).status is not Status.NOT_APPLICABLE]
    assert failed == ["GPU001"]


def test_a_kernel_module_that_is_not_loaded() -> None:
    gpus = h.no_gpus(nvml="driver-not-loaded", nvml_detail=NOT_LOADED, read_from="nvidia-smi")
    finding = only(family.nvml_answers, gpus, WANTS)
    assert finding.cause == "nvml-unavailable"
    assert NOT_LOADED in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands[0] == "sudo modprobe nvidia"
    assert status(family.nvml_answers, gpus, CI) is Status.NOT_APPLICABLE


def test_a_missing_driver_names_the_gpu_on_the_bus_and_the_distributions_command() -> None:
    finding = only(family.nvml_answers, h.no_gpus(pci_nvidia=2), CI)
    assert "shows 2 NVIDIA GPU(s)" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("sudo ubuntu-drivers install",)


def test_a_machine_without_any_gpu_that_should_have_one() -> None:
    finding = only(family.nvml_answers, h.no_gpus(), WANTS)
    assert finding.cause == "no-gpu-visible"
    assert "single-gpu (--purpose)" in finding.message


def test_causes_told_elsewhere_are_not_told_twice() -> None:
    docker = h.host(container="docker")
    assert status(family.nvml_answers, h.no_gpus(pci_nvidia=1), docker, WANTS) is Status.NOT_APPLICABLE
    assert status(family.nvml_answers, silent("version-mismatch"), WANTS) is Status.NOT_APPLICABLE
    assert status(family.nvml_answers, h.no_gpus(), h.host(scheduler="slurm"), WANTS) is Status.UNKNOWN


def test_libraries_and_module_of_two_drivers() -> None:
    gpus = silent("version-mismatch", nvml_detail="Driver/library version mismatch", kernel_module_version="550.54.14")
    finding = only(family.driver_whole, gpus)
    assert "550.54.14" in finding.message
    finding = only(family.driver_whole, h.gpus(kernel_module_version="550.54.14"))
    assert "580.159.04" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("sudo reboot",)


def test_a_driver_too_old_for_torch() -> None:
    gpus = h.gpus(driver_version="535.54.03", driver_cuda="12.2", kernel_module_version="535.54.03")
    finding = only(family.driver_runs_torch, gpus, NO_CUDA)
    for word in ("535.54.03", "12.2", "2.11.0+cu130", "580.65.06", "NVIDIA's release notes"):
        assert word in finding.message
    assert finding.remedy is not None
    assert "/cu121" in finding.remedy.commands[0]


def test_a_newer_minor_or_forward_compatibility_is_no_fault() -> None:
    newer_minor = h.torch(version="2.9.1+cu128", cuda="12.8")
    gpus = h.gpus(driver_version="535.54.03", driver_cuda="12.2")
    assert status(family.driver_runs_torch, gpus, newer_minor, NO_CUDA) is Status.PASSED
    assert status(family.driver_runs_torch, gpus, h.torch(), h.torch_live()) is Status.PASSED


def test_without_nvml_the_driver_is_judged_by_its_number() -> None:
    by_number: dict[str, Any] = {"driver_cuda": None, "read_from": "nvidia-smi"}
    finding = only(family.driver_runs_torch, h.gpus(driver_version="575.51.03", **by_number), NO_CUDA)
    assert "575.51.03" in finding.message
    assert status(family.driver_runs_torch, h.gpus(driver_version="580.65.06", **by_number), NO_CUDA) is Status.PASSED
    future = h.torch(version="3.0.0", cuda="14.0")
    assert status(family.driver_runs_torch, h.gpus(driver_cuda=None), future, NO_CUDA) is Status.UNKNOWN


@pytest.mark.parametrize(("nvcc", "severity"), [("12.8", Severity.INFO), ("13.0", None)])
def test_ptx_that_is_newer_than_the_driver(nvcc: str, severity: Severity | None) -> None:
    gpus = h.gpus(driver_version="550.54.14", driver_cuda="12.4")
    finding = only(family.driver_takes_ptx, gpus, h.toolkits(h.toolkit(version=nvcc)))
    assert finding.severity is severity
    assert nvcc in finding.message
    assert "12.4" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("export TORCH_CUDA_ARCH_LIST=9.0",)


def test_compat_libraries_on_a_geforce() -> None:
    path = h.environment(LD_LIBRARY_PATH="/usr/local/cuda-12.8/compat:/opt/lib")
    geforce = one("NVIDIA GeForce RTX 3090", "8.6")
    finding = only(family.no_compat, geforce, path, NO_CUDA)
    assert "/usr/local/cuda-12.8/compat" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("export LD_LIBRARY_PATH=/opt/lib",)
    assert status(family.no_compat, path, NO_CUDA) is Status.NOT_APPLICABLE
    assert status(family.no_compat, geforce, path, h.torch_live()) is Status.PASSED


def test_a_fabric_that_is_not_ready() -> None:
    gpus = h.gpus(devices=(h.gpu(fabric_state="in-progress"),))
    finding = only(family.fabric_ready, gpus, NO_CUDA)
    assert "GPU 0: in-progress" in finding.message
    assert "580.159.04" in finding.message
    assert status(family.fabric_ready, gpus, h.torch_live()) is Status.PASSED
    silent_fabric = h.gpus(devices=(h.gpu(fabric_state=None),), device_nodes=("/dev/nvidia-nvswitch0",))
    assert status(family.fabric_ready, silent_fabric, NO_CUDA) is Status.UNKNOWN


def test_a_lost_gpu_is_found_by_nvml_and_by_the_kernel_log() -> None:
    gpus = h.gpus(
        2, nvml="lost", nvml_detail="GPU 1: GPU is lost", devices=(h.gpu(), h.gpu(index=1, error="GPU is lost"))
    )
    assert "GPU 1: GPU is lost" in only(family.none_lost, gpus).message
    line = "[ 99.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=0, GPU has fallen off the bus."
    assert only(family.none_lost, h.gpus(xid_errors=(line,))).severity is Severity.WARNING


@pytest.mark.parametrize(("gpus", "word"), [
    (h.gpus(devices=(h.gpu(ecc_uncorrected=3),)), "3 uncorrected"),
    (h.gpus(devices=(h.gpu(rows_pending=True),)), "waits for a reset"),
    (h.gpus(xid_errors=("NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE",)), "48"),
])  # fmt: skip
def test_broken_memory(gpus: Gpus, word: str) -> None:
    assert word in only(family.memory_whole, gpus).message


def test_an_xid_of_a_faulty_program_is_no_broken_hardware() -> None:
    gpus = h.gpus(xid_errors=("NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=python, MMU Fault",))
    assert status(family.memory_whole, gpus) is Status.PASSED
    assert status(family.none_lost, gpus) is Status.PASSED


def test_a_busy_gpu_names_the_process_and_the_free_neighbour() -> None:
    holder = GpuProcess(pid=4242, name="python", used_bytes=60 * GIB)
    gpus = h.gpus(2, devices=(h.gpu(used_bytes=61 * GIB, processes=(holder,)), h.gpu(index=1)))
    finding = only(family.memory_free, gpus)
    assert "4242 python 60.0 GiB" in finding.message
    assert finding.remedy is not None
    assert "localhost:1" in (finding.remedy.note or "")


def test_a_desktop_on_the_gpu_is_not_busy_and_silence_is_not_free() -> None:
    desktop = GpuProcess(pid=900, name="Xorg", used_bytes=200 << 20)
    assert status(family.memory_free, h.gpus(devices=(h.gpu(processes=(desktop,)),))) is Status.PASSED
    assert status(family.memory_free, h.gpus(devices=(h.gpu(used_bytes=None),))) is Status.UNKNOWN


@pytest.mark.parametrize(
    ("mode", "severity"), [("exclusive-process", Severity.WARNING), ("prohibited", Severity.ERROR)]
)
def test_compute_modes(mode: str, severity: Severity) -> None:
    found = verdict(family.mode_default, h.healthy(h.gpus(devices=(h.gpu(compute_mode=mode),))))
    assert (found.status, found.severity) == (Status.FAILED, severity)
    assert mode in found.findings[0].message


def test_mig_matters_more_with_several_gpus() -> None:
    single = h.gpus(devices=(h.gpu(mig_enabled=True),))
    pair = h.gpus(2, devices=(h.gpu(mig_enabled=True), h.gpu(index=1)))
    assert verdict(family.no_mig, h.healthy(single)).severity is Severity.INFO
    assert verdict(family.no_mig, h.healthy(pair)).severity is Severity.WARNING


@pytest.mark.parametrize(("value", "severity", "word"), [
    ("", Severity.ERROR, "hides every GPU"), ("-1", Severity.ERROR, "hides every GPU"), ("7", Severity.ERROR, "hides every"),
    ("0,5,1", Severity.WARNING, "shows only 0: 5 is not here"),
])  # fmt: skip
def test_hidden_gpus(value: str, severity: Severity, word: str) -> None:
    found = verdict(family.visible, h.healthy(h.gpus(2), h.environment(CUDA_VISIBLE_DEVICES=value)))
    assert (found.status, found.severity) == (Status.FAILED, severity)
    assert word in found.findings[0].message


def test_a_good_list_and_uuids_are_accepted() -> None:
    assert status(family.visible, h.gpus(2), h.environment(CUDA_VISIBLE_DEVICES="1,0")) is Status.PASSED
    assert status(family.visible, h.environment(CUDA_VISIBLE_DEVICES="GPU-8932f937")) is Status.NOT_APPLICABLE


def test_a_gpu_newer_than_torchs_binaries() -> None:
    gpus = one("NVIDIA GeForce RTX 5090", "12.0", driver_cuda="12.8")
    torch = h.torch(version="2.5.1+cu124", cuda="12.4")
    finding = only(family.torch_has_code, gpus, torch, NO_CUDA)
    assert finding.cause == "gpu-newer-than-torch-binaries"
    for word in ("RTX 5090", "12.0", "2.5.1+cu124", "sm_90"):
        assert word in finding.message
    assert finding.remedy is not None
    assert "/cu128" in finding.remedy.commands[0]


@pytest.mark.parametrize(("name", "capability", "word"), [
    ("Tesla V100-SXM2-16GB", "7.0", "/cu126"), ("Tesla P100", "6.0", "/cu126"), ("Tesla K80", "3.7", "torch==1.13.1"),
])  # fmt: skip
def test_a_gpu_older_than_torchs_binaries_gets_the_last_torch_for_it(name: str, capability: str, word: str) -> None:
    torch = h.torch(version="2.13.0+cu130", cuda="13.0")
    finding = only(family.torch_has_code, one(name, capability), torch, NO_CUDA)
    assert finding.cause == "unsupported-gpu-arch"
    assert finding.remedy is not None
    assert word in finding.remedy.commands[0]


def test_torchs_own_list_and_a_kernel_that_ran_beat_the_table() -> None:
    torch, v100 = h.torch(version="2.13.0+cu130", cuda="13.0"), one("Tesla V100", "7.0")
    failed = h.imported(outcome="error", error="no kernel image is available")
    own = h.torch_live(architectures=("sm_70", "sm_80"), kernel=failed)
    assert status(family.torch_has_code, torch, v100, own) is Status.PASSED
    assert status(family.torch_has_code, torch, v100, h.torch_live()) is Status.PASSED
    unknown_wheel = h.torch(version="2.14.1+cu130", cuda="13.0")
    assert status(family.torch_has_code, unknown_wheel, v100, NO_CUDA) is Status.UNKNOWN


def test_one_old_gpu_beside_a_good_one_does_not_block() -> None:
    gpus = h.gpus(2, devices=(h.gpu(), h.gpu(index=1, name="Tesla P4", compute_capability="6.1")))
    finding = only(family.torch_has_code, gpus, h.torch_live(2))
    assert (finding.subject, finding.severity) == ("GPU 1", Severity.WARNING)


def test_precision_by_capability() -> None:
    assert "7.5" in only(family.bf16_hardware, one("Tesla T4", "7.5")).message
    assert status(family.fp16_accepted, one("Tesla T4", "7.5")) is Status.PASSED
    pascal, allow = one("Tesla P100", "6.0"), h.environment(DS_ALLOW_DEPRECATED_FP16="1")
    assert only(family.fp16_accepted, pascal).cause == "fp16-unsupported-gpu"
    assert status(family.fp16_accepted, pascal, allow) is Status.PASSED
    assert status(family.fp16_accepted, one("Tesla M40", "5.2"), allow) is Status.FAILED


@pytest.mark.parametrize(("p2p", "severity"), [(False, Severity.INFO), (True, Severity.WARNING)])
def test_consumer_cards_without_p2p(p2p: bool, severity: Severity) -> None:
    cards = tuple(h.gpu(index=i, name="NVIDIA GeForce RTX 4090", compute_capability="8.9") for i in range(2))
    gpus = h.gpus(2, devices=cards, links=(GpuLink(first=0, second=1, path="PHB", p2p_read=p2p),))
    found = verdict(family.p2p_works, h.healthy(gpus))
    assert (found.status, found.severity) == (Status.FAILED, severity)
    assert found.findings[0].remedy is not None
    assert found.findings[0].remedy.commands == ("export NCCL_P2P_DISABLE=1",)
    assert status(family.p2p_works, gpus, h.environment(NCCL_P2P_DISABLE="1")) is Status.PASSED


@pytest.mark.parametrize(("other", "cause"), [
    ("AMD 1002:740f", "rocm-treated-as-cuda"), ("Intel 8086:0bd5", "xpu-not-detected"),
])  # fmt: skip
def test_other_makers_are_named_only_when_a_gpu_is_wanted(other: str, cause: str) -> None:
    finding = only(family.maker_known, h.no_gpus(others=(other,)), WANTS)
    assert finding.cause == cause
    assert other in finding.message
    assert status(family.maker_known, h.no_gpus(others=(other,)), CI) is Status.NOT_APPLICABLE


def test_a_gpu_on_the_bus_that_the_driver_leaves_out() -> None:
    gpus = h.gpus(2, pci_nvidia=3)
    assert "shows 3 NVIDIA GPUs" in only(family.all_listed, gpus).message
    assert status(family.all_listed, gpus, h.host(container="docker")) is Status.NOT_APPLICABLE
    assert status(family.all_listed, h.gpus(2, pci_nvidia=None)) is Status.UNKNOWN
