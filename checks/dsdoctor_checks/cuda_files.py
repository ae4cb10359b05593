"""Checks of what lies in the chosen CUDA toolkit: headers, libraries, and the GPUs that its nvcc has code for."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence

from dsdoctor.api import (
    Environment,
    Finding,
    Gpu,
    Gpus,
    Prescriber,
    Purpose,
    Remedy,
    Severity,
    Toolkit,
    Toolkits,
    Torch,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.cuda_toolkit import need_cuda, need_files, need_nvcc, provide
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, release, series

_MATH = ("cuda_runtime_api.h", "cublas_v2.h", "cusparse.h", "cusolverDn.h")
_INCLUDE_PATHS = ("CPATH", "CPLUS_INCLUDE_PATH")
_ARCH_LIST = "TORCH_CUDA_ARCH_LIST"
_ENTRY = re.compile(r"(\d+\.\d)[af]?(?:\+PTX)?$")


def _missing(kit: Toolkit, toolkits: Toolkits, environment: Environment | None, wanted: Sequence[str]) -> list[str]:
    """Headers that neither the toolkit nor a toolkit's folder named in CPATH has. Another folder in CPATH: unknown."""
    missing = [name for name in wanted if name not in kit.headers]
    if not missing or environment is None:
        return missing
    folders = [f.rstrip("/") for n in _INCLUDE_PATHS for f in environment.get(n).split(os.pathsep) if f]
    known_folders = {f"{k.root.rstrip('/')}/include": k.headers for k in toolkits.found}
    missing = [name for name in missing if not any(name in known_folders.get(f, ()) for f in folders)]
    if missing and any(folder not in known_folders for folder in folders):
        unknown(f"{', '.join(missing)} may lie in a folder of CPATH that was not looked at")
    return missing


def _headers_remedy(
    kit: Toolkit, toolkits: Toolkits, missing: Sequence[str], package: str, prescriber: Prescriber
) -> Remedy:
    """The include folder of pip's NVIDIA packages when it has them, else the development packages."""
    verify = prescriber.shell(f"ls {shlex.quote(kit.root)}/include/{missing[0]}")
    donor = next((k for k in toolkits.found if k.root != kit.root and set(missing) <= set(k.headers)), None)
    if donor is not None and (donor.version is None or series(donor.version) == series(kit.version or "")):
        folder = f"{donor.root}/include"
        command = prescriber.set("CPATH", f"{folder}:$CPATH")
        return Remedy(
            order=f"Name {folder} for the compiler: the headers are there",
            commands=(command,),
            verify=prescriber.shell(f"ls {shlex.quote(folder)}"),
        )
    version = series(known(kit.version, f"the version of the toolkit in {kit.root}"))
    conda = prescriber.conda(package, f"cuda-version={version}") if kit.found_by == "conda" else None
    manager = prescriber.host.package_manager if prescriber.host else None
    commands: tuple[str, ...] = (conda,) if conda else ()
    if not conda and manager in ("apt", "dnf", "yum", "zypper"):
        commands = prescriber.system(f"{package}-{version.replace('.', '-')}")
    if manager in ("dnf", "yum", "zypper"):
        commands = tuple(c.replace("-dev-", "-devel-") for c in commands)
    return Remedy(
        order=f"Install the development files of CUDA {version}",
        commands=commands,
        safety="safe" if commands else "manual",
        verify=verify,
        note="the package comes from NVIDIA's repository" if commands and not conda else None,
    )


