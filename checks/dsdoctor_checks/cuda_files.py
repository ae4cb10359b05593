"""Checks of what lies in the chosen CUDA toolkit: headers, libraries, and the GPUs that its nvcc has code for."""

import os
from collections.abc import Iterator, Sequence

from dsdoctor.api import (
    Environment,
    Finding,
    Gpu,
    Gpus,
    Host,
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
from dsdoctor_checks.cuda_toolkit import need_cuda, need_files, provide
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, release, series

_MATH = ("cuda_runtime_api.h", "cublas_v2.h", "cusparse.h", "cusolverDn.h")
_INCLUDE_PATHS = ("CPATH", "CPLUS_INCLUDE_PATH")


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
    verify = prescriber.shell(f"ls {kit.root}/include/{missing[0]}")
    donor = next((k for k in toolkits.found if k.root != kit.root and set(missing) <= set(k.headers)), None)
    if donor is not None and (donor.version is None or series(donor.version) == series(kit.version or "")):
        folder = f"{donor.root}/include"
        command = prescriber.set("CPATH", f"{folder}:$CPATH")
        return Remedy(
            order=f"Name {folder} for the compiler: the headers are there", commands=(command,), verify=f"ls {folder}"
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
    guards=["cuda-build"],
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


@check("CUDA010", "The toolkit has cuRAND's headers", causes=["curand-header-missing"], severity=Severity.WARNING)
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


@check(
    "CUDA011",
    "The linker finds the toolkit's cudart and curand",
    causes=["libcurand-link-failure", "conda-lib-not-lib64"],
    severity=Severity.WARNING,
)
def libraries_linked(
    toolkits: Toolkits,
    torch: Torch,
    gpus: Gpus | None,
    purpose: Purpose | None,
    host: Host | None,
    environment: Environment | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:
    """Every CUDA op is linked with -lcudart, six with -lcurand. The linker needs the file without a version number."""
    need_cuda(torch, gpus, purpose)
    kit = need_files(toolkits)
    if host is not None and host.system == "windows":
        not_applicable("on Windows torch names the library folder itself")
    lost = [f"lib{name}.so" for name in ("cudart", "curand") if name not in kit.libraries]
    folder = f"{kit.root.rstrip('/')}/{kit.lib_dir or 'lib64'}"
    listed = environment.get("LIBRARY_PATH").split(":") if environment is not None else []
    if lost:
        yield _unlinked(f"{' and '.join(lost)} not found in {folder}", kit, folder, prescriber)
    elif kit.lib_dir == "lib" and kit.found_by == "conda" and folder not in [f.rstrip("/") for f in listed]:
        yield Finding(
            message=f"the libraries lie in {folder}, DeepSpeed's link line looks into {kit.root}/lib64",
            cause="conda-lib-not-lib64",
            remedy=_name_folder(folder, prescriber),
        )


def _name_folder(folder: str, prescriber: Prescriber) -> Remedy:
    command = prescriber.set("LIBRARY_PATH", f"{folder}:$LIBRARY_PATH")
    return Remedy(order="Name the folder for the linker", commands=(command,), verify=f"ls {folder}/libcudart.so")


def _unlinked(said: str, kit: Toolkit, folder: str, prescriber: Prescriber) -> Finding:
    version = series(known(kit.version, f"the version of the toolkit in {kit.root}")).replace(".", "-")
    apt = prescriber.host is not None and prescriber.host.package_manager == "apt"
    packages = prescriber.system(f"cuda-cudart-dev-{version}", f"libcurand-dev-{version}") if apt else ()
    return Finding(
        message=f"{said}: the link step of CUDA ops fails",
        cause="libcurand-link-failure",
        remedy=Remedy(
            order="Install the toolkit's development files and name their folder for the linker",
            commands=(*packages, prescriber.set("LIBRARY_PATH", f"{folder}:$LIBRARY_PATH")),
            safety="careful",
            verify=f"ls {folder}/libcudart.so {folder}/libcurand.so",
        ),
    )


@check("CUDA012", "nvcc has code for the GPUs", causes=["unsupported-gpu-arch"], guards=["cuda-build"])
def gpu_known_to_nvcc(
    toolkits: Toolkits, torch: Torch, gpus: Gpus, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """DeepSpeed compiles for exactly the GPUs that are here. An older nvcc does not know them, a newer one dropped some."""
    cuda = need_cuda(torch, gpus, purpose)
    if not gpus.devices:
        not_applicable("no NVIDIA GPU was found")
    kit = need_files(toolkits)
    if not kit.architectures:
        unknown(f"nvcc in {kit.root} did not list its architectures")
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
