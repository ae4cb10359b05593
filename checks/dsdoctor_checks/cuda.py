"""Checks of the CUDA toolkit: torch finds one, it has nvcc, and it is clear which one is meant.

Those of versions are in cuda_versions.py and cuda_standards.py, those of what lies in the toolkit in cuda_files.py and
cuda_links.py; they belong to this family too.
"""

import posixpath
from collections.abc import Iterator

from dsdoctor.api import (
    Environment,
    Evidence,
    Finding,
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
    not_applicable,
)
from dsdoctor_checks.cuda_files import arch_list_known_to_nvcc, curand_header, gpu_known_to_nvcc, math_headers
from dsdoctor_checks.cuda_links import cpu_ops_linked, cudart_linked, curand_linked
from dsdoctor_checks.cuda_standards import nvcc_standard
from dsdoctor_checks.cuda_toolkit import (
    BASE_HEADER,
    better,
    choose,
    lone_nvcc,
    malformed,
    need_choice,
    need_cuda,
    need_nvcc,
    provide,
    several,
    verify,
    whole,
)
from dsdoctor_checks.cuda_versions import distro_nvcc, library_path, same_major, same_minor, skip_check_enough
from dsdoctor_checks.versions import series

__all__ = [
    "arch_list_known_to_nvcc", "cpu_ops_linked", "cudart_linked", "curand_header", "curand_linked", "distro_nvcc",
    "gpu_known_to_nvcc", "library_path", "math_headers", "nvcc_standard", "same_major", "same_minor", "skip_check_enough",
]  # fmt: skip


