"""The CUDA checks that look into the chosen toolkit: headers, libraries, architectures, language standards."""

from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    Environment,
    Finding,
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
from dsdoctor_checks.tables import table
from dsdoctor_checks.toolkits import BASE_HEADER, chosen_nvcc, install_toolkit, need_cuda_builds, of_distribution
from dsdoctor_checks.versions import before, release

_TORCH_INCLUDES = (BASE_HEADER, "cublas_v2.h", "cusparse.h", "cusolverDn.h")
_SEARCHED = ("CPATH", "CPLUS_INCLUDE_PATH")


def _looked_into(kits: Toolkits) -> Toolkit:
    kit = chosen_nvcc(kits)
    if kit.from_text:
        unknown("a pasted report does not tell what the toolkit holds")
    return kit


def _elsewhere(environment: Environment | None) -> str | None:
    """The variable that gives the compiler more include folders, which nobody looked into."""
    return next((name for name in _SEARCHED if environment is not None and environment.get(name)), None)


@check(
    "CUDA006",
    "The toolkit has the headers that torch includes",
    causes=["cuda-math-headers-missing"],
    guards=["cuda-build"],
)
def math_headers(
    kits: Toolkits, torch: Torch, purpose: Purpose | None, environment: Environment | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """torch's CUDA headers include those of cuBLAS, cuSPARSE and cuSOLVER. A toolkit of nvcc alone compiles no op."""
    need_cuda_builds(torch, purpose)
    kit = _looked_into(kits)
    missing = [name for name in _TORCH_INCLUDES if name not in kit.headers]
    if not missing:
        return
    variable = _elsewhere(environment)
    if variable:
        unknown(f"{kit.root} lacks {', '.join(missing)}, but {variable} names more folders, which were not looked into")
    yield Finding(
        message=f"{kit.root} has nvcc {kit.version or ''} but not {', '.join(missing)}",
        cause="cuda-math-headers-missing",
        remedy=install_toolkit(kit.version or torch.cuda or "", prescriber, None, "cuda-libraries-dev"),
    )


@check("CUDA007", "The toolkit has cuRAND's headers", causes=["curand-header-missing"], severity=Severity.WARNING)
def curand_headers(
    kits: Toolkits, torch: Torch, purpose: Purpose | None, environment: Environment | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """The transformer, Evoformer and fp_quantizer ops include curand_kernel.h. Fused Adam does not."""
    need_cuda_builds(torch, purpose)
    kit = _looked_into(kits)
    if any(name not in kit.headers for name in _TORCH_INCLUDES):
        not_applicable("more headers than this one are missing; see CUDA006")
    if "curand_kernel.h" in kit.headers:
        return
    if _elsewhere(environment):
        unknown(f"{kit.root} lacks curand_kernel.h, but {_elsewhere(environment)} names more folders")
    yield Finding(
        message=f"{kit.root} has no curand_kernel.h: the transformer, Evoformer and fp_quantizer ops do not compile",
        cause="curand-header-missing",
        remedy=install_toolkit(kit.version or torch.cuda or "", prescriber, None, "libcurand-dev"),
    )


@check(
    "CUDA008",
    "The linker finds the CUDA runtime library",
    causes=["libcudart-link-failure"],
    guards=["cuda-build"],
)
def cudart_links(kits: Toolkits, torch: Torch, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:
    """torch links every CUDA op with -lcudart, for which the linker wants libcudart.so without a version behind it."""
    need_cuda_builds(torch, purpose)
    kit = _looked_into(kits)
    if BASE_HEADER not in kit.headers:
        not_applicable("the toolkit has no headers either; see CUDA006")
    if "cudart" in kit.libraries:
        return
    pip = kit.found_by == "pip"
    yield Finding(
        message=f"no libcudart.so is in {kit.root}/lib64, {kit.root}/lib or the linker's own folders"
        + ("; pip's package has libcudart.so.N only" if pip else ""),
        cause="libcudart-link-failure",
        remedy=Remedy(
            order="Give the library the name that the linker looks for",
            commands=(f"ln -s libcudart.so.{release(kit.version or '')[0]} {kit.root}/lib/libcudart.so",),
            safety="careful",
        )
        if pip
        else install_toolkit(kit.version or torch.cuda or "", prescriber, None, "cuda-cudart-dev"),
    )


@check(
    "CUDA009",
    "CPU Adam of this DeepSpeed finds libcurand",
    causes=["libcurand-link-failure", "conda-lib-not-lib64"],
    guards=["cpp-build"],
)
def cpu_adam_links(
    kits: Toolkits, torch: Torch, purpose: Purpose | None, deepspeed: DeepSpeed, prescriber: Prescriber
) -> Iterator[Finding]:
    """Before 0.19.8 DeepSpeed links CPU Adam with -lcurand when torch has CUDA, though it does not use it."""
    need_cuda_builds(torch, purpose)
    row = table("nvcc")["cpu_adam_curand"]
    if not before(deepspeed.version, row["before"]):
        not_applicable(f"DeepSpeed {deepspeed.version} does not link CPU Adam to libcurand")
    if "cpu_adam" in deepspeed.prebuilt_ops:
        not_applicable("cpu_adam is compiled into the install")
    kit = _looked_into(kits)
    path = kit.libraries.get("curand")
    conda = kit.found_by == "conda" and kit.lib_dir == "lib" and before(deepspeed.version, "0.14.5")
    if path is not None and not conda:
        return
    folder = f"{kit.root}/{kit.lib_dir or 'lib64'}"
    yield Finding(
        message=f"DeepSpeed {deepspeed.version} links CPU Adam with -lcurand, and "
        + (f"libcurand.so lies in {folder}, not in lib64" if path else f"no libcurand.so was found for {kit.root}"),
        cause="conda-lib-not-lib64" if path else "libcurand-link-failure",
        remedy=Remedy(
            order="Name its folder for the linker",
            commands=(prescriber.set("LIBRARY_PATH", f"{folder}:$LIBRARY_PATH"),),
        )
        if path
        else install_toolkit(kit.version or torch.cuda or "", prescriber, "or update DeepSpeed", "libcurand-dev"),
    )


def architectures(kit: Toolkit) -> tuple[str, ...]:
    """What this nvcc compiles for: its own word, else the table's; ends the check when neither is known."""
    if kit.architectures:
        return kit.architectures
    version = known(kit.version, f"the version of {kit.nvcc}")
    row = next((r for r in table("nvcc")["architectures"] if not before(version, r["from"])), None)
    if row is None or not row["archs"]:
        unknown(f"nvcc {version} did not list its architectures, and the table does not know this release")
    return tuple(row["archs"])


@check(
    "CUDA010",
    "nvcc compiles for the GPUs that are here",
    causes=["unsupported-gpu-arch", "distro-nvcc-ancient"],
    guards=["cuda-build"],
)
def nvcc_knows_gpus(
    kits: Toolkits, torch: Torch, gpus: Gpus, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """DeepSpeed asks nvcc for code of exactly the GPUs' architecture. An nvcc that does not know it stops."""
    need_cuda_builds(torch, purpose)
    if not gpus.devices:
        not_applicable("no NVIDIA GPU was found")
    kit = chosen_nvcc(kits)
    knows = architectures(kit)
    needed = {g.compute_capability: g for g in gpus.devices if g.compute_capability}
    if not needed:
        unknown("the compute capability of the GPUs is not known")
    for capability, gpu in needed.items():
        if capability in knows:
            continue
        newer = all(before(arch, capability) for arch in knows)
        yield Finding(
            message=f"GPU {gpu.index} ({gpu.name}) is {capability}, nvcc {kit.version or ''} compiles for {knows[0]} to {knows[-1]}",
            cause="distro-nvcc-ancient" if newer and of_distribution(kit) else "unsupported-gpu-arch",
            subject=f"GPU {gpu.index}",
            remedy=_other_nvcc(newer, capability, kit, torch, prescriber),
        )


def _other_nvcc(newer: bool, capability: str, kit: Toolkit, torch: Torch, prescriber: Prescriber) -> Remedy:
    if newer:
        rows = [r for r in table("nvcc")["architectures"] if capability in r["archs"]]
        first = rows[-1]["from"] if rows else None
        wanted = torch.cuda or ""
        if first is not None and before(wanted, first):
            order = f"Install CUDA toolkit {first} or newer, and a torch that was built for it"
            return Remedy(order=order, safety="manual")
        return install_toolkit(wanted, prescriber, f"nvcc knows {capability} from {first} on" if first else None)
    last = next((r["from"] for r in table("nvcc")["architectures"] if capability in r["archs"]), None)
    if last is None:
        return Remedy(order=f"Use another GPU: no nvcc in the table compiles for {capability}", safety="manual")
    order = f"Use CUDA toolkit {last}, the last that compiles for {capability}, and a torch that was built for CUDA {release(last)[0]}"
    return Remedy(order=order, safety="manual")


@check(
    "CUDA011",
    "nvcc and DeepSpeed agree on the C++ standard that torch needs",
    causes=["nvcc-no-cxx17", "nvcc-no-cxx20"],
    severity=Severity.WARNING,
    guards=["cuda-build"],
)
def nvcc_standard(
    kits: Toolkits, torch: Torch, deepspeed: DeepSpeed, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """DeepSpeed chooses the standard by nvcc's release. Old nvcc get one that torch's headers do not take."""
    need_cuda_builds(torch, purpose)
    kit, row = chosen_nvcc(kits), table("nvcc")["standard"]
    version = known(kit.version, f"the version of {kit.nvcc}")
    if before(version, row["cxx17_from_nvcc"]) and not before(torch.version, "2.0"):
        yield Finding(
            message=f"nvcc {version} does not know C++17, which torch {torch.version} is written in",
            cause="nvcc-no-cxx17",
            severity=Severity.ERROR,
            remedy=install_toolkit(torch.cuda or "", prescriber),
        )
    if before(torch.version, row["torch_wants_cxx20_from"]):
        return
    old = release(version)[0] >= 13 and before(deepspeed.version, row["nvcc13_cxx20_since"])
    if old or (before(version, row["cxx20_from_nvcc"]) and not before(version, row["cxx17_from_nvcc"])):
        said = "DeepSpeed compiles with C++17, by public reports torch's CUDA headers need C++20"
        update = prescriber.pip(f"deepspeed>={row['nvcc13_cxx20_since']}", options="--upgrade")
        yield Finding(
            message=f"nvcc is {version}, torch {torch.version}, DeepSpeed {deepspeed.version}: {said}",
            cause="nvcc-no-cxx20",
            remedy=Remedy(order="Update DeepSpeed", commands=(update,))
            if old
            else install_toolkit(torch.cuda or "", prescriber),
        )


@check(
    "CUDA012",
    "nvcc compiles for what TORCH_CUDA_ARCH_LIST names",
    causes=["unsupported-gpu-arch"],
    guards=["cuda-build"],
)
def nvcc_knows_arch_list(
    kits: Toolkits, torch: Torch, environment: Environment, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """The variable goes to nvcc as it stands: one architecture that it does not know ends the build."""
    need_cuda_builds(torch, purpose)
    value = environment.get("TORCH_CUDA_ARCH_LIST").strip()
    if not value:
        not_applicable("TORCH_CUDA_ARCH_LIST is not set")
    kit = chosen_nvcc(kits)
    knows = architectures(kit)
    named = [entry.strip().removesuffix("+PTX").rstrip("af") for entry in value.replace(" ", ";").split(";")]
    strange = [entry for entry in named if entry.replace(".", "", 1).isdigit() and entry not in knows]
    if strange:
        rest = ";".join(e for e in value.replace(" ", ";").split(";") if e.removesuffix("+PTX").rstrip("af") in knows)
        yield Finding(
            message=f"TORCH_CUDA_ARCH_LIST is {value}; nvcc {kit.version or ''} does not compile for {', '.join(strange)}",
            cause="unsupported-gpu-arch",
            subject="TORCH_CUDA_ARCH_LIST",
            remedy=Remedy(
                order="Name only architectures that nvcc knows" if rest else "Take the variable away",
                commands=(
                    prescriber.set("TORCH_CUDA_ARCH_LIST", rest) if rest else prescriber.unset("TORCH_CUDA_ARCH_LIST"),
                ),
            ),
        )
