"""Checks of old nvcc and of CUDA libraries of another version that come before torch's own."""

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Environment,
    Evidence,
    Finding,
    Gpus,
    Prescriber,
    Purpose,
    Remedy,
    Severity,
    Toolkits,
    Torch,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.cuda_toolkit import major, need_cuda, need_nvcc, provide
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, series

DISTRO_NVCC = "/usr/bin/nvcc"
_NAMED = re.compile(r"/cuda-(\d+\.\d+)(?:/|$)")


@check(
    "CUDA013",
    "nvcc is not an old one of the distribution",
    causes=["distro-nvcc-ancient"],
    severity=Severity.WARNING,
)
def distro_nvcc(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """The package nvidia-cuda-toolkit puts nvcc into /usr/bin. It is often years older than torch's CUDA."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    if kit.nvcc != DISTRO_NVCC:
        not_applicable("nvcc is not the distribution's")
    version = known(kit.version, "the version of nvcc")
    if before(series(version), series(cuda)):
        yield Finding(
            message=f"{DISTRO_NVCC} of the distribution is {version}, torch {torch.version} was built for CUDA {cuda}",
            cause="distro-nvcc-ancient",
            remedy=provide(toolkits, cuda, prescriber, "the distribution's package is nvidia-cuda-toolkit"),
        )


@check(
    "CUDA014",
    "nvcc knows the C++ standard of torch's headers",
    causes=["nvcc-no-cxx17", "nvcc-no-cxx20"],
    guards=["cuda-build"],
)
def nvcc_standard(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """torch 2.1 and newer need C++17, torch 2.12 and newer C++20. DeepSpeed asks nvcc for C++20 from CUDA 12.5 on."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    version = known(kit.version, f"the version of the toolkit in {kit.root}")
    row = next((r for r in table("host_compilers")["standard"] if not before(torch.version, r["torch"])), None)
    if row is None or not before(version, row["deepspeed_nvcc"]):
        return
    lacks = (
        f"knows no {row['name']}"
        if before(version, row["nvcc"])
        else f"is asked by DeepSpeed for {row['name']} only from {row['deepspeed_nvcc']} on"
    )
    yield Finding(
        message=f"torch {torch.version} needs {row['name']}; nvcc {version} in {kit.root} {lacks}",
        cause=row["cause"],
        remedy=provide(toolkits, cuda, prescriber),
    )


@check(
    "CUDA015",
    "LD_LIBRARY_PATH puts no other CUDA before torch's",
    causes=["torch-cublas-lib-conflict"],
    severity=Severity.WARNING,
)
def library_path(
    environment: Environment,
    torch: Torch,
    gpus: Gpus | None,
    purpose: Purpose | None,
    toolkits: Toolkits | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:
    """torch's wheel brings its own CUDA libraries. Older ones in LD_LIBRARY_PATH are loaded first, and symbols are missing."""
    cuda = need_cuda(torch, gpus, purpose)
    folders = [folder for folder in environment.get("LD_LIBRARY_PATH").split(":") if folder]
    if not folders:
        not_applicable("LD_LIBRARY_PATH is not set")
    versions = {folder: version for folder in folders if (version := _version_of(folder, toolkits)) is not None}
    strangers = {f: v for f, v in versions.items() if major(v) != major(cuda) or before(v, series(cuda))}
    if strangers:
        older = any(before(version, series(cuda)) for version in strangers.values())
        rest = ":".join(folder for folder in folders if folder not in strangers)
        command = prescriber.set("LD_LIBRARY_PATH", rest) if rest else prescriber.unset("LD_LIBRARY_PATH")
        listed = ", ".join(f"{folder} (CUDA {version})" for folder, version in strangers.items())
        yield Finding(
            message=f"LD_LIBRARY_PATH holds {listed}; torch {torch.version} brings the libraries of CUDA {cuda}",
            cause="torch-cublas-lib-conflict",
            severity=None if older else Severity.INFO,
            evidence=(Evidence(where="LD_LIBRARY_PATH", text=environment.get("LD_LIBRARY_PATH")),),
            remedy=Remedy(
                order="Take these folders off LD_LIBRARY_PATH",
                commands=(command,),
                verify=run_python(prescriber, "import torch; print(torch.cuda.is_available())"),
            ),
        )


def _version_of(folder: str, toolkits: Toolkits | None) -> str | None:
    """The CUDA release of a library folder, by a toolkit that was looked at, else by its name."""
    if not re.search(r"/lib(64)?(/|$)", folder):
        return None
    for kit in toolkits.found if toolkits is not None else ():
        roots = [root.rstrip("/") for root in (kit.root, kit.real_path) if root]
        if kit.version and any(root not in ("", "/usr") and folder.startswith(f"{root}/lib") for root in roots):
            return kit.version if kit.found_by != "pip" else None
    named = _NAMED.search(folder)
    return named.group(1) if named else None
