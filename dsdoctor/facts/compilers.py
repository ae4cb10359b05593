"""C and C++ compilers, ninja, the C++ standard library and Python's headers: what a JIT build needs beside nvcc."""

from typing import Literal

from dsdoctor.facts.base import Fact

Family = Literal["gcc", "clang", "apple-clang", "msvc", "nvhpc", "intel", "unknown"]


class Compiler(Fact, frozen=True, kw_only=True):
    command: str  # as selected: "c++", "/usr/bin/g++-12"
    path: str | None  # resolved; None: not found
    selected_by: str  # "CXX", "CC", "sysconfig", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "default", "PATH"
    family: Family = "unknown"
    version: str | None = None  # "12.2.0"
    problem: str | None = None  # first line of what went wrong when asked for its version

    @property
    def major(self) -> int | None:
        return int(self.version.split(".")[0]) if self.version else None


class Ninja(Fact, frozen=True, kw_only=True):
    path: str | None = None  # on PATH as training would see it
    version: str | None = None
    in_environment: str | None = None  # VENV/bin/ninja, when it is there but not on PATH
    problem: str | None = None  # "printed no version", exit code, ...


class StandardLibrary(Fact, frozen=True, kw_only=True):
    """A libstdc++.so.6 and the highest GLIBCXX_ symbol version that it offers."""

    path: str
    owner: Literal["system", "conda", "environment"]
    glibcxx: str | None = None  # "3.4.30"


class Compilers(Fact, frozen=True, kw_only=True):
    cxx: Compiler | None = None  # torch's JIT: CXX, else c++
    cc: Compiler | None = None  # distutils' and the aio probe's: CC, else sysconfig's, else cc
    nvcc_host: Compiler | None = None  # -ccbin: CC when set (torch passes it), else NVCC_CCBIN, else gcc/g++ on PATH
    found: tuple[Compiler, ...] = ()  # every gcc-N/clang-N seen on PATH: candidates for a remedy
    ninja: Ninja | None = None
    standard_libraries: tuple[StandardLibrary, ...] = ()
    libaio_header: str | None = None  # path of libaio.h that the compiler would find
    libaio_link: str | None = None  # libaio.so (unversioned, or .a)
    libaio_runtime: str | None = None  # libaio.so.1*
    nccl_header: str | None = None  # nccl.h outside the toolkit; "": looked, none there
    libcuda_link: str | None = None  # libcuda.so (unversioned) that -lcuda would find; "": none
    libc_headers: bool | None = None  # stdio.h/limits.h of libc are there
    from_text: bool = False  # taken from pasted text: of headers and libraries nothing is known