@check(
    "CUDA009",
    "The toolkit has the headers that torch's headers include",
    causes=["cuda-math-headers-missing"],
    guards=["cuda-build", "cuda-headers"],
    refuted_by=["nvcc-headers"],
)
def math_headers(
    toolkits: Toolkits,
    torch: Torch,
    gpus: Gpus | None,
    purpose: Purpose | None,
    environment: Environment | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:
    """torch's CUDA headers include those of cuBLAS, cuSPARSE and cuSOLVER. A minimal toolkit lacks them."""
    need_cuda(torch, gpus, purpose)
    kit = need_files(toolkits)
    missing = _missing(kit, toolkits, environment, _MATH)
    if missing:
        yield Finding(
            message=f"{kit.root} (CUDA {kit.version}) has no {', '.join(missing)}",
            cause="cuda-math-headers-missing",
            remedy=_headers_remedy(kit, toolkits, missing, "cuda-libraries-dev", prescriber),
        )


@check(
    "CUDA010",
    "The toolkit has cuRAND's headers",
    causes=["curand-header-missing"],
    severity=Severity.WARNING,
    refuted_by=["curand-headers"],
)
def curand_header(
    toolkits: Toolkits,
    torch: Torch,
    gpus: Gpus | None,
    purpose: Purpose | None,
    environment: Environment | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:
    """DeepSpeed's transformer and CPU optimizer ops include curand_kernel.h or curand.h."""
    need_cuda(torch, gpus, purpose)
    kit = need_files(toolkits)
    if _missing(kit, toolkits, environment, _MATH):
        not_applicable("more headers are missing; see CUDA009")
    missing = _missing(kit, toolkits, environment, ("curand_kernel.h",))
    if missing:
        yield Finding(
            message=f"{kit.root} (CUDA {kit.version}) has no curand_kernel.h",
            cause="curand-header-missing",
            remedy=_headers_remedy(kit, toolkits, missing, "libcurand-dev", prescriber),
        )


def _with_architectures(toolkits: Toolkits) -> Toolkit:
    """The chosen toolkit, whose nvcc listed what it compiles for."""
    kit = need_nvcc(toolkits)
    if kit.from_text:
        unknown("pasted text does not show the files of the toolkit")
    if not kit.architectures:
        unknown(f"nvcc in {kit.root} did not list its architectures")
    return kit


@check(
    "CUDA012", "nvcc has code for the GPUs", causes=["unsupported-gpu-arch"], guards=["cuda-build"], refuted_by=["nvcc"]
)
def gpu_known_to_nvcc(
    toolkits: Toolkits, torch: Torch, gpus: Gpus, purpose: Purpose | None, environment: Environment | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """DeepSpeed compiles for exactly the GPUs that are here. An older nvcc does not know them, a newer one dropped some."""
    cuda = need_cuda(torch, gpus, purpose)
    if not gpus.devices:
        not_applicable("no NVIDIA GPU was found")
    if environment is not None and environment.get(_ARCH_LIST).strip():
        not_applicable(f"{_ARCH_LIST} names what is compiled for; see CUDA017")
    kit = _with_architectures(toolkits)
    if any(gpu.compute_capability is None for gpu in gpus.devices):
        unknown("the compute capability of a GPU is not known")
    for gpu in {gpu.compute_capability: gpu for gpu in reversed(gpus.devices)}.values():
        if gpu.compute_capability is not None and gpu.compute_capability not in kit.architectures:
            yield _not_known(gpu, gpu.compute_capability, kit, toolkits, cuda, prescriber)


def _not_known(
    gpu: Gpu, capability: str, kit: Toolkit, toolkits: Toolkits, cuda: str, prescriber: Prescriber
) -> Finding:
    row = table("host_compilers")["architecture"]["capability"].get(capability, {})
    first, last = row.get("first", cuda), row.get("last", cuda)
    wanted = first if before(cuda, first) else last if before(last, cuda) else cuda
    dropped = release(capability) < min(release(a) for a in kit.architectures)
    note = (
        f"nvcc dropped this architecture after CUDA {last}; torch must be built for that CUDA too" if dropped else None
    )
    remedy = provide(toolkits, wanted, prescriber, note)
    if not row or series(wanted) == series(kit.version or ""):
        remedy = Remedy(order="Install a CUDA toolkit whose nvcc knows this GPU", safety="manual")
    return Finding(
        message=f"GPU {gpu.index} ({gpu.name}) has compute capability {capability}; nvcc {kit.version} in {kit.root}"
        f" compiles for {', '.join(kit.architectures)}",
        cause="unsupported-gpu-arch",
        subject=f"GPU {gpu.index}",
        remedy=remedy,
    )


@check(
    "CUDA017",
    "nvcc compiles for what TORCH_CUDA_ARCH_LIST names",
    causes=["unsupported-gpu-arch"],
    guards=["cuda-build"],
    refuted_by=["nvcc"],
)
def arch_list_known_to_nvcc(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, environment: Environment,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """The entries go to nvcc one by one. It stops at the first that it does not know: "Unsupported gpu architecture"."""
    need_cuda(torch, gpus, purpose)
    value = environment.get(_ARCH_LIST).strip()
    if not value:
        not_applicable(f"{_ARCH_LIST} is not set")
    entries = {entry: found.group(1) for entry in value.replace(" ", ";").split(";") if (found := _ENTRY.match(entry))}
    if not entries:
        not_applicable("no entry is a plain number; see OPS001")
    kit = _with_architectures(toolkits)
    strange = [entry for entry, capability in entries.items() if capability not in kit.architectures]
    if strange:
        yield Finding(
            message=f"{_ARCH_LIST} is {value}; nvcc {kit.version} in {kit.root} does not compile for {', '.join(strange)},"
            f" only for {', '.join(kit.architectures)}",
            cause="unsupported-gpu-arch",
            subject=_ARCH_LIST,
            remedy=_other_list([entry for entry in entries if entry not in strange], gpus, kit, prescriber),
        )


def _other_list(kept: list[str], gpus: Gpus | None, kit: Toolkit, prescriber: Prescriber) -> Remedy:
    """What is left of the list when it still names the GPUs; without it DeepSpeed asks the GPUs."""
    here = {gpu.compute_capability for gpu in gpus.devices if gpu.compute_capability} if gpus is not None else set()
    verify = prescriber.shell(f"{kit.nvcc} --list-gpu-code")
    if here and not here <= {entry.removesuffix("+PTX") for entry in kept}:
        order = "Take the variable away: DeepSpeed then compiles for the GPUs that are here"
        return Remedy(order=order, commands=(prescriber.unset(_ARCH_LIST),), verify=verify)
    if not kept:
        return Remedy(order="Name architectures that this nvcc lists", safety="manual", verify=verify)
    command = prescriber.set(_ARCH_LIST, ";".join(kept))
    return Remedy(order="Name only what this nvcc compiles for", commands=(command,), verify=verify)
