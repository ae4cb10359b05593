"""Checks of the compilers, ninja and the C++ library: what a build of an op needs beside nvcc.

Those of nvcc's host compiler are in host_compilers.py; they belong to this family too.
"""

import ntpath
import posixpath
from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    Finding,
    Host,
    Ninja,
    Prescriber,
    Remedy,
    Severity,
    StandardLibrary,
    Torch,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.cuda_standards import compiler_standard
from dsdoctor_checks.host_compilers import gcc_accepted, gcc_new_enough, host_compiler_there, usual_compiler
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.versions import before

__all__ = ["compiler_standard", "gcc_accepted", "gcc_new_enough", "host_compiler_there", "usual_compiler"]
_BUILDS = ("cpp-build", "cuda-build")
_BUILD_TOOLS = (
    "winget install Microsoft.VisualStudio.2022.BuildTools --override"
    ' "--wait --passive --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended"'
)


def _install_compiler(prescriber: Prescriber) -> Remedy:
    system = prescriber.host.system if prescriber.host is not None else None
    if system == "windows":
        order = "Install Microsoft's C++ build tools, and start from their command prompt"
        return Remedy(order=order, commands=(_BUILD_TOOLS,), safety="careful", verify="cl")
    if system == "darwin":
        order = "Install Apple's command line tools"
        return Remedy(order=order, commands=("xcode-select --install",), verify="c++ --version")
    commands = prescriber.system("g++")
    return Remedy(
        order="Install a C++ compiler",
        commands=commands,
        safety="safe" if commands else "manual",
        verify=prescriber.shell("c++ --version"),
    )