@check("CUDA001", "torch finds a CUDA toolkit", causes=["cuda-home-missing"], guards=["cuda-build"])
def toolkit_found(
    toolkits: Toolkits,
    torch: Torch,
    gpus: Gpus | None,
    purpose: Purpose | None,
    environment: Environment | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:
    """CUDA ops are compiled with nvcc of the toolkit that torch picks. torch's wheel brings no nvcc of its own."""
    cuda = need_cuda(torch, gpus, purpose)
    if toolkits.chosen is not None:
        return
    if toolkits.found and all(kit.from_text for kit in toolkits.found):
        need_choice(toolkits)
    yield Finding(
        message=f"torch {torch.version} (CUDA {cuda}) finds no CUDA toolkit: {_why_none(environment, prescriber)}",
        cause="cuda-home-missing",
        remedy=provide(toolkits, cuda, prescriber),
    )


def _why_none(environment: Environment | None, prescriber: Prescriber) -> str:
    """torch reads ``CUDA_HOME or CUDA_PATH`` and goes on only when that is None: "" of CUDA_PATH ends its search.

    Source: _find_cuda_home of torch 2.13.0, of pytorch commit 0011ec5c and of an early 1.x, read 2026-11-30: the same line.
    """
    given = environment.variables if environment is not None else {}
    if given.get("CUDA_PATH") == "" and not given.get("CUDA_HOME"):
        return "CUDA_PATH is set to nothing, which ends torch's search"
    unset = "CUDA_HOME and CUDA_PATH are not set"
    if given.get("CUDA_HOME") == "":
        unset = "CUDA_HOME is empty, which counts as not set, CUDA_PATH is not set"
    usual = "NVIDIA's folder in Program Files" if prescriber.windows else "/usr/local/cuda"
    return f"{unset}, nvcc is not on PATH and {usual} does not exist"


@check(
    "CUDA002",
    "CUDA_HOME names one folder that exists",
    causes=["cuda-home-malformed"],
    guards=["cuda-build"],
)
def home_well_formed(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """torch takes CUDA_HOME as it stands and looks no further, even when nothing is there."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_choice(toolkits)
    if not malformed(kit):
        return
    by = toolkits.chosen_by or "CUDA_HOME"
    why = kit.nvcc_problem or (
        f"{by} holds several folders joined by ':': it must name one"
        if several(kit.root)
        else f"{by} names a folder that does not exist"
        if not kit.exists
        else f"{by} ends in /bin: it must name the folder above"
    )
    yield Finding(
        message=why,
        cause="cuda-home-malformed",
        evidence=(Evidence(where=by, text=kit.root),),
        remedy=_well_formed(kit, by, toolkits, cuda, prescriber),
    )


def _well_formed(kit: Toolkit, by: str, toolkits: Toolkits, cuda: str, prescriber: Prescriber) -> Remedy:
    """Another toolkit, the folder above bin, or no variable at all, so that torch looks for itself."""
    other = better(toolkits, cuda)
    if other is not None:
        return choose(other, prescriber)
    root = kit.root.rstrip("/")
    if kit.exists and posixpath.basename(root) == "bin":
        command = prescriber.set("CUDA_HOME", posixpath.dirname(root))
        return Remedy(order="Name the folder above bin", commands=(command,), verify=verify(prescriber))
    names = [name for name in ("CUDA_HOME", "CUDA_PATH") if name in by] or ["CUDA_HOME"]
    return Remedy(
        order=f"Unset {names[0]}, so that torch looks for a toolkit itself",
        commands=tuple(prescriber.unset(name) for name in names),
        verify=prescriber.shell("nvcc --version"),
        note=f"when no toolkit is installed, install CUDA {series(cuda)}",
    )


@check(
    "CUDA003",
    "The chosen toolkit has nvcc",
    causes=["cuda-home-without-nvcc", "cuda-runtime-image"],
    guards=["cuda-build"],
)
def nvcc_there(
    toolkits: Toolkits,
    torch: Torch,
    gpus: Gpus | None,
    purpose: Purpose | None,
    host: Host | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:
    """Runtime-only installations have CUDA's libraries and no compiler. ds_report itself may stop there."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_choice(toolkits)
    if malformed(kit):
        not_applicable(f"{kit.root} is no toolkit; see CUDA002")
    if kit.nvcc_problem is None and (kit.nvcc is not None or (kit.from_text and kit.version is not None)):
        return
    evidence = (Evidence(where=toolkits.chosen_by or "torch's choice", text=kit.root),)
    if kit.nvcc is None and _runtime_only(kit, host):
        said, cause = f"{kit.root} is a runtime installation: it has no nvcc and no headers", "cuda-runtime-image"
        note = "in a container: build on the image whose name ends in -devel instead of -runtime or -base"
    else:
        said, cause, note = f"{kit.root} has no bin/nvcc", "cuda-home-without-nvcc", None
        said = f"{kit.nvcc} {kit.nvcc_problem}" if kit.nvcc else said
    remedy = provide(toolkits, cuda, prescriber, note)
    yield Finding(message=said, cause=cause, evidence=evidence, remedy=remedy)


def _runtime_only(kit: Toolkit, host: Host | None) -> bool:
    """No nvcc and no headers, but cudart, or a container in which somebody put a toolkit's folder."""
    if kit.from_text or kit.headers:
        return False
    own = kit.libraries.get("cudart", "").startswith(f"{kit.root.rstrip('/')}/")
    return own or (host is not None and host.container is not None)


@check(
    "CUDA007",
    "It is clear which CUDA toolkit is used",
    causes=["multiple-cuda-versions"],
    severity=Severity.INFO,
)
def one_toolkit(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """With several toolkits, the order of PATH decides, unless CUDA_HOME does."""
    need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    usable = [k for k in toolkits.found if k.nvcc and k.version]
    if len({k.version for k in usable}) < 2 or toolkits.chosen_by in ("CUDA_HOME", "CUDA_PATH"):
        return
    listed = ", ".join(f"{k.version} in {k.root}" for k in usable)
    yield Finding(
        message=f"several toolkits are here ({listed}); torch takes {kit.root} because of {toolkits.chosen_by}",
        cause="multiple-cuda-versions",
        remedy=Remedy(
            order="Name the one that is meant",
            commands=(prescriber.set("CUDA_HOME", kit.root),),
            verify=verify(prescriber),
        ),
    )


@check(
    "CUDA008",
    "nvcc on PATH is in the chosen toolkit",
    causes=["ds-report-nvcc-missing-but-on-path"],
    severity=Severity.WARNING,
)
def nvcc_of_home(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """DeepSpeed and torch run CUDA_HOME/bin/nvcc only. An nvcc elsewhere on PATH does not help them."""
    need_cuda(torch, gpus, purpose)
    kit = need_choice(toolkits)
    if toolkits.nvcc_on_path is None:
        not_applicable("nvcc is not on PATH")
    if malformed(kit):
        not_applicable(f"{kit.root} is no toolkit; see CUDA002")
    if kit.nvcc is not None or kit.from_text:
        return
    root = posixpath.dirname(posixpath.dirname(toolkits.nvcc_on_path))
    yield Finding(
        message=f"{toolkits.chosen_by} is {kit.root}, which has no nvcc; the nvcc on PATH is {toolkits.nvcc_on_path}",
        cause="ds-report-nvcc-missing-but-on-path",
        remedy=Remedy(
            order="Point CUDA_HOME to the toolkit of that nvcc",
            commands=(prescriber.set("CUDA_HOME", root),),
            verify=verify(prescriber),
        ),
    )


@check("CUDA016", "torch picks a whole toolkit", causes=["nvcc-is-no-toolkit"], guards=["cuda-build"])
def toolkit_whole(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """Without CUDA_HOME torch takes the folder above that of the nvcc on PATH, also when that nvcc is a link or a script."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    if not lone_nvcc(toolkits, kit):
        return
    real = whole(toolkits, kit)
    where = f"; the toolkit is {real.root}" if real is not None else ""
    other = better(toolkits, cuda) or real
    ask = prescriber.shell(f"{kit.nvcc} --dryrun -E -x cu /dev/null 2>&1 | grep TOP=")
    yield Finding(
        message=f"torch takes {kit.root} for the toolkit (by {toolkits.chosen_by}), which has bin/nvcc but not {BASE_HEADER}{where}",
        cause="nvcc-is-no-toolkit",
        evidence=(Evidence(where=toolkits.chosen_by or "torch's choice", text=kit.nvcc or kit.root),),
        remedy=choose(other, prescriber)
        if other is not None
        else Remedy(order="Set CUDA_HOME to the toolkit that this nvcc names as TOP", commands=(ask,), safety="manual"),
    )
