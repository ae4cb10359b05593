"""torch.utils.collect_env as people paste it: recordings of three releases, and short texts after the sources of others."""

from pathlib import Path

import pytest

from dsdoctor.readers import collect_env
from dsdoctor.readers.told import Build

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
# torch/utils/collect_env.py of 2019 (pytorch commit 00adac86): no libc, no platform, a list of GPUs on lines of its own.
OLD = """
Collecting environment information...
PyTorch version: 1.2.0
Is debug build: No
CUDA used to build PyTorch: 10.0.130

OS: Ubuntu 18.04.3 LTS
GCC version: (Ubuntu 7.4.0-1ubuntu1~18.04.1) 7.4.0
CMake version: Could not collect

Python version: 3.7
Is CUDA available: Yes
CUDA runtime version: 10.1.168
GPU models and configuration: 
GPU 0: Tesla V100-SXM2-16GB
GPU 1: Tesla V100-SXM2-16GB

Nvidia driver version: 418.87.01
cuDNN version: /usr/lib/x86_64-linux-gnu/libcudnn.so.7.6.3

Versions of relevant libraries:
[pip] numpy==1.17.2
[pip] torch==1.2.0
[conda] cudatoolkit               10.0.130                      0  
[conda] pytorch                   1.2.0           py3.7_cuda10.0.130_cudnn7.6.2_0    pytorch
"""  # noqa: W291
# vllm/collect_env.py: the same rows in boxes, the operating system first.
BOXED = """
==============================
        System Info
==============================
OS                           : Ubuntu 22.04.5 LTS (x86_64)
GCC version                  : (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Clang version                : 14.0.0-1ubuntu1.1
CMake version                : version 4.0.2
Libc version                 : glibc-2.35

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu128
Is debug build               : False
CUDA used to build PyTorch   : 12.8
ROCM used to build PyTorch   : N/A

==============================
       CUDA / GPU Info
==============================
CUDA runtime version         : 12.2.140
GPU models and configuration :
GPU 0: NVIDIA GeForce RTX 4090
GPU 1: NVIDIA GeForce RTX 4090
"""


def recording(name: str) -> str:
    return (TRANSCRIPTS / name).read_text()


def test_a_machine_with_a_gpu() -> None:
    told = collect_env.parse(recording("collect_env__2.11.0-h200.txt"))
    assert told is not None
    assert (told.torch, told.build, told.python) == ("2.11.0+cu130", Build("cuda", "13.0"), "3.12.3")
    assert (told.gcc, told.clang, told.nvcc, told.driver) == ("13.3.0", None, "13.0", "580.159.04")
    assert (told.gpus, told.listed, told.libc) == ({0: "NVIDIA H200"}, True, "glibc-2.39")
    assert told.os == "Ubuntu 24.04.3 LTS (x86_64)"
    assert told.packages["nvidia-nccl-cu13"] == "2.28.9"
    assert told.cpu is not None
    assert "avx512f" in told.cpu["Flags"].split()


def test_a_cpu_build_beside_an_nvcc() -> None:
    """torch prints its missing CUDA as "Could not collect" when an nvcc is there."""
    told = collect_env.parse(recording("collect_env__2.13.0-cpu.txt"))
    assert told is not None
    assert (told.torch, told.build, told.nvcc, told.gpus) == ("2.13.0+cpu", Build("cpu"), "13.0", None)


def test_an_older_recording() -> None:
    told = collect_env.parse(recording("collect_env__1.13.1-cu117.txt"))
    assert told is not None
    assert (told.torch, told.build, told.gcc, told.nvcc) == ("1.13.1+cu117", Build("cuda", "11.7"), "12.2.0", "13.0")
    assert (told.driver, told.gpus, told.cpu) == (None, None, None)


def test_a_release_of_2019() -> None:
    told = collect_env.parse(OLD)
    assert told is not None
    assert (told.torch, told.build, told.python, told.nvcc) == ("1.2.0", Build("cuda", "10.0.130"), "3.7", "10.1")
    assert (told.gcc, told.driver, told.platform, told.libc) == ("7.4.0", "418.87.01", None, None)
    assert told.gpus == {0: "Tesla V100-SXM2-16GB", 1: "Tesla V100-SXM2-16GB"}
    assert told.packages == {"numpy": "1.17.2", "torch": "1.2.0", "cudatoolkit": "10.0.130"}


def test_the_boxes_of_vllm() -> None:
    told = collect_env.parse(BOXED)
    assert told is not None
    assert (told.os, told.gcc, told.clang) == ("Ubuntu 22.04.5 LTS (x86_64)", "11.4.0", "14.0.0")
    assert (told.torch, told.build, told.nvcc) == ("2.7.0+cu128", Build("cuda", "12.8"), "12.2")
    assert told.gpus == {0: "NVIDIA GeForce RTX 4090", 1: "NVIDIA GeForce RTX 4090"}


def test_rocm() -> None:
    """hip_compiled_version stands where CUDA has N/A, and torch's device name where nvidia-smi's list is."""
    text = "PyTorch version: 2.1.0+rocm5.6\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 5.6.31061-8c743ae5d\nGPU models and configuration: AMD Instinct MI250X\n"
    told = collect_env.parse(text)
    assert told is not None
    assert (told.build, told.gpus, told.other_gpus) == (Build("hip", "5.6.31061"), None, ("AMD Instinct MI250X",))


def test_torch_cannot_be_imported() -> None:
    told = collect_env.parse(
        "PyTorch version: N/A\nCUDA used to build PyTorch: N/A\nGCC version: (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)\n"
    )
    assert told is not None
    assert (told.torch, told.build, told.gcc) == (None, None, "8.5.0")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "```\n" + text + "```\n",
        lambda text: "> " + text.replace("\n", "\n> "),
        lambda text: "    " + text.replace("\n", "\n    "),
        lambda text: text.replace("PyTorch version", "\x1b[1mPyTorch version\x1b[0m"),
    ],
)
def test_how_it_was_pasted_does_not_matter(wrap) -> None:  # type: ignore[no-untyped-def]
    for text in (OLD, BOXED):
        plain, wrapped = collect_env.parse(text), collect_env.parse(wrap(text))
        assert plain is not None
        assert wrapped is not None
        assert (wrapped.torch, wrapped.os, wrapped.gpus, wrapped.packages) == (
            plain.torch,
            plain.os,
            plain.gpus,
            plain.packages,
        )


def test_the_last_of_two_counts_and_other_text_is_none() -> None:
    told = collect_env.parse(BOXED + OLD)
    assert told is not None
    assert (told.torch, told.clang) == ("1.2.0", None)
    assert collect_env.parse("PyTorch version: 2.1.0\nEpoch 1\n") is None
    assert collect_env.parse("") is None
