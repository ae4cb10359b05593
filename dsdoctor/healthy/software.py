"""What is installed there: toolkit, compilers, Python, torch, DeepSpeed."""

from typing import Any

from dsdoctor.facts import (
    Compiler,
    Compilers,
    DeepSpeed,
    DeepSpeedLive,
    Distribution,
    Import,
    Ninja,
    Packages,
    Python,
    StandardLibrary,
    Toolkit,
    Toolkits,
    Torch,
    TorchLive,
)
from dsdoctor.facts.toolkit import HEADERS, LIBRARIES
from dsdoctor.healthy.base import SITE, bent


def toolkit(**changes: Any) -> Toolkit:
    fact = Toolkit(
        root="/usr/local/cuda",
        found_by="CUDA_HOME",
        nvcc="/usr/local/cuda/bin/nvcc",
        version="13.0",
        headers=HEADERS,
        libraries={name: f"/usr/local/cuda/lib64/lib{name}.so" for name in LIBRARIES},
        lib_dir="lib64",
        stubs=True,
        gcc_max=15,
        clang_max=20,
        architectures=("7.5", "8.0", "8.6", "8.7", "8.8", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1"),
        real_path="/usr/local/cuda-13.0",
    )
    return bent(fact, changes)


def toolkits(*found: Toolkit, **changes: Any) -> Toolkits:
    """The given toolkits, the first of them chosen; without any, one healthy CUDA 13.0."""
    kits = found or (toolkit(),)
    fact = Toolkits(found=kits, chosen=kits[0].root, chosen_by=kits[0].found_by, nvcc_on_path=kits[0].nvcc)
    return bent(fact, changes)


def compiler(**changes: Any) -> Compiler:
    fact = Compiler(command="c++", path="/usr/bin/c++", selected_by="default", family="gcc", version="13.3.0")
    return bent(fact, changes)


def compilers(**changes: Any) -> Compilers:
    fact = Compilers(
        cxx=compiler(),
        cc=compiler(command="cc", path="/usr/bin/cc"),
        nvcc_host=compiler(command="g++", path="/usr/bin/g++", selected_by="PATH"),
        found=(compiler(command="g++-13", path="/usr/bin/g++-13", selected_by="PATH"),),
        ninja=Ninja(path="/home/user/env/bin/ninja", version="1.13.0", in_environment="/home/user/env/bin/ninja"),
        standard_libraries=(
            StandardLibrary(path="/usr/lib/x86_64-linux-gnu/libstdc++.so.6", owner="system", glibcxx="3.4.33"),
        ),
        libaio_header="/usr/include/libaio.h",
        libaio_link="/usr/lib/x86_64-linux-gnu/libaio.so",
        libcuda_link="/usr/lib/x86_64-linux-gnu/libcuda.so",
        nccl_header="/usr/include/nccl.h",
        libaio_runtime="/usr/lib/x86_64-linux-gnu/libaio.so.1t64",
        libc_headers=True,
    )
    return bent(fact, changes)


def python(**changes: Any) -> Python:
    fact = Python(
        executable="/home/user/env/bin/python",
        chosen_because="the active virtual environment",
        version="3.12.3",
        prefix="/home/user/env",
        base_prefix="/usr",
        environment="venv",
        site_packages=(SITE,),
        include_dir="/usr/include/python3.12",
        python_h=True,
        scripts_dir="/home/user/env/bin",
        scripts_on_path=True,
        cwd="/home/user/project",
    )
    return bent(fact, changes)


def packages(versions: dict[str, str | None] | None = None, **changes: Any) -> Packages:
    """A healthy set of distributions; ``versions`` adds or changes some, None takes one away."""
    listed: dict[str, str | None] = {
        "torch": "2.11.0+cu130",
        "deepspeed": "0.19.8",
        "triton": "3.6.0",
        "numpy": "2.3.0",
        "pydantic": "2.12.0",
        "packaging": "25.0",
        "setuptools": "80.9.0",
        "ninja": "1.13.0",
        "hjson": "3.1.0",
        "py-cpuinfo": "9.0.0",
        "transformers": "5.17.0",
        "accelerate": "1.15.0",
        **(versions or {}),
    }
    fact = Packages(
        distributions={
            name: Distribution(name=name, version=version, location=SITE, installer="pip")
            for name, version in listed.items()
            if version is not None
        },
        integrity_checked=("torch", "deepspeed", "triton"),
    )
    return bent(fact, changes)


def torch(**changes: Any) -> Torch:
    fact = Torch(version="2.11.0+cu130", cuda="13.0", path=f"{SITE}/torch", nccl="2.28.9")
    return bent(fact, changes)


def imported(**changes: Any) -> Import:
    return bent(Import(outcome="ok", seconds=2.6), changes)


def torch_live(count: int = 1, **changes: Any) -> TorchLive:
    fact = TorchLive(
        imported=imported(),
        version="2.11.0+cu130",
        cuda="13.0",
        cuda_available=True,
        device_count=count,
        devices=("NVIDIA H200",) * count,
        capabilities=("9.0",) * count,
        architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"),
        nccl="2.28.9",
        cudnn="9.19.0",
        bf16=True,
        mps=False,
        cuda_home="/usr/local/cuda",
        cpp_extension=imported(seconds=0.2),
        cxx11_abi=True,
        kernel=imported(seconds=0.3),
    )
    return bent(fact, changes)


def deepspeed(**changes: Any) -> DeepSpeed:
    fact = DeepSpeed(
        version="0.19.8",
        path=f"{SITE}/deepspeed",
        built_torch="0.0",
        built_cuda="0.0",
        has_accelerator_package=True,
        has_op_builder=True,
        launcher="/home/user/env/bin/deepspeed",
        launcher_executable=True,
        launcher_interpreter="/home/user/env/bin/python",
        launcher_interpreter_exists=True,
        launcher_on_path="/home/user/env/bin/deepspeed",
    )
    return bent(fact, changes)


def deepspeed_live(**changes: Any) -> DeepSpeedLive:
    fact = DeepSpeedLive(
        imported=imported(seconds=1.0),
        version="0.19.8",
        accelerator="cuda",
        accelerator_why="detected",
        communication_backend="nccl",
        bf16=True,
        fp16=True,
    )
    return bent(fact, changes)
