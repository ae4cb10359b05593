"""The compiler checks that compare versions: what nvcc accepts as host compiler, and what torch's headers need."""

from collections.abc import Iterator

from dsdoctor.api import (
    Compiler,
    Compilers,
    Environment,
    Finding,
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
from dsdoctor_checks.toolkits import chosen_nvcc, need_cuda_builds, of_distribution
from dsdoctor_checks.versions import before, series

_ALLOW = "-allow-unsupported-compiler"


def select(cc: str, cxx: str, prescriber: Prescriber) -> tuple[str, ...]:
    """Commands that make torch, nvcc and setuptools take these two."""
    return (prescriber.set("CC", cc), prescriber.set("CXX", cxx))


def _limit(kit: Toolkit, family: str) -> tuple[int, str] | None:
    """The newest major version of gcc or clang that this nvcc accepts, and where that was read."""
    if (own := kit.gcc_max if family == "gcc" else kit.clang_max) is not None:
        return own, "its host_config.h"
    rows = table("host_compilers")
    release_ = series(kit.version or "")
    for name, where in (
        ("max", "the table of host_config.h"),
        ("max_known", "NVIDIA's installation guide, not read again"),
    ):
        row = rows[name]["release"].get(release_)
        if row is not None:
            return row[family], where
    return None


@check(
    "CXX003",
    "nvcc accepts its host compiler",
    causes=["gcc-too-new-for-nvcc", "ubuntu-nvcc-no-host-compiler", "compiler-mismatch-template-errors"],
    guards=["cuda-build"],
)
def accepted_by_nvcc(
    compilers: Compilers, kits: Toolkits, torch: Torch, purpose: Purpose | None, environment: Environment | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """Every nvcc has a newest gcc and clang that it works with, and stops at newer ones."""
    need_cuda_builds(torch, purpose)
    kit, compiler = chosen_nvcc(kits), compilers.nvcc_host
    if compiler is None or compiler.path is None or compiler.family not in ("gcc", "clang"):
        not_applicable("nvcc's host compiler is no gcc or clang, or is not there (CXX004)")
    major = known(compiler.major, f"the version of {compiler.command}")
    limit = _limit(kit, compiler.family)
    if limit is None:
        unknown(f"which {compiler.family} nvcc {kit.version or ''} accepts is not known")
    newest, where = limit
    said = f"nvcc {kit.version} takes {compiler.family} up to {newest} ({where})"
    if major > newest:
        cause = "ubuntu-nvcc-no-host-compiler" if of_distribution(kit) else "gcc-too-new-for-nvcc"
    elif _known_to_fail(kit, compiler):
        cause, newest, said = (
            "compiler-mismatch-template-errors",
            major - 1,
            f"nvcc {kit.version} stumbles over its headers, by public reports",
        )
    else:
        return
    flags = [environment.get(name) for name in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")] if environment else []
    yield Finding(
        message=f"nvcc's host compiler {compiler.command} ({compiler.selected_by}) is {compiler.family} {compiler.version}; {said}",
        cause=cause,
        severity=Severity.WARNING if any(_ALLOW in flag for flag in flags) else None,
        remedy=_older(compiler.family, newest, compilers, torch, prescriber),
    )


def _known_to_fail(kit: Toolkit, compiler: Compiler) -> bool:
    row, version = table("host_compilers")["template_errors"], kit.version or ""
    affected = not before(version, row["nvcc_from"]) and before(version, row["nvcc_before"])
    return affected and compiler.family == "gcc" and (compiler.major or 0) >= row["gcc_from"]


def _older(family: str, newest: int, compilers: Compilers, torch: Torch, prescriber: Prescriber) -> Remedy:
    """Take the newest compiler here that nvcc accepts and torch can use, or install one."""
    c, cxx = ("gcc", "g++") if family == "gcc" else ("clang", "clang++")
    floor = floor_of(torch, family)
    here = {
        f.major for f in compilers.found
        if f.command.partition("-")[0] in (c, cxx) and f.major and floor <= f.major <= newest and f.command[-1].isdigit()
    }  # fmt: skip
    if here:
        best = max(here)
        order = f"Compile with {c} {best}, which is here"
        return Remedy(order=order, commands=select(f"{c}-{best}", f"{cxx}-{best}", prescriber), verify="$CXX --version")
    host, conda = prescriber.host, prescriber.conda(f"gxx={newest}")
    if conda and prescriber.python_facts is not None:
        folder = f"{prescriber.python_facts.prefix}/bin/x86_64-conda-linux-gnu"
        commands: tuple[str, ...] = (conda, *select(f"{folder}-gcc", f"{folder}-g++", prescriber))
    elif host is not None and host.package_manager == "apt":
        commands = (*prescriber.system(f"{cxx}-{newest}" if family == "gcc" else f"clang-{newest}"),
                    *select(f"{c}-{newest}", f"{cxx}-{newest}", prescriber))  # fmt: skip
    else:
        commands = ()
    return Remedy(
        order=f"Install {family} {newest} or older beside this one, and name it",
        commands=commands,
        safety="careful" if commands else "manual",
        verify="$CXX --version",
        note=f"or a newer CUDA toolkit; at your own risk: {prescriber.set('NVCC_APPEND_FLAGS', _ALLOW)}",
    )


@check("CXX004", "nvcc finds its host compiler", causes=["cxx-compiler-missing"], guards=["cuda-build"])
def host_compiler_there(
    compilers: Compilers, kits: Toolkits, torch: Torch, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """nvcc hands the C++ half of every file to gcc from PATH, or to the compiler that CC or NVCC_CCBIN names."""
    need_cuda_builds(torch, purpose)
    chosen_nvcc(kits)
    cxx, host = compilers.cxx, known(compilers.nvcc_host, "nvcc's host compiler")
    if cxx is not None and cxx.path is None:
        not_applicable("there is no C++ compiler at all; see CXX001")
    if host.path is not None and host.problem is None:
        return
    named = host.selected_by not in ("PATH", "default")
    yield Finding(
        message=f"nvcc's host compiler {host.command} ({host.selected_by}) {host.problem or 'is not on PATH'}",
        cause="cxx-compiler-missing",
        remedy=Remedy(
            order=f"Take {host.selected_by} away, so that nvcc takes gcc" if named else "Install gcc and g++",
            commands=(prescriber.unset(host.selected_by),) if named else prescriber.system("g++"),
            verify="gcc --version",
        ),
    )


def floor_of(torch: Torch, family: str) -> int:
    """The oldest major version of gcc or clang that can compile this torch's headers."""
    rows = table("host_compilers")["floor"]
    row = next((r for r in rows if not before(torch.version, r["torch_from"])), rows[-1])
    return int(row["gcc" if family == "gcc" else "clang"])


@check(
    "CXX006",
    "The C++ compiler is new enough for torch's headers",
    causes=["gcc-too-old"],
    guards=["cpp-build", "cuda-build"],
)
def torch_floor(compilers: Compilers, torch: Torch, prescriber: Prescriber) -> Iterator[Finding]:
    """Each torch raises the C++ standard of its headers now and then. Clusters keep very old system compilers."""
    cxx = known(compilers.cxx, "the C++ compiler")
    if cxx.path is None or cxx.family not in ("gcc", "clang"):
        not_applicable("there is no C++ compiler (CXX001), or it is no gcc or clang")
    major, floor = known(cxx.major, f"the version of {cxx.command}"), floor_of(torch, cxx.family)
    if major >= floor:
        return
    rows = table("host_compilers")["floor"]
    row = next(r for r in rows if not before(torch.version, r["torch_from"]))
    newer = {f.major for f in compilers.found if f.command.startswith("g++-") and f.major and f.major >= floor}
    commands = select(f"gcc-{min(newer)}", f"g++-{min(newer)}", prescriber) if newer else ()
    conda = prescriber.conda("gxx")
    yield Finding(
        message=f"{cxx.command} is {cxx.family} {cxx.version}; torch {torch.version} needs {floor} or newer: {row['because']}",
        cause="gcc-too-old",
        remedy=Remedy(
            order=f"Compile with g++ {min(newer)}, which is here" if newer else f"Get {cxx.family} {floor} or newer",
            commands=commands or ((conda,) if conda else ()),
            safety="safe" if newer else "careful" if conda else "manual",
            verify="$CXX --version",
            note=None if newer else "on a cluster: module load gcc, then export CC=gcc CXX=g++",
        ),
    )
