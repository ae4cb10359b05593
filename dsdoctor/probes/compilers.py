"""Compilers, ninja, the C++ standard library and libaio: what a JIT build would take here, asked and looked up."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

from dsdoctor.facts import Compiler, Compilers, Ninja, Python, StandardLibrary
from dsdoctor.probes import compiler_version, libraries
from dsdoctor.probes.compiler_version import Wanted
from dsdoctor.probes.system import System

_NAMED = re.compile(r"(gcc|g\+\+|clang|clang\+\+)(?:-(\d+))?$")
_GLIBCXX = re.compile(rb"GLIBCXX_3\.4\.(\d+)\0")
_SYSCONFIG_CC = re.compile(r"^\s*'CC':\s*'([^'\n]+)'", re.MULTILINE)
_CCBIN = re.compile(r"^(?:-ccbin|--compiler-bindir)=(.+)$")
_LIBSTDCXX = "libstdc++.so.6"
_STDLIB_BYTES = 32 * 1024 * 1024  # conda's library keeps its debug symbols


def probe(system: System, python: Python | None, limit_s: float = compiler_version.LIMIT_S) -> Compilers:
    """What would build an op. A program that hangs costs ``limit_s`` seconds; its trouble becomes a fact."""
    cxx, cc = _cxx(system), _cc(system, python)
    host = _nvcc_host(system)
    named = _on_path(system)
    with ThreadPoolExecutor(1) as pool:
        ninja = pool.submit(_ninja, system, python, limit_s)
        unnumbered = [want for want in named if not want.command.rpartition("-")[2].isdigit()]
        asked = compiler_version.ask_all(system, (cxx, cc, *([host] if host else ()), *unnumbered), limit_s)
        found = _found(system, named, asked)
        include, link = _include_folders(system, python), _link_folders(system, python)
        return Compilers(
            cxx=asked[cxx],
            cc=asked[cc],
            nvcc_host=asked[host] if host else None,
            found=found,
            ninja=ninja.result(),
            standard_libraries=_standard_libraries(system, python),
            libaio_header=libraries.first_file(system, include, "libaio.h") if system.linux else None,
            libaio_link=libraries.first_file(system, link, "libaio.so", "libaio.a") if system.linux else None,
            nccl_header=libraries.first_file(system, include, "nccl.h") or "" if system.linux else None,
            libcuda_link=libraries.first_file(system, link, "libcuda.so") or "" if system.linux else None,
            libaio_runtime=_libaio_runtime(system, python) if system.linux else None,
            libc_headers=_libc_headers(system, python),
        )


def _cxx(system: System) -> Wanted:
    """torch.utils.cpp_extension.get_cxx_compiler: CXX as it stands, else c++ (cl on Windows)."""
    given = system.env.get("CXX")
    return (
        Wanted(given, "CXX") if given is not None else Wanted("cl" if system.platform == "win32" else "c++", "default")
    )


def _cc(system: System, python: Python | None) -> Wanted:
    """distutils.sysconfig.customize_compiler: CC, else the one that built Python."""
    given = system.env.get("CC")
    if given is not None:
        return Wanted(given, "CC")
    if system.platform == "win32":
        return Wanted("cl", "default")
    built_with = _sysconfig_cc(system, python)
    return Wanted(built_with, "sysconfig") if built_with else Wanted("cc" if system.which("cc") else "gcc", "default")


def _sysconfig_cc(system: System, python: Python | None) -> str | None:
    """CC in the patient's _sysconfigdata file, read as text."""
    if python is None:
        return None
    folder = f"{python.base_prefix}/lib/python{'.'.join(python.version.split('.')[:2])}"
    names = [name for name in system.names(folder) if re.fullmatch(r"_sysconfigdata_.*\.py", name)]
    for name in sorted(names, key=lambda name: not name.startswith("_sysconfigdata__")):
        found = _SYSCONFIG_CC.search(system.read(f"{folder}/{name}") or "")
        if found:
            return found.group(1)
    return None


