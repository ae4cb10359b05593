"""Checks of what compiles an op beside nvcc: the C++ compiler, nvcc's host compiler, ninja, libc's headers, libstdc++."""

from collections.abc import Iterator

from dsdoctor.api import (
    Compiler,
    Compilers,
    DeepSpeed,
    Finding,
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
from dsdoctor_checks.host_compilers import accepted_by_nvcc, host_compiler_there, select, torch_floor
from dsdoctor_checks.toolkits import need_cuda_builds
from dsdoctor_checks.versions import release

__all__ = ["accepted_by_nvcc", "host_compiler_there", "torch_floor"]

_HPC = {"nvhpc": "NVIDIA HPC", "intel": "Intel"}
_BUILDS = ("cpp-build", "cuda-build")


@check("CXX001", "There is a C++ compiler that works", causes=["cxx-compiler-missing"], guards=_BUILDS)
def compiler_works(compilers: Compilers, deepspeed: DeepSpeed | None, prescriber: Prescriber) -> Iterator[Finding]:
    """torch compiles ops with CXX, else with c++ (cl on Windows). Without one not even the CPU ops can be built."""
    cxx = known(compilers.cxx, "the C++ compiler")
    if cxx.path is not None and cxx.problem is None:
        return
    set_by = f" (from {cxx.selected_by})" if cxx.selected_by in ("CXX", "CC") else ""
    what = f"{cxx.command}{set_by} {cxx.problem or 'is not on PATH'}"
    prebuilt = deepspeed is not None and bool(deepspeed.prebuilt_ops)
    yield Finding(
        message=f"{what}; no op can be compiled",
        cause="cxx-compiler-missing",
        severity=Severity.WARNING if prebuilt else None,
        remedy=_give_compiler(cxx, compilers, prescriber),
    )


def _give_compiler(cxx: Compiler, compilers: Compilers, prescriber: Prescriber) -> Remedy:
    """The shortest way to a C++ compiler: forget a wrong CXX, take one that is here, or install one."""
    if prescriber.windows:
        order = "Install the Visual Studio build tools with C++, and work in their developer prompt"
        command = "winget install Microsoft.VisualStudio.2022.BuildTools"
        return Remedy(order=order, commands=(command,), safety="careful", verify="where cl")
    here = next((c for c in compilers.found if c.path and c.command.startswith(("g++", "clang++"))), None)
    if here is not None:
        commands: tuple[str, ...] = (prescriber.set("CXX", here.command),)
        return Remedy(order=f"Compile with {here.path}", commands=commands, verify=f"{here.command} --version")
    host = prescriber.host
    if host is not None and host.system == "darwin":
        return Remedy(
            order="Install Apple's command-line tools", commands=("xcode-select --install",), verify="c++ --version"
        )
    conda = prescriber.conda("gxx")
    commands = prescriber.system("g++") or ((conda,) if conda else ())
    if cxx.selected_by == "CXX":
        commands = (*commands, prescriber.unset("CXX"))
    note = f"without root: {conda}" if conda and commands[0] != conda else None
    safety = "safe" if commands else "manual"
    return Remedy(order="Install a C++ compiler", commands=commands, safety=safety, verify="c++ --version", note=note)  # type: ignore[arg-type]


@check("CXX002", "The compilers are not those of an HPC kit", causes=["nvhpc-compiler-picked-up"], guards=_BUILDS)
def no_hpc_compiler(
    compilers: Compilers, torch: Torch, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """Cluster modules set CC and CXX to nvc++ or icpx. torch's and CUDA's headers are made for gcc and clang."""
    cxx = known(compilers.cxx, "the C++ compiler")
    used = [cxx] if torch.cuda is None or compilers.nvcc_host is None else [cxx, compilers.nvcc_host]
    strange = {c.command: c for c in used if c.family in _HPC}
    if not strange:
        return
    listed = ", ".join(f"{c.command} ({c.selected_by}) is {_HPC[c.family]}'s" for c in strange.values())
    kit = next(iter(strange.values())).family
    yield Finding(
        message=f"{listed}: torch's headers are not made for it",
        cause="nvhpc-compiler-picked-up",
        severity=None if kit == "nvhpc" else Severity.WARNING,
        remedy=Remedy(
            order="Compile with gcc",
            commands=select("gcc", "g++", prescriber),
            verify="$CXX --version",
            note="or unload the module: module unload nvhpc" if kit == "nvhpc" else None,
        ),
    )


@check("CXX005", "ninja can be run", causes=["ninja-missing"], guards=_BUILDS)
def ninja_runs(compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """torch builds every DeepSpeed op with ninja and looks for it on PATH, even when the op is cached."""
    ninja = known(compilers.ninja, "whether ninja is there")
    if ninja.path is not None and ninja.problem is None:
        return
    inside = ninja.in_environment
    if ninja.path is not None:
        message, order = f"{ninja.path} {ninja.problem}", "Install ninja anew"
    elif inside is not None:
        message, order = (
            f"ninja is not on PATH, although it is here: {inside}",
            "Activate the environment, or put its folder on PATH",
        )
    else:
        message, order = "ninja is neither on PATH nor in the environment", "Install ninja into the environment"
    commands = (prescriber.pip("ninja", options="--force-reinstall" if ninja.path else ""),)
    if inside is not None:
        folder = inside.replace("\\", "/").rpartition("/")[0]
        commands = (f"set PATH={folder};%PATH%" if prescriber.windows else prescriber.set("PATH", f"{folder}:$PATH"),)
    yield Finding(
        message=message,
        cause="ninja-missing",
        remedy=Remedy(
            order=order,
            commands=commands,
            verify=prescriber.shell("ninja --version"),
            note="other nodes do not get PATH from the launcher: write it into ~/.deepspeed_env" if inside else None,
        ),
    )


@check("CXX007", "The C library's headers are there", causes=["libc-headers-missing"], guards=_BUILDS)
def libc_headers(compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """A compiler without stdio.h and limits.h compiles nothing. Slim images and home-made compilers lack them."""
    if prescriber.host is not None and prescriber.host.system != "linux":
        not_applicable("this is not Linux")
    if compilers.cxx is not None and compilers.cxx.path is None:
        not_applicable("there is no compiler; see CXX001")
    if known(compilers.libc_headers, "whether libc's headers are there"):
        return
    commands = prescriber.system("libc6-dev")
    yield Finding(
        message="stdio.h or limits.h is not in /usr/include",
        cause="libc-headers-missing",
        remedy=Remedy(
            order="Install the C library's headers",
            commands=commands,
            safety="safe" if commands else "manual",
            verify="ls /usr/include/stdio.h",
        ),
    )


@check(
    "CXX008", "Ops are compiled and loaded with one libstdc++", causes=["glibcxx-missing"], severity=Severity.WARNING
)
def one_libstdcxx(compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """An op compiled by the system's g++ may need symbols that an older libstdc++ in the environment does not have."""
    by_owner = {library.owner: library for library in compilers.standard_libraries if library.glibcxx}
    system, loaded = by_owner.get("system"), by_owner.get("environment") or by_owner.get("conda")
    if loaded is None or loaded.glibcxx is None:
        not_applicable("no other libstdc++ than the system's is loaded")
    cxx = known(compilers.cxx, "the C++ compiler")
    prefix = loaded.path.rpartition("/lib/")[0]
    if cxx.path is None or (prefix and cxx.path.startswith(f"{prefix}/")):
        not_applicable("the compiler is the environment's own, or there is none")
    newest = known(system.glibcxx if system else None, "which GLIBCXX the system's libstdc++ has")
    if system is not None and release(loaded.glibcxx) < release(newest):
        conda = prescriber.conda("libstdcxx-ng")
        yield Finding(
            message=f"{cxx.path} compiles for GLIBCXX_{newest} ({system.path}), Python loads {loaded.path} with GLIBCXX_{loaded.glibcxx}",
            cause="glibcxx-missing",
            remedy=Remedy(
                order="Update the environment's libstdc++" if conda else "Load the system's libstdc++ first",
                commands=(conda or prescriber.set("LD_PRELOAD", system.path),),
                safety="careful",
                note="then delete the cached ops, so that they are compiled anew",
            ),
        )


@check("CXX009", "gcc and g++ are of one version", causes=["compiler-mismatch-template-errors"], severity=Severity.INFO)
def one_version(compilers: Compilers, kits: Toolkits, torch: Torch, purpose: Purpose | None) -> Iterator[Finding]:
    """torch compiles an op's C++ files with CXX and hands its CUDA files to nvcc with CC. Both end in one library."""
    need_cuda_builds(torch, purpose)
    cxx, host = compilers.cxx, compilers.nvcc_host
    if cxx is None or host is None or not cxx.version or not host.version or kits.selected is None:
        not_applicable("not both compilers are there")
    if cxx.family == host.family and cxx.major != host.major:
        yield Finding(
            message=f"C++ files go to {cxx.command} {cxx.version} ({cxx.selected_by}), CUDA files to {host.command} {host.version} ({host.selected_by})",
            cause="compiler-mismatch-template-errors",
            remedy=Remedy(order="Set CC and CXX to gcc and g++ of one version, when a build fails", safety="manual"),
        )
