"""GPUs as a user would have them: NVML's real binding against a stand-in library, and constructed /proc, /dev, /sys."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dsdoctor.facts import Gpus
from dsdoctor.probes import gpu
from dsdoctor.probes.system import System

SOURCE = Path(__file__).parents[2] / "fixtures" / "nvml" / "nvml.c"
Probe = Callable[..., Gpus]


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for the stand-in library")
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)], check=True)
    return str(folder)


@pytest.fixture
def examine(nvml_folder: str, tmp_path: Path) -> Probe:
    def probe(limit_s: float = 8.0, **variables: str) -> Gpus:
        env = {"LD_LIBRARY_PATH": nvml_folder, "PATH": str(tmp_path), **variables}
        return gpu.probe(System(env, root=tmp_path, cwd=str(tmp_path), platform="linux"), limit_s)

    return probe


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_two_healthy_gpus_with_their_driver_and_link(examine: Probe) -> None:
    found = examine()
    assert (found.nvml, found.driver_version, found.driver_cuda) == ("ok", "550.54.14", "12.4")
    first, second = found.devices
    assert (first.index, second.index) == (0, 1)
    assert first.name == "NVIDIA H100 80GB HBM3"
    assert first.compute_capability == "9.0"
    assert first.total_bytes == 80 * 2**30
    assert first.free_bytes == 77 * 2**30
    assert first.compute_mode == "exclusive-process"
    assert first.ecc_uncorrected == 7
    assert first.rows_pending is True
    assert [(link.first, link.second, link.path, link.p2p_read) for link in found.links] == [(0, 1, "PHB", False)]


def test_what_this_driver_does_not_support_is_not_known(examine: Probe) -> None:
    first = examine(FAKE_COUNT="1").devices[0]
    assert (first.pcie_width, first.persistence, first.fabric_state, first.error) == (None, None, None, None)


def test_links_of_four_gpus(examine: Probe) -> None:
    links = examine(FAKE_COUNT="4").links
    assert len(links) == 6
    assert {link.path for link in links if link.first == 0} == {"PHB"}
    assert {link.path for link in links if link.first > 0} == {"NVLINK"}


def test_a_process_is_named_without_its_arguments(examine: Probe) -> None:
    (process,) = examine(FAKE_COUNT="1").devices[0].processes
    assert (process.pid, process.name, process.used_bytes) == (4242, "python3", 3 * 2**30)


def test_mig_is_seen_and_memory_still_given(examine: Probe) -> None:
    first, second = examine(FAKE_MIG="1").devices
    assert (first.mig_enabled, second.mig_enabled) == (False, True)
    assert second.total_bytes == 80 * 2**30


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("9", "driver-not-loaded"),
        ("18", "version-mismatch"),
        ("4", "no-permission"),
        ("15", "lost"),
        ("1", "error"),
        ("999", "error"),
    ],
)
def test_a_driver_that_refuses_says_why(examine: Probe, code: str, state: str) -> None:
    found = examine(FAKE_INIT=code)
    assert found.nvml == state
    assert found.nvml_detail
    assert found.devices == ()


def test_no_devices(examine: Probe) -> None:
    found = examine(FAKE_COUNT="0")
    assert (found.nvml, found.driver_version) == ("no-devices", "550.54.14")


def test_one_gpu_that_fell_off_the_bus_costs_only_itself(examine: Probe) -> None:
    found = examine(FAKE_COUNT="3", FAKE_LOST="1")
    assert found.nvml == "lost"
    assert found.nvml_detail == "GPU 1: GPU is lost"
    assert [device.error for device in found.devices] == [None, "GPU is lost", None]
    assert [(link.first, link.second) for link in found.links] == [(0, 2)]


def test_a_gpu_of_somebody_else_is_no_trouble(examine: Probe) -> None:
    found = examine(FAKE_DENIED="0")
    assert found.nvml == "ok"
    assert [device.error for device in found.devices] == ["Insufficient Permissions", None]


def test_no_gpu_that_we_may_use(examine: Probe) -> None:
    assert examine(FAKE_ALL_DENIED="1").nvml == "no-permission"


def test_a_gpu_that_hangs_costs_only_itself(examine: Probe) -> None:
    found = examine(2.0, FAKE_COUNT="3", FAKE_HANG="2")
    assert found.nvml == "error"
    assert found.driver_version == "550.54.14"
    assert found.devices[0].total_bytes == found.devices[1].total_bytes == 80 * 2**30
    assert found.nvml_detail == "GPU 2: NVML did not answer within 1.5 s"
    assert found.devices[2].error == "NVML did not answer within 1.5 s"


def test_a_driver_that_hangs_leaves_the_files(examine: Probe, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    found = examine(1.0, FAKE_INIT="-1")
    assert (found.nvml, found.nvml_detail) == ("error", "NVML did not answer within 1 s")
    assert found.device_nodes == ("/dev/nvidia0",)


def test_a_crash_keeps_what_was_told_before(examine: Probe) -> None:
    found = examine(FAKE_COUNT="2", FAKE_CRASH="1")
    assert found.nvml == "error"
    assert "SIGABRT" in (found.nvml_detail or "")
    assert found.devices[0].name == "NVIDIA H100 80GB HBM3"
    assert found.devices[1].error


def without_nvml(folder: Path, root: Path) -> Gpus:
    return gpu.probe(System({"PATH": str(folder)}, root=root, cwd=str(folder), platform="linux"))


CSV = """echo '0, NVIDIA A100-SXM4-80GB, 535.104.05, 8.0, 81920, 81000, 920, Disabled, Default, Enabled, 0, 4, 16'
echo '1, NVIDIA A100-SXM4-80GB, 535.104.05, 8.0, 81920, 80910, 1010, Enabled, Prohibited, Disabled, [N/A], 1, 8'"""


def test_nvidia_smi_stands_in_for_a_missing_library(tmp_path: Path) -> None:
    program(tmp_path, "nvidia-smi", CSV)
    found = without_nvml(tmp_path, tmp_path)
    assert (found.nvml, found.read_from, found.driver_version) == ("ok", "nvidia-smi", "535.104.05")
    first, second = found.devices
    assert (first.name, first.compute_capability, first.total_bytes) == ("NVIDIA A100-SXM4-80GB", "8.0", 81920 * 2**20)
    assert (second.mig_enabled, second.compute_mode, second.ecc_uncorrected) == (True, "prohibited", None)


def test_nvidia_smi_without_a_driver(tmp_path: Path) -> None:
    message = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest"
    program(tmp_path, "nvidia-smi", f'echo "{message}"; exit 9')
    found = without_nvml(tmp_path, tmp_path)
    assert found.nvml == "driver-not-loaded"
    assert message in (found.nvml_detail or "")


def test_neither_library_nor_program(tmp_path: Path) -> None:
    found = without_nvml(tmp_path, tmp_path)
    assert found.nvml == "library-missing"
    assert "libnvidia-ml.so.1" in (found.nvml_detail or "")
    assert not found.expected


def pci(root: Path, address: str, vendor: str, kind: str, device: str = "0x1234") -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, value in (("vendor", vendor), ("class", kind), ("device", device)):
        (folder / name).write_text(value + "\n")


def test_the_bus_names_gpus_that_have_no_driver(tmp_path: Path) -> None:
    pci(tmp_path, "0000:01:00.0", "0x10de", "0x030200", "0x2335")
    pci(tmp_path, "0000:01:00.1", "0x10de", "0x040300")  # its audio function
    pci(tmp_path, "0000:02:00.0", "0x10de", "0x030000")
    pci(tmp_path, "0000:03:00.0", "0x1002", "0x120000", "0x74a1")
    pci(tmp_path, "0000:04:00.0", "0x1002", "0x120000", "0x74a1")
    pci(tmp_path, "0000:05:00.0", "0x8086", "0x020000")  # a network card
    found = without_nvml(tmp_path, tmp_path)
    assert found.pci_nvidia == 2
    assert found.others == ("2 x AMD 1002:74a1",)
    assert found.expected


def test_no_bus_to_look_at_is_not_known(tmp_path: Path) -> None:
    assert without_nvml(tmp_path, tmp_path).pci_nvidia is None


def test_kernel_module_and_libcuda_and_xid(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder)\n"
        "GCC version:  gcc version 13.3.0\n"
    )
    (tmp_path / "usr/lib/wsl/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/wsl/lib/libcuda.so.1").touch()
    program(
        tmp_path,
        "dmesg",
        "echo '[ 10.0] usb 1-1: new device'\necho '[ 12.5] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.'",
    )
    found = without_nvml(tmp_path, tmp_path)
    assert found.kernel_module_version == "580.159.04"
    assert found.libcuda == "/usr/lib/wsl/lib/libcuda.so.1"
    assert found.xid_errors == ("[ 12.5] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",)


def test_a_mac_has_no_nvml(tmp_path: Path) -> None:
    found = gpu.probe(System({"PATH": str(tmp_path)}, root=tmp_path, cwd=str(tmp_path), platform="darwin"))
    assert (found.nvml, found.pci_nvidia, found.expected) == ("not-supported", None, False)