def _nvcc_host(system: System) -> Wanted | None:
    """nvcc takes the last -ccbin: NVCC_APPEND_FLAGS, torch's ``-ccbin $CC``, NVCC_PREPEND_FLAGS; then NVCC_CCBIN, gcc."""
    if system.platform == "win32":
        return Wanted("cl", "default")
    given = (
        ("NVCC_APPEND_FLAGS", _ccbin(system.env.get("NVCC_APPEND_FLAGS"))),
        ("CC", system.env.get("CC")),
        ("NVCC_PREPEND_FLAGS", _ccbin(system.env.get("NVCC_PREPEND_FLAGS"))),
        ("NVCC_CCBIN", system.env.get("NVCC_CCBIN")),
    )
    for name, value in given:
        if value:
            return Wanted(f"{value.rstrip('/')}/gcc" if system.is_dir(value) else value, name)
    return Wanted("gcc", "PATH") if system.linux else None


def _ccbin(flags: str | None) -> str | None:
    """The value of -ccbin in a variable with nvcc flags."""
    parts = compiler_version.words(flags or "")
    value = None
    for at, part in enumerate(parts):
        joined = _CCBIN.match(part)
        if joined:
            value = joined.group(1)
        elif part in ("-ccbin", "--compiler-bindir") and at + 1 < len(parts):
            value = parts[at + 1]
    return value


def _on_path(system: System) -> tuple[Wanted, ...]:
    """gcc, g++, clang, clang++, plain and numbered, in the order of PATH."""
    names: dict[str, None] = {}
    for folder in (system.env.get("PATH") or os.defpath).split(os.pathsep):
        try:
            listed = sorted(os.listdir(folder or os.curdir))
        except OSError:
            continue
        names.update(dict.fromkeys(name for name in listed if _NAMED.fullmatch(name)))
    return tuple(Wanted(name, "PATH") for name in names if system.which(name))


def _found(system: System, named: tuple[Wanted, ...], asked: dict[Wanted, Compiler]) -> tuple[Compiler, ...]:
    """Those on PATH. A numbered name that nobody had to ask carries its number as the version: gcc-12 is "12"."""
    full = {os.path.realpath(known.path): known.version for known in asked.values() if known.path and known.version}
    return tuple(asked[want] if want in asked else _numbered(system, want, full) for want in named)


def _numbered(system: System, want: Wanted, full: dict[str, str]) -> Compiler:
    path = system.which(want.command)
    kind, _, number = want.command.rpartition("-")
    return Compiler(
        command=want.command,
        path=path,
        selected_by=want.by,
        family="clang" if kind.startswith("clang") else "gcc",
        version=full.get(os.path.realpath(path or ""), number),
    )


def _ninja(system: System, python: Python | None, limit_s: float) -> Ninja:
    """torch.utils.cpp_extension.is_ninja_available: ``ninja --version`` from PATH must end with 0."""
    name = "ninja.exe" if system.platform == "win32" else "ninja"
    inside = f"{python.scripts_dir}/{name}" if python and python.scripts_dir else None
    path = system.which("ninja")
    elsewhere = inside if inside and system.is_file(inside) and not _same(inside, path) else None
    if path is None:
        return Ninja(in_environment=elsewhere)
    ran = system.run([path, "--version"], limit_s)
    said = (ran.stdout.strip() or ran.stderr.strip()).splitlines()
    version = said[0].strip() if ran.ok and said and said[0][:1].isdigit() else None
    problem = None
    if ran.ending == "not-started":
        problem = f"does not start: {ran.problem}"
    elif ran.ending == "timed-out":
        problem = f"gave no answer within {limit_s:g} s"
    elif not ran.ok:
        problem = f"ended with {ran.signal or f'exit code {ran.code}'}{': ' + said[0][:200] if said else ''}"
    elif version is None:
        problem = "printed no version"
    return Ninja(path=path, version=version, in_environment=elsewhere, problem=problem)


def _same(first: str, second: str | None) -> bool:
    return second is not None and os.path.realpath(first) == os.path.realpath(second)


def _conda_prefix(system: System, python: Python | None) -> str | None:
    prefixes = (python.prefix if python else None, system.env.get("CONDA_PREFIX"))
    return next((prefix for prefix in prefixes if prefix and system.is_dir(f"{prefix}/conda-meta")), None)


