"""CUDA toolkits on this machine: where they lie, what they have, and which one torch will take."""

import os
import re
from collections.abc import Iterator

import msgspec

from dsdoctor.facts import Python, Toolkit, Toolkits, Torch
from dsdoctor.facts.toolkit import HEADERS, LIBRARIES, FoundBy
from dsdoctor.probes import libraries, nvcc
from dsdoctor.probes.nvcc import Nvcc
from dsdoctor.probes.system import System

_CUDA_MACRO = re.compile(r"^#define\s+CUDA_VERSION\s+(\d+)", re.MULTILINE)
_GCC_MAX = re.compile(r"^#\s*if\s+\(?\s*__GNUC__\s*>\s*(\d+)", re.MULTILINE)
_CLANG_MAX = re.compile(r"^#\s*if\s+\(?\s*__clang_major__\s*(>=?)\s*(\d+)", re.MULTILINE)
_STARTED = re.compile(rb"(/[^\s\"';|&]+)/bin/nvcc\b")
_SCRIPT_BYTES = 4096
_WINDOWS = "C:/Program Files/NVIDIA GPU Computing Toolkit/CUDA"


class Choice(msgspec.Struct, frozen=True):
    """What torch.utils.cpp_extension._find_cuda_home returns, and by which of its rules."""

    root: str | None
    by: str | None


def probe(system: System, python: Python | None, torch: Torch | None, limit_s: float = nvcc.LIMIT_S) -> Toolkits:
    """Every toolkit that can be found. An nvcc that hangs costs ``limit_s`` seconds, its trouble becomes a fact."""
    on_path = system.which("nvcc")
    chosen = Choice(None, None) if torch is not None and torch.cuda is None else _choose(system, on_path)
    roots = _distinct(system, chosen.root, _candidates(system, python, on_path))
    programs = [path for root in roots if system.exists(path := nvcc.path_in(system, root))]
    answers = nvcc.ask_all(system, programs, limit_s)
    search = _search_path(system)
    return Toolkits(
        found=tuple(
            _toolkit(system, root, by, answers.get(nvcc.path_in(system, root)), search) for root, by in roots.items()
        ),
        chosen=chosen.root,
        chosen_by=chosen.by,
        nvcc_on_path=on_path,
        skip_check=system.env.get("DS_SKIP_CUDA_CHECK") == "1",
    )


def _choose(system: System, on_path: str | None) -> Choice:
    """torch's rules, word by word (the same from torch 1.8 to 2.13)."""
    home, path = system.env.get("CUDA_HOME"), system.env.get("CUDA_PATH")
    given = home or path
    if given is not None:
        return Choice(given, "CUDA_HOME" if home else "CUDA_PATH") if given else Choice(None, None)
    if on_path is not None:
        return Choice(os.path.dirname(os.path.dirname(on_path)), "nvcc on PATH")
    if system.platform == "win32":
        versions = [name for name in system.names(_WINDOWS) if name.startswith("v")]
        return Choice(f"{_WINDOWS}/{versions[0]}", _WINDOWS) if versions else Choice(None, None)
    if system.exists("/usr/local/cuda"):
        return Choice("/usr/local/cuda", "/usr/local/cuda")
    return Choice(None, None)


def _candidates(system: System, python: Python | None, on_path: str | None) -> Iterator[tuple[str, FoundBy]]:
    """Roots worth a look, best known first. Those of variables are kept even when nothing is there."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if system.env.get(variable):
            yield system.env[variable], "CUDA_HOME" if variable == "CUDA_HOME" else "CUDA_PATH"
    if on_path:
        yield os.path.dirname(os.path.dirname(on_path)), "PATH"
        yield os.path.dirname(os.path.dirname(os.path.realpath(on_path))), "PATH"
        if started := _started_by(system, on_path):
            yield started, "PATH"
    names = [name for name in system.names("/usr/local") if name == "cuda" or name.startswith("cuda-")]
    for name in names:
        if system.is_dir(f"/usr/local/{name}"):
            yield f"/usr/local/{name}", "/usr/local"
    for name in system.names(_WINDOWS) if system.platform == "win32" else ():
        yield f"{_WINDOWS}/{name}", "/usr/local"
    for prefix in _conda_prefixes(system, python):
        yield prefix, "conda"
    for packages in python.site_packages if python else ():
        for name in system.names(f"{packages}/nvidia"):
            if re.fullmatch(r"cu\d+|cuda_nvcc", name):
                yield f"{packages}/nvidia/{name}", "pip"


def _started_by(system: System, nvcc_path: str) -> str | None:
    """The root of the nvcc that a shell script starts, such as ``exec /usr/local/cuda-13.0/bin/nvcc "$@"``."""
    text = system.read_bytes(nvcc_path, _SCRIPT_BYTES) or b""
    found = _STARTED.search(text) if text.startswith(b"#!") else None
    return os.fsdecode(found.group(1)) if found else None


def _conda_prefixes(system: System, python: Python | None) -> list[str]:
    """Conda environments that hold something of CUDA."""
    prefixes = [prefix for prefix in (python.prefix if python else None, system.env.get("CONDA_PREFIX")) if prefix]
    return [
        prefix
        for prefix in dict.fromkeys(prefixes)
        if system.is_dir(f"{prefix}/conda-meta")
        and (system.exists(f"{prefix}/bin/nvcc") or _targets(system, prefix) or _has(system, f"{prefix}/lib", "cudart"))
    ]


def _distinct(system: System, chosen: str | None, candidates: Iterator[tuple[str, FoundBy]]) -> dict[str, FoundBy]:
    """Root -> how it was found, one per folder; of several names for one folder torch's choice stays, else the first."""
    roots: dict[str, FoundBy] = {}
    for root, by in candidates:
        roots.setdefault(root, by)
    ordered = sorted(roots, key=lambda root: root != chosen)
    firsts: dict[str, str] = {}
    for root in ordered:
        firsts.setdefault(os.path.realpath(system.path(root)), root)
    return {root: by for root, by in roots.items() if root in firsts.values()}