@check("CXX001", "There is a C++ compiler", causes=["cxx-compiler-missing"], guards=_BUILDS)
def compiler_there(compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """torch compiles ops with the compiler that CXX names, else with c++ (cl on Windows)."""
    cxx = known(compilers.cxx, "the C++ compiler")
    if cxx.path is not None:
        return
    if cxx.selected_by == "CXX":
        remedy = Remedy(
            order="Unset CXX, so that c++ is taken",
            commands=(prescriber.unset("CXX"),),
            verify=prescriber.shell("c++ --version"),
        )
        said = f"CXX is {cxx.command!r}, and no such program is found"
    else:
        said, remedy = f"{cxx.command} is not on PATH, and CXX is not set", _install_compiler(prescriber)
    yield Finding(message=said, cause="cxx-compiler-missing", remedy=remedy)


@check("CXX005", "ninja can be run", causes=["ninja-missing"], guards=_BUILDS)
def ninja_runs(compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """torch builds every op with ninja, which it looks for on PATH. It must answer `ninja --version` with exit code 0."""
    ninja = known(compilers.ninja, "whether ninja is there")
    if ninja.path is not None and ninja.problem is None:
        return
    if ninja.path is not None:
        said = f"{ninja.path} {ninja.problem}"
    elif ninja.in_environment is not None:
        said = f"ninja is not on PATH; it is in {ninja.in_environment}: the environment is not activated"
    else:
        said = "ninja is not on PATH"
    yield Finding(message=said, cause="ninja-missing", remedy=_ninja_remedy(ninja, prescriber))


def _ninja_remedy(ninja: Ninja, prescriber: Prescriber) -> Remedy:
    verify = prescriber.shell("ninja --version")
    if ninja.in_environment is None:
        again = "--force-reinstall" if ninja.path is not None else ""
        command = prescriber.pip("ninja", options=again)
        return Remedy(order="Install ninja into this environment", commands=(command,), verify=verify)
    folder = (ntpath if prescriber.windows else posixpath).dirname(ninja.in_environment)
    command = prescriber.set("PATH", f"{folder}{';' if prescriber.windows else ':'}$PATH")
    note = "activating the environment does it too; for several nodes put the line into ~/.deepspeed_env"
    return Remedy(order="Put the environment's programs on PATH", commands=(command,), verify=verify, note=note)


@check(
    "CXX006", "The C library's headers are there", causes=["libc-headers-missing"], guards=_BUILDS, refuted_by=["cxx"]
)
def libc_headers(compilers: Compilers, host: Host | None, prescriber: Prescriber) -> Iterator[Finding]:
    """A compiler without stdio.h compiles nothing. Slim images have gcc and not the headers."""
    if host is not None and host.system != "linux":
        not_applicable("the compiler brings them on this system")
    if compilers.cxx is not None and compilers.cxx.path is None:
        not_applicable("there is no C++ compiler; see CXX001")
    if known(compilers.libc_headers, "whether the C library's headers are there"):
        return
    commands = prescriber.system("libc6-dev")
    yield Finding(
        message="stdio.h and limits.h of the C library were not found",
        cause="libc-headers-missing",
        remedy=Remedy(
            order="Install the C library's headers",
            commands=commands,
            safety="safe" if commands else "manual",
            verify=prescriber.shell("ls /usr/include/stdio.h"),
        ),
    )


@check(
    "CXX007",
    "The C++ library that Python loads is as new as the compiler's",
    causes=["glibcxx-missing"],
    severity=Severity.WARNING,
)
def standard_library(compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """An op is compiled against the system's libstdc++. An older one of conda, loaded first, lacks its symbols."""
    owned = {library.owner: library for library in compilers.standard_libraries}
    system = owned.pop("system", None)
    if system is None or not owned:
        not_applicable("no second libstdc++ was found beside the system's")
    newest = known(system.glibcxx, f"the symbols of {system.path}")
    for library in owned.values():
        found = known(library.glibcxx, f"the symbols of {library.path}")
        if before(found, newest) and not _compiler_of(library, compilers):
            yield _older(library, found, system, newest, prescriber)


def _compiler_of(library: StandardLibrary, compilers: Compilers) -> bool:
    """True when the C++ compiler lives in the same prefix: it links against this library."""
    prefix = posixpath.dirname(posixpath.dirname(library.path))
    cxx = compilers.cxx.path if compilers.cxx is not None else None
    return cxx is not None and cxx.startswith(f"{prefix}/") and prefix not in ("/", "/usr")


def _older(
    library: StandardLibrary, found: str, system: StandardLibrary, newest: str, prescriber: Prescriber
) -> Finding:
    conda = prescriber.conda("libstdcxx-ng") if library.owner == "conda" else None
    preload = prescriber.set("LD_PRELOAD", system.path)
    return Finding(
        message=f"{library.path} offers GLIBCXX_{found}; the compiler's {system.path} offers GLIBCXX_{newest}",
        cause="glibcxx-missing",
        subject=library.path,
        remedy=Remedy(
            order="Update conda's C++ library" if conda else "Load the system's C++ library first",
            commands=(conda or preload,),
            safety="careful",
            verify=run_python(prescriber, "import torch"),
            note="only needed when a built op fails with `GLIBCXX_... not found`",
        ),
    )


@check("CXX008", "The compilers answer", causes=["cxx-compiler-missing"], guards=_BUILDS)
def compilers_answer(compilers: Compilers, torch: Torch | None, prescriber: Prescriber) -> Iterator[Finding]:
    """A compiler that cannot even print its version compiles nothing: a broken link, a missing library, a wrong wrapper."""
    cuda = torch is not None and torch.cuda is not None
    chosen = (("cxx", compilers.cxx), ("cc", compilers.cc), ("nvcc", compilers.nvcc_host if cuda else None))
    if not any(c is not None and c.path for _, c in chosen):
        not_applicable("no compiler was found; see CXX001")
    told: set[str | None] = set()
    for role, compiler in chosen:
        if compiler is None or compiler.path is None or compiler.problem is None or compiler.path in told:
            continue
        told.add(compiler.path)
        named = compiler.selected_by in ("CC", "CXX", "NVCC_CCBIN")
        unset = Remedy(
            order=f"Unset {compiler.selected_by}, so that the usual compiler is taken",
            commands=(prescriber.unset(compiler.selected_by),),
        )
        yield Finding(
            message=f"{compiler.path} (by {compiler.selected_by}): {compiler.problem}",
            cause="cxx-compiler-missing",
            subject=compiler.path,
            severity=Severity.WARNING if role == "cc" else None,
            remedy=unset if named else _install_compiler(prescriber),
        )
