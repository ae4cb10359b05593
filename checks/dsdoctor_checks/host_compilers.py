"""Checks of the compilers' releases: nvcc accepts its host compiler, and gcc knows the C++ of torch's headers."""

from collections.abc import Iterator

from dsdoctor.api import (
    Compiler,
    Compilers,
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
)
from dsdoctor_checks.cuda_toolkit import need_cuda, need_nvcc
from dsdoctor_checks.cuda_versions import DISTRO_NVCC
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, series

_ALLOWED_BY = ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")


def _limit(kit: Toolkit, family: str) -> int | None:
    """The newest major version that nvcc accepts: its own header's word, else the table's."""
    own = kit.gcc_max if family == "gcc" else kit.clang_max
    row = table("host_compilers")["max"]["cuda"].get(series(kit.version)) if kit.version else None
    return own if own is not None else row[family] if row else None


def _program(compilers: Compilers, kind: str, major: int) -> str | None:
    """The path of ``g++-12`` or ``gcc-12``, by its name or its version."""
    return next(
        (
            c.path
            for c in compilers.found
            if c.path and c.major == major and c.command.rpartition("/")[2].split("-")[0] == kind
        ),
        None,
    )


def switch(compilers: Compilers, least: int, most: int | None, prescriber: Prescriber) -> Remedy:
    """Take the newest g++ from ``least`` to ``most`` that is here; else install one."""
    majors = sorted({c.major for c in compilers.found if c.major and c.family == "gcc"}, reverse=True)
    for major in majors:
        gxx = _program(compilers, "g++", major)
        if gxx is None or major < least or (most is not None and major > most):
            continue
        gcc = _program(compilers, "gcc", major) or gxx
        commands = (prescriber.set("CC", gcc), prescriber.set("CXX", gxx))
        return Remedy(
            order=f"Build with g++ {major}, which is already here",
            commands=commands,
            verify=prescriber.shell(f"{gxx} --version"),
            note="torch hands CC to nvcc as -ccbin",
        )
    wanted = most or least
    conda = prescriber.conda(f"gxx_linux-64={wanted}")
    apt = prescriber.host is not None and prescriber.host.package_manager == "apt"
    install = (conda,) if conda else prescriber.system(f"g++-{wanted}") if apt else ()
    usr = (prescriber.set("CC", f"/usr/bin/gcc-{wanted}"), prescriber.set("CXX", f"/usr/bin/g++-{wanted}"))
    return Remedy(
        order=f"Install g++ {wanted} and name it in CC and CXX",
        commands=(*install, *(usr if apt and not conda else ())),
        safety="safe" if install else "manual",
        verify=prescriber.shell('"$CXX" --version'),
        note="activate the conda environment again: that sets CC and CXX"
        if conda
        else "torch hands CC to nvcc as -ccbin",
    )


def _standard(torch: Torch | None) -> dict[str, str | int] | None:
    rows = table("host_compilers")["standard"]
    return next((r for r in rows if torch is not None and not before(torch.version, r["torch"])), None)


