"""The C++ standard that torch's headers need, and the one that this DeepSpeed asks nvcc and the C++ compiler for."""

from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    DeepSpeed,
    Finding,
    Gpus,
    Host,
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
from dsdoctor_checks.cuda_toolkit import need_cuda, need_nvcc, provide
from dsdoctor_checks.rows import Row
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, series

_OLDEST = 14
_NVCC_TOO_OLD, _ASKS_TOO_LITTLE = "nvcc-no-cxx17", "nvcc-no-cxx20"


def needed(torch: Torch) -> Row | None:
    """The row of the standard without which this torch's headers stop with #error."""
    return next((r for r in table("nvcc")["torch_needs"] if not before(torch.version, r["torch"])), None)


def _asks(deepspeed: str) -> Row | None:
    return next((r for r in table("nvcc")["deepspeed_asks"] if not before(deepspeed, r["since"])), None)


def asked_of_nvcc(deepspeed: str, nvcc: str) -> int:
    """The standard in DeepSpeed's flags for nvcc."""
    row = _asks(deepspeed)
    steps = row["nvcc"] if row is not None else ()
    return next((step["standard"] for step in steps if not before(nvcc, step["from"])), _OLDEST)


def asked_of_compiler(deepspeed: str, torch: str) -> int:
    """The standard in DeepSpeed's flags for the C++ compiler."""
    row = _asks(deepspeed)
    if row is None:
        return _OLDEST
    return 17 if "host_torch" in row and before(torch, row["host_torch"]) else int(row["host"])


def _first_enough(standard: int, nvcc: str | None, torch: str) -> str | None:
    """The first DeepSpeed release that asks for ``standard``."""
    since = [r["since"] for r in reversed(table("nvcc")["deepspeed_asks"])]
    return next(
        (s for s in since if (asked_of_nvcc(s, nvcc) if nvcc else asked_of_compiler(s, torch)) >= standard), None
    )


def _update(deepspeed: str, prescriber: Prescriber) -> Remedy:
    return Remedy(
        order=f"Update DeepSpeed to {deepspeed} or newer",
        commands=(prescriber.pip(f"deepspeed>={deepspeed}", options="--upgrade"),),
        verify=prescriber.shell("ds_report"),
    )


@check(
    "CUDA014",
    "DeepSpeed asks nvcc for the C++ standard of torch's headers",
    causes=["nvcc-no-cxx17", "nvcc-no-cxx20"],
    guards=["cuda-build"],
)
def nvcc_standard(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, deepspeed: DeepSpeed | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """torch 2.1 and newer need C++17, torch 2.14 and newer C++20. DeepSpeed chooses by nvcc's release and its own."""
    cuda = need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    version = known(kit.version, f"the version of the toolkit in {kit.root}")
    row = needed(torch)
    if row is not None and before(version, row["nvcc_from"]):
        yield Finding(
            message=f"torch {torch.version} needs C++{row['standard']}; nvcc {version} in {kit.root} does not know it",
            cause=_NVCC_TOO_OLD,
            remedy=provide(toolkits, cuda, prescriber),
        )
        return
    own = known(deepspeed.version if deepspeed is not None else None, "which DeepSpeed is installed")
    asked = asked_of_nvcc(own, version)
    if row is not None and asked < row["standard"]:
        yield _too_low(row, asked, own, version, torch, provide(toolkits, cuda, prescriber), prescriber)
    elif asked == 17 and _misreads(version):
        yield _misread(own, version, torch, prescriber)


def _too_low(
    row: Row, asked: int, deepspeed: str, nvcc: str, torch: Torch, other_nvcc: Remedy, prescriber: Prescriber
) -> Finding:
    enough = _first_enough(row["standard"], nvcc, torch.version)
    return Finding(
        message=f"torch {torch.version} needs C++{row['standard']}; DeepSpeed {deepspeed} asks nvcc {nvcc} for C++{asked}",
        cause=_ASKS_TOO_LITTLE,
        severity=Severity.WARNING,
        remedy=_update(enough, prescriber) if enough is not None else other_nvcc,
    )


def _misreads(nvcc: str) -> bool:
    row = table("nvcc")["misreads_cxx17"]
    return not before(nvcc, row["from"]) and before(nvcc, row["before"])


def _misread(deepspeed: str, nvcc: str, torch: Torch, prescriber: Prescriber) -> Finding:
    enough = _first_enough(20, nvcc, torch.version) or "0.19.7"
    return Finding(
        message=f"DeepSpeed {deepspeed} asks nvcc {nvcc} for C++17; by public reports that nvcc then misreads the headers of"
        f" torch {torch.version} (need 'typename' before 'decltype'), and reads them as C++20",
        cause=_ASKS_TOO_LITTLE,
        severity=Severity.WARNING,
        remedy=_update(enough, prescriber),
    )


@check(
    "CXX009",
    "DeepSpeed asks the C++ compiler for the standard of torch's headers",
    causes=["nvcc-no-cxx20"],
    severity=Severity.WARNING,
)
def compiler_standard(
    compilers: Compilers | None, torch: Torch, deepspeed: DeepSpeed, host: Host | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """The standard in DeepSpeed's flags comes after torch's and wins. torch 2.14's headers stop below C++20."""
    if host is not None and host.system == "windows":
        not_applicable("on Windows DeepSpeed names no standard, and torch's holds")
    if compilers is not None and known(compilers.cxx, "the C++ compiler").path is None:
        not_applicable("there is no C++ compiler; see CXX001")
    row = needed(torch)
    if row is None:
        not_applicable(f"torch {torch.version} is content with an older C++")
    asked = asked_of_compiler(deepspeed.version, torch.version)
    if asked < row["standard"]:
        enough = known(_first_enough(row["standard"], None, torch.version), "the DeepSpeed that asks for it")
        yield Finding(
            message=f"torch {series(torch.version)} needs C++{row['standard']}; DeepSpeed {deepspeed.version} compiles its ops as C++{asked}",
            cause=_ASKS_TOO_LITTLE,
            remedy=_update(enough, prescriber),
        )