def _standard_libraries(system: System, python: Python | None) -> tuple[StandardLibrary, ...]:
    """The system's libstdc++, conda's, and one that LD_LIBRARY_PATH puts before both."""
    if not system.linux:
        return ()
    conda = _conda_prefix(system, python)
    paths = (
        ("environment", libraries.first_file(system, libraries.listed(system.env.get("LD_LIBRARY_PATH")), _LIBSTDCXX)),
        ("system", libraries.find_default(system, _LIBSTDCXX)),
        ("conda", libraries.first_file(system, (f"{conda}/lib",), _LIBSTDCXX) if conda else None),
    )
    known = {path: owner for owner, path in paths if path}  # conda's own folder in LD_LIBRARY_PATH is conda's
    return tuple(
        StandardLibrary(path=path, owner=owner, glibcxx=_glibcxx(system, path))  # type: ignore[arg-type]
        for path, owner in known.items()
    )


def _glibcxx(system: System, path: str) -> str | None:
    numbers = _GLIBCXX.findall(system.read_bytes(path, _STDLIB_BYTES) or b"")
    return f"3.4.{max(map(int, numbers))}" if numbers else None


def _flags(system: System, letter: str, *variables: str) -> tuple[str, ...]:
    """Folders in flags such as CFLAGS: -Ifoo, -I foo, -isystem foo."""
    marks = ("-I", "-isystem") if letter == "I" else ("-L",)
    found = []
    for variable in variables:
        parts = compiler_version.words(system.env.get(variable, ""))
        for at, part in enumerate(parts):
            mark = next((mark for mark in marks if part.startswith(mark)), None)
            if mark is None:
                continue
            found.append(part[len(mark) :] or (parts[at + 1] if at + 1 < len(parts) else ""))
    return tuple(folder for folder in found if folder)


def _own_prefix(system: System, python: Python | None) -> str | None:
    """The conda prefix when the C compiler is conda's: only then does the compiler search it."""
    conda = _conda_prefix(system, python)
    path = system.which(compiler_version.program(_cc(system, python).command)) if conda else None
    return conda if conda and path and os.path.abspath(path).startswith(conda.rstrip("/") + "/") else None


def _include_folders(system: System, python: Python | None) -> tuple[str, ...]:
    """Where the C compiler looks for a header, in its order."""
    conda = _own_prefix(system, python)
    return (
        *_flags(system, "I", "CFLAGS", "CPPFLAGS"),
        *libraries.listed(system.env.get("CPATH")),
        *libraries.listed(system.env.get("C_INCLUDE_PATH")),
        *((f"{conda}/include",) if conda else ()),
        "/usr/local/include",
        f"/usr/include/{libraries.multiarch()}",
        "/usr/include",
    )


def _link_folders(system: System, python: Python | None) -> tuple[str, ...]:
    """Where the linker looks for -lNAME, in its order."""
    conda = _own_prefix(system, python)
    return (
        *_flags(system, "L", "LDFLAGS", "CFLAGS"),
        *libraries.listed(system.env.get("LIBRARY_PATH")),
        *((f"{conda}/lib",) if conda else ()),
        *libraries.default_folders(),
    )


def _libaio_runtime(system: System, python: Python | None) -> str | None:
    """What the loader takes; Ubuntu 24.04 calls it libaio.so.1t64."""
    conda = _conda_prefix(system, python)
    names = ("libaio.so.1", "libaio.so.1t64")
    found = next((path for name in names if (path := libraries.find(system, name))), None)
    return found or (libraries.first_file(system, (f"{conda}/lib",), *names) if conda else None)


def _libc_headers(system: System, python: Python | None) -> bool | None:
    """stdio.h and limits.h of libc; conda's compilers bring their own."""
    if not system.linux:
        return None
    conda = _own_prefix(system, python)
    roots = [f"{conda}/{name}/sysroot/usr/include" for name in (system.names(conda) if conda else ())]
    roots += ["/usr/include", f"/usr/include/{libraries.multiarch()}"]
    return all(any(system.is_file(f"{root}/{name}") for root in roots) for name in ("stdio.h", "limits.h"))
