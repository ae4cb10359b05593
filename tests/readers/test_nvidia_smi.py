"""nvidia-smi's output as people paste it: recordings, and its known messages."""

from pathlib import Path

import pytest

from dsdoctor.readers import nvidia_smi

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
OLD = """
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|   0  Tesla V100-SXM2...  Off  | 00000000:00:1E.0 Off |                  N/A |
| N/A   34C    P0    24W / 300W |   1026MiB / 16160MiB |      0%   E. Process |
|                               |                      |                  N/A |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|    0   N/A  N/A      1234      C   .../home/user/venv/bin/python --key X  1024MiB |
"""


def recording(name: str) -> str:
    return (TRANSCRIPTS / name).read_text()


def test_the_table_of_two_gpus() -> None:
    found = nvidia_smi.parse(recording("nvidia-smi__h200-x2.txt"))
    assert found is not None
    assert (found.nvml, found.driver_version, found.driver_cuda, found.read_from) == (
        "ok",
        "580.159.04",
        "13.0",
        "text",
    )
    assert [(gpu.index, gpu.name, gpu.total_bytes, gpu.used_bytes) for gpu in found.devices] == [
        (0, "NVIDIA H200", 143771 * 2**20, 0),
        (1, "NVIDIA H200", 143771 * 2**20, 0),
    ]
    first = found.devices[0]
    assert (first.mig_enabled, first.compute_mode, first.persistence, first.ecc_uncorrected) == (
        False,
        "default",
        True,
        0,
    )


def test_an_older_table_with_a_process() -> None:
    found = nvidia_smi.parse(OLD)
    assert found is not None
    (gpu,) = found.devices
    assert (found.driver_version, found.driver_cuda) == ("470.57.02", "11.4")
    assert (gpu.name, gpu.total_bytes, gpu.compute_mode) == ("Tesla V100-SXM2...", 16160 * 2**20, "exclusive-process")
    assert (gpu.ecc_uncorrected, gpu.mig_enabled) == (None, None)
    (process,) = gpu.processes
    assert (process.pid, process.name, process.used_bytes) == (1234, "python", 1024 * 2**20)


def test_the_long_form() -> None:
    found = nvidia_smi.parse(recording("nvidia-smi-q__h200.txt"))
    assert found is not None
    (gpu,) = found.devices
    assert (found.driver_version, found.driver_cuda, gpu.name) == ("580.159.04", "13.0", "NVIDIA H200")
    assert (gpu.total_bytes, gpu.free_bytes, gpu.used_bytes) == (143771 * 2**20, 143156 * 2**20, 0)
    assert (gpu.mig_enabled, gpu.compute_mode, gpu.persistence) == (False, "default", True)
    assert (gpu.pcie_width, gpu.pcie_width_max, gpu.pcie_generation) == (16, 16, 5)


def test_the_list() -> None:
    found = nvidia_smi.parse("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n")
    assert found is not None
    assert [(gpu.index, gpu.name) for gpu in found.devices] == [
        (0, "NVIDIA A100-SXM4-40GB"),
        (1, "NVIDIA A100-SXM4-40GB"),
    ]


def test_the_topology_beside_the_table() -> None:
    text = recording("nvidia-smi__h200-x2.txt") + recording("nvidia-smi-topo__h200-x2.txt")
    found = nvidia_smi.parse(text)
    assert found is not None
    assert [(link.first, link.second, link.path) for link in found.links] == [(0, 1, "NVLINK")]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.",
            "driver-not-loaded",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161",
            "version-mismatch",
        ),
        ("Failed to initialize NVML: Unknown Error", "error"),
        ("Unable to determine the device handle for GPU 0000:4B:00.0: GPU is lost.  Reboot the system", "lost"),
        ("No devices were found", "no-devices"),
        ("bash: line 1: nvidia-smi: command not found\nexit 127", "library-missing"),
    ],
)
def test_the_ways_in_which_it_fails(text: str, state: str) -> None:
    found = nvidia_smi.parse(text)
    assert found is not None
    assert (found.nvml, found.devices) == (state, ())
    assert found.nvml_detail == text.splitlines()[0]


def test_other_text_holds_no_gpus() -> None:
    assert nvidia_smi.parse("Epoch 1 loss 0.3\nGPU memory: 3 GiB") is None
    assert nvidia_smi.parse("") is None


def test_a_cut_table_gives_what_is_left() -> None:
    text = recording("nvidia-smi__h200-x2.txt")
    found = nvidia_smi.parse(text[: text.index("|   1  NVIDIA H200")])
    assert found is not None
    assert len(found.devices) == 1


def test_a_hostile_paste_holds_nothing_and_ends() -> None:
    rows = (
        "|    0  a" + " b" * 1900,
        "| 0 " + " " * 3900 + "x",
        "|" * 3900,
        "GPU 00000000:00:\n   x" + " " * 3900 + "y",
    )
    found = nvidia_smi.parse("\n".join(rows) * 200)
    assert found is None or all(gpu.name == "unknown" for gpu in found.devices)