@check(
    "CXX002",
    "nvcc accepts its host compiler",
    causes=["gcc-too-new-for-nvcc", "ubuntu-nvcc-no-host-compiler", "compiler-mismatch-template-errors"],
    guards=["cuda-build"],
    refuted_by=["nvcc"],
)
def gcc_accepted(
    compilers: Compilers, toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None,
    environment: Environment | None, prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """nvcc hands host code to gcc or clang, and stops with "unsupported GNU version" when that is newer than it knows."""
    need_cuda(torch, gpus, purpose)
    kit = need_nvcc(toolkits)
    host = known(compilers.nvcc_host, "nvcc's host compiler")
    if host.path is None or host.family not in ("gcc", "clang"):
        not_applicable("no gcc and no clang is nvcc's host compiler; see CXX001 and CXX004")
    major = known(host.major, f"the version of {host.path}")
    misread = host.family == "gcc" and _misreads(kit, major)
    allowed = environment is not None and any("-allow-unsupported-compiler" in environment.get(n) for n in _ALLOWED_BY)
    if allowed and not misread:
        not_applicable("-allow-unsupported-compiler is set: nvcc does not look")
    limit = known(_limit(kit, host.family), f"the newest {host.family} that nvcc {kit.version} accepts")
    if major > limit or misread:
        row = _standard(torch)
        cause, said = _refusal(kit, limit, misread)
        most = major - 1 if misread else _limit(kit, "gcc")
        yield Finding(
            message=f"{host.path} is {host.family} {host.version}; nvcc {kit.version} in {kit.root} {said}",
            cause=cause,
            remedy=switch(compilers, int(row["gcc_fails_below"]) if row else 0, most, prescriber),
        )


def _refusal(kit: Toolkit, limit: int, misread: bool) -> tuple[str, str]:
    """Cause and words of a compiler that does not go with this nvcc."""
    if misread:
        said = "accepts it, but cannot read its C++ library (by public reports: parameter packs not expanded)"
        return "compiler-mismatch-template-errors", said
    return (
        "ubuntu-nvcc-no-host-compiler" if kit.nvcc == DISTRO_NVCC else "gcc-too-new-for-nvcc",
        f"accepts up to {limit}",
    )


def _misreads(kit: Toolkit, gcc: int) -> bool:
    """True for an nvcc that stops in the headers of a gcc that its own header accepts."""
    row = table("nvcc")["misreads_library"]
    version = kit.version or ""
    return gcc == row["gcc"] and not before(version, row["nvcc_from"]) and before(version, row["nvcc_before"])


@check(
    "CXX010",
    "nvcc finds its host compiler",
    causes=["cxx-compiler-missing"],
    guards=["cuda-build"],
    refuted_by=["nvcc"],
)
def host_compiler_there(
    compilers: Compilers, toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """nvcc takes gcc from PATH for the host's half of an op. torch names another only when CC is set: CXX does not count.

    Without it nvcc ends with "Failed to preprocess host compiler properties".
    """
    need_cuda(torch, gpus, purpose)
    need_nvcc(toolkits)
    cxx, host = compilers.cxx, known(compilers.nvcc_host, "nvcc's host compiler")
    if cxx is not None and cxx.path is None:
        not_applicable("there is no C++ compiler at all; see CXX001")
    if host.path is not None:
        return
    by = f" (by {host.selected_by})" if host.selected_by != "PATH" else ""
    have = f"; {cxx.path} is here, which nvcc does not look at" if cxx is not None and not by else ""
    yield Finding(
        message=f"nvcc's host compiler {host.command}{by} is not on PATH{have}",
        cause="cxx-compiler-missing",
        subject="nvcc's host compiler",
        remedy=_host_compiler(host, cxx, toolkits.selected, prescriber),
    )


def _host_compiler(host: Compiler, cxx: Compiler | None, kit: Toolkit | None, prescriber: Prescriber) -> Remedy:
    """Forget a wrong name, or hand nvcc the clang that is here when it accepts that; else install gcc."""
    verify = prescriber.shell('"${CC:-gcc}" --version')
    if host.selected_by != "PATH":
        order = f"Take {host.selected_by} away, so that nvcc takes gcc"
        return Remedy(
            order=order, commands=(prescriber.unset(host.selected_by),), verify=prescriber.shell("gcc --version")
        )
    limit = _limit(kit, "clang") if kit is not None else None
    clang = cxx is not None and cxx.family == "clang" and limit is not None and (cxx.major or limit + 1) <= limit
    if clang and cxx is not None and cxx.path is not None:
        order, note = f"Hand nvcc {cxx.path}, which it accepts: torch passes CC on as -ccbin", "or install g++"
        clang_commands = (prescriber.set("CC", cxx.path), prescriber.set("CXX", cxx.path))
        return Remedy(order=order, commands=clang_commands, verify=verify, note=note)
    commands = prescriber.system("g++")
    return Remedy(
        order="Install gcc and g++",
        commands=commands,
        safety="safe" if commands else "manual",
        verify=prescriber.shell("gcc --version"),
    )


@check(
    "CXX003",
    "gcc knows the C++ standard of torch's headers",
    causes=["gcc-too-old"],
    guards=["cpp-build", "cuda-build"],
)
def gcc_new_enough(
    compilers: Compilers, torch: Torch, toolkits: Toolkits | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """torch 2.1 and newer need C++17, torch 2.12 and newer are built as C++20. Old distributions and clusters have an older gcc."""
    cxx = known(compilers.cxx, "the C++ compiler")
    if cxx.path is None or cxx.family != "gcc":
        not_applicable("the C++ compiler is not gcc")
    row = _standard(torch)
    if row is None:
        not_applicable(f"torch {torch.version} is content with an older C++")
    least = int(row["gcc"])
    major = known(cxx.major, f"the version of {cxx.path}")
    if major < least:
        kit = toolkits.selected if toolkits is not None else None
        yield Finding(
            message=f"{cxx.path} is gcc {cxx.version}; torch {torch.version} needs {row['name']}, so gcc {least} or newer",
            cause="gcc-too-old",
            severity=None if major < int(row["gcc_fails_below"]) else Severity.WARNING,
            remedy=switch(compilers, least, _limit(kit, "gcc") if kit else None, prescriber),
        )


@check(
    "CXX004",
    "The compilers are gcc, clang or Microsoft's",
    causes=["nvhpc-compiler-picked-up"],
    severity=Severity.WARNING,
)
def usual_compiler(compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """Modules on clusters put NVIDIA's HPC or Intel's compilers first. nvcc refuses nvc++, and torch is built with gcc."""
    chosen = [c for c in (compilers.cxx, compilers.cc, compilers.nvcc_host) if c is not None and c.path]
    if not chosen:
        not_applicable("no compiler was found; see CXX001")
    strange = {c.path: c for c in chosen if c.family in ("nvhpc", "intel")}
    for compiler in strange.values():
        yield _strange(compiler, prescriber)


def _strange(compiler: Compiler, prescriber: Prescriber) -> Finding:
    name = {"nvhpc": "NVIDIA's HPC compiler", "intel": "Intel's compiler"}[compiler.family]
    return Finding(
        message=f"{compiler.path} (by {compiler.selected_by}) is {name}",
        cause="nvhpc-compiler-picked-up",
        subject=compiler.path,
        remedy=Remedy(
            order="Name gcc",
            commands=(prescriber.set("CC", "gcc"), prescriber.set("CXX", "g++")),
            verify=prescriber.shell("$CXX --version"),
            note="or unload the module that brings it",
        ),
    )
