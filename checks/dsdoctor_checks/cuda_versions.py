"""Checks of versions: nvcc's against torch's, the distribution's nvcc, and CUDA libraries that come before torch's own."""

import re
from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
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
from dsdoctor_checks.cuda_toolkit import better, choose, major, need_cuda, need_nvcc, provide, verify
from dsdoctor_checks.prebuild import wanted_ops
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, release, series

DISTRO_NVCC = "/usr/bin/nvcc"
_NAMED = re.compile(r"/cuda-(\d+\.\d+)(?:/|$)")


@check(
    "CUDA004",
    "nvcc and torch agree on the CUDA major version",
    causes=["torch-cuda-vs-nvcc-major"],
    guards=["cuda-build"],
)
def same_major(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """Ops are compiled with nvcc and linked to torch's CUDA runtime. Two major versions do not go together."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    version = known(kit.version, f"the version of the toolkit in {kit.root}")
    if major(version) == major(cuda):
        return
    note = f"or install a torch for CUDA {major(version)} instead"
    yield Finding(
        message=f"nvcc in {kit.root} is {version}, torch {torch.version} was built for CUDA {cuda}",
        cause="torch-cuda-vs-nvcc-major",
        evidence=(Evidence(where=f"{kit.nvcc or kit.root} --version", text=version),),
        remedy=provide(toolkits, cuda, prescriber, note),
    )


def interchangeable(deepspeed: DeepSpeed | None, first: str, second: str) -> bool:
    """True when DeepSpeed (the newest one known, if this one is not) lists both minor versions as going together."""
    rows = table("nvcc")["interchangeable"]
    row = next((r for r in rows if deepspeed is None or not before(deepspeed.version, r["since"])), None)
    minors = row["minors"].get(str(major(first)), []) if row is not None and major(first) == major(second) else []
    return release(first)[1] in minors and release(second)[1] in minors


@check(
    "CUDA005",
    "DeepSpeed accepts nvcc's and torch's CUDA minor versions together",
    causes=["torch-cuda-vs-nvcc-minor"],
    severity=Severity.INFO,
)
def same_minor(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, deepspeed: DeepSpeed | None,
    environment: Environment | None, prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """Minor versions of one CUDA go together. DeepSpeed has a list of them, and refuses the rest at install time."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    version = known(kit.version, f"the version of the toolkit in {kit.root}")
    if major(version) != major(cuda):
        not_applicable("the major versions differ; see CUDA004")
    if series(version) == series(cuda) or interchangeable(deepspeed, version, cuda):
        return
    jit = deepspeed is not None and before(deepspeed.version, table("nvcc")["mismatch"]["jit_compares_before"])
    asked = bool(environment is not None and wanted_ops(environment)) or (purpose and purpose.name == "builder")
    yield Finding(
        message=f"nvcc in {kit.root} is {version}, torch {torch.version} was built for CUDA {cuda}; {_refuses(deepspeed, jit)}"
        + (" (DS_SKIP_CUDA_CHECK=1 is set)" if toolkits.skip_check else ""),
        cause="torch-cuda-vs-nvcc-minor",
        severity=Severity.WARNING if (jit or asked) and not toolkits.skip_check else None,
        remedy=_other_minor(toolkits, cuda, prescriber),
    )


def _refuses(deepspeed: DeepSpeed | None, jit: bool) -> str:
    who = f"DeepSpeed {deepspeed.version}" if deepspeed is not None else "DeepSpeed"
    when = (
        "when it builds an op"
        if jit
        else "when ops are compiled at install time (DS_BUILD_*); builds at first use go on"
    )
    return f"{who} does not list them as interchangeable, and refuses them {when}"


def _other_minor(toolkits: Toolkits, cuda: str, prescriber: Prescriber) -> Remedy:
    """The very release when it is here; else tell DeepSpeed to go on, which is enough between minor versions."""
    other = better(toolkits, cuda)
    if other is not None and series(other.version or "") == series(cuda):
        return choose(other, prescriber)
    return Remedy(
        order="Tell DeepSpeed to accept the pair when it compiles at install time",
        commands=(prescriber.set("DS_SKIP_CUDA_CHECK", "1"),),
        note=f"not needed for ops that are built at first use; a CUDA {series(cuda)} toolkit would be the exact match",
    )


@check(
    "CUDA006",
    "DS_SKIP_CUDA_CHECK does not hide another major version",
    causes=["skip-cuda-check-not-enough"],
    severity=Severity.WARNING,
)
def skip_check_enough(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """The variable turns off DeepSpeed's comparison. torch compares too, and refuses another major version."""
    cuda = need_cuda(torch, gpus, purpose)
    if not toolkits.skip_check:
        not_applicable("DS_SKIP_CUDA_CHECK is not set to 1")
    kit = need_nvcc(toolkits)
    version = known(kit.version, f"the version of the toolkit in {kit.root}")
    if major(version) != major(cuda):
        yield Finding(
            message=f"DS_SKIP_CUDA_CHECK is 1, but nvcc is {version} and torch was built for CUDA {cuda}",
            cause="skip-cuda-check-not-enough",
            remedy=Remedy(
                order="Take the variable away and match the toolkit to torch",
                commands=(prescriber.unset("DS_SKIP_CUDA_CHECK"),),
                verify=verify(prescriber),
            ),
        )


@check(
    "CUDA013",
    "nvcc is not an old one of the distribution",
    causes=["distro-nvcc-ancient"],
    severity=Severity.WARNING,
)
def distro_nvcc(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, deepspeed: DeepSpeed | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """The package nvidia-cuda-toolkit puts nvcc into /usr/bin. It is often a major version older than torch's CUDA."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    if kit.nvcc != DISTRO_NVCC:
        not_applicable("nvcc is not the distribution's")
    version = known(kit.version, "the version of nvcc")
    if before(series(version), series(cuda)) and not interchangeable(deepspeed, version, cuda):
        yield Finding(
            message=f"{DISTRO_NVCC} of the distribution is {version}, torch {torch.version} was built for CUDA {cuda}",
            cause="distro-nvcc-ancient",
            remedy=provide(toolkits, cuda, prescriber, "the distribution's package is nvidia-cuda-toolkit"),
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