def _toolkit(system: System, root: str, by: FoundBy, answer: Nvcc | None, search: tuple[str, ...]) -> Toolkit:
    include = (f"{root}/include", *(f"{folder}/include" for folder in _targets(system, root)))
    folders = _library_folders(system, root)
    stubs = (*folders, *(f"{folder}/lib" for folder in _targets(system, root)))
    host = next((text for folder in include if (text := _host_config(system, folder))), "")
    clang = _CLANG_MAX.search(host)
    gcc = _GCC_MAX.search(host)
    return Toolkit(
        root=root,
        found_by=by,
        exists=system.is_dir(root),
        nvcc=answer.path if answer else None,
        nvcc_problem=answer.problem if answer else _malformed(system, root, by),
        version=(answer.version if answer else None) or _declared_version(system, root, include),
        headers=tuple(name for name in HEADERS if any(system.is_file(f"{folder}/{name}") for folder in include)),
        libraries=_libraries(system, (*folders, *search)),
        lib_dir=next((name for name in ("lib64", "lib") if _has(system, f"{root}/{name}", *LIBRARIES)), None),
        stubs=any(system.is_file(f"{folder}/stubs/libcuda.so") for folder in stubs),
        gcc_max=int(gcc.group(1)) if gcc else None,
        clang_max=int(clang.group(2)) - (clang.group(1) == ">=") if clang else None,
        architectures=answer.architectures if answer else (),
        real_path=_real_path(system, root),
    )


def _malformed(system: System, root: str, by: FoundBy) -> str | None:
    """Why a root has no nvcc, when the value that names it is at fault."""
    if by not in ("CUDA_HOME", "CUDA_PATH"):
        return None
    if system.is_dir(root):
        ends_in_bin = root.rstrip("/").endswith("/bin") and system.exists(f"{root}/nvcc")
        return f"{by} ends in /bin: it must name the folder above" if ends_in_bin else None
    if system.platform != "win32" and ":" in root:
        return f"{by} holds several folders joined by ':': it must name one"
    return f"{by} is a file, not a folder" if system.exists(root) else f"{by} names a folder that does not exist"


def _targets(system: System, root: str) -> list[str]:
    return [f"{root}/targets/{name}" for name in system.names(f"{root}/targets")]


def _library_folders(system: System, root: str) -> tuple[str, ...]:
    """What torch names for the linker: lib64, or lib where there is no lib64. It never names targets/*/lib."""
    if system.platform == "win32":
        return (f"{root}/lib/x64",)
    return (f"{root}/lib64",) if system.is_dir(f"{root}/lib64") else (f"{root}/lib",)


def _search_path(system: System) -> tuple[str, ...]:
    """Folders that the linker looks through after those of the toolkit."""
    return (*libraries.listed(system.env.get("LIBRARY_PATH")), *libraries.default_folders())


def _file_name(system: System, name: str) -> str:
    return f"{name}.lib" if system.platform == "win32" else f"lib{name}.so"


def _has(system: System, folder: str, *names: str) -> bool:
    return any(system.is_file(f"{folder}/{_file_name(system, name)}") for name in names)


def _libraries(system: System, folders: tuple[str, ...]) -> dict[str, str]:
    found = ((name, libraries.first_file(system, folders, _file_name(system, name))) for name in LIBRARIES)
    return {name: path for name, path in found if path}


def _host_config(system: System, include: str) -> str | None:
    """The header in which nvcc refuses host compilers; CUDA 8 and older have it one folder up."""
    text = system.read(f"{include}/crt/host_config.h") or system.read(f"{include}/host_config.h")
    return text if text and "__GNUC__" in text else None


def _declared_version(system: System, root: str, include: tuple[str, ...]) -> str | None:
    """What the toolkit's files say: version.json, version.txt (CUDA 10), else the macro in cuda.h."""
    found = re.search(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"(\d+\.\d+)', system.read(f"{root}/version.json") or "")
    found = found or re.search(r"CUDA Version (\d+\.\d+)", system.read(f"{root}/version.txt") or "")
    if found:
        return found.group(1)
    for folder in include:
        macro = _CUDA_MACRO.search(system.read(f"{folder}/cuda.h") or "")
        if macro:
            number = int(macro.group(1))
            return f"{number // 1000}.{number % 1000 // 10}"
    return None


def _real_path(system: System, root: str) -> str | None:
    here = str(system.path(root))
    real = os.path.realpath(here)
    return real if system.exists(root) and real != os.path.normpath(here) else None
