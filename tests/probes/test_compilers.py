"""Compilers as they answer (recorded texts in small programs), and libraries in constructed folders."""

import struct
from pathlib import Path

import pytest

from dsdoctor.facts import Compilers, Python
from dsdoctor.probes import compilers, libraries
from dsdoctor.probes.compiler_version import family_of, version_of
from dsdoctor.probes.system import System

GCC12 = """gcc (Debian 12.2.0-14+deb12u1) 12.2.0
Copyright (C) 2022 Free Software Foundation, Inc.
This is free software; see the source for copying conditions.  There is NO
warranty; not even for MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE."""
FSF = "\nCopyright (C) 2020 Free Software Foundation, Inc."


@pytest.mark.parametrize(
    ("said", "family", "version"),
    [
        (GCC12, "gcc", "12.2.0"),
        ("gcc (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0" + FSF, "gcc", "13.3.0"),
        ("gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)" + FSF, "gcc", "11.4.1"),
        ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 13.3.0-1) 13.3.0" + FSF, "gcc", "13.3.0"),
        ("gcc (crosstool-NG 1.24.0.133_b0863d8_dirty) 9.3.0" + FSF, "gcc", "9.3.0"),
        ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu", "clang", "14.0.6"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64-pc-linux-gnu", "clang", "18.1.3"),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)\nTarget: arm64-apple-darwin23", "apple-clang", "15.0.0"),
        ("\nnvc++ 24.3-0 64-bit target on x86-64 Linux -tp zen3\nNVIDIA Compilers and Tools", "nvhpc", "24.3"),
        ("Intel(R) oneAPI DPC++/C++ Compiler 2024.0.0 (2024.0.0.20231017)", "intel", "2024.0.0"),
        ("icpc (ICC) 2021.10.0 20230609", "intel", "2021.10.0"),
        ("Microsoft (R) C/C++ Optimizing Compiler Version 19.38.33133 for x64", "msvc", "19.38.33133"),
        ("hello", "unknown", None),
    ],
)
def test_who_answered(said: str, family: str, version: str | None) -> None:
    assert (family_of(said), version_of(said)) == (family, version)


def program(path: Path, text: str = GCC12, code: int = 0, also: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{also}\n/bin/cat <<'X'\n{text}\nX\nexit {code}\n")
    path.chmod(0o755)
    return path


def touch(path: Path, data: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def patient(prefix: Path) -> Python:
    return Python(
        executable=f"{prefix}/bin/python", chosen_because="--python", version="3.11.7", prefix=str(prefix),
        base_prefix=str(prefix), scripts_dir=f"{prefix}/bin",
    )  # fmt: skip


class Machine:
    """PATH is ``bin`` only; files are read below ``root``."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.root = folder / "bin", folder / "root"
        for path in (self.bin, self.root):
            path.mkdir()

    def examine(self, python: Python | None = None, limit_s: float = 5.0, **variables: str) -> Compilers:
        env = {"PATH": str(self.bin), **variables}
        return compilers.probe(System(env, root=self.root, cwd=str(self.bin), platform="linux"), python, limit_s)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_defaults_of_torch_distutils_and_nvcc(machine: Machine) -> None:
    for name in ("c++", "cc", "gcc"):
        program(machine.bin / name)
    found = machine.examine()
    assert found.cxx is not None
    assert (found.cxx.command, found.cxx.selected_by, found.cxx.version, found.cxx.major) == (
        "c++",
        "default",
        "12.2.0",
        12,
    )
    assert found.cc is not None
    assert found.cc.command == "cc"
    assert found.nvcc_host is not None
    assert (found.nvcc_host.command, found.nvcc_host.path) == ("gcc", str(machine.bin / "gcc"))


def test_variables_choose(machine: Machine) -> None:
    for name in ("c++", "cc", "gcc", "g++-11", "gcc-11"):
        program(machine.bin / name, GCC12.replace("12.2.0", "11.4.0") if "11" in name else GCC12)
    found = machine.examine(CXX="g++-11", CC="gcc-11")
    chosen = [found.cxx, found.cc, found.nvcc_host]
    assert [(c.command, c.selected_by, c.version) for c in chosen if c] == [
        ("g++-11", "CXX", "11.4.0"),
        ("gcc-11", "CC", "11.4.0"),
        ("gcc-11", "CC", "11.4.0"),
    ]


@pytest.mark.parametrize(
    ("variables", "by"),
    [
        ({"NVCC_CCBIN": "{}/other"}, "NVCC_CCBIN"),
        ({"NVCC_PREPEND_FLAGS": "-O3 -ccbin {}/other", "NVCC_CCBIN": "/x/gcc"}, "NVCC_PREPEND_FLAGS"),
        ({"NVCC_PREPEND_FLAGS": "-ccbin=/x/gcc", "CC": "{}/other"}, "CC"),
        ({"NVCC_APPEND_FLAGS": "--compiler-bindir={}/other", "CC": "gcc"}, "NVCC_APPEND_FLAGS"),
    ],
)
def test_nvccs_host_compiler_in_its_own_order(machine: Machine, variables: dict[str, str], by: str) -> None:
    program(machine.bin / "gcc")
    program(machine.bin / "other", GCC12.replace("12.2.0", "9.5.0"))
    host = machine.examine(
        None, 5.0, **{name: value.format(machine.bin) for name, value in variables.items()}
    ).nvcc_host
    assert host is not None
    assert (host.path, host.selected_by, host.version) == (str(machine.bin / "other"), by, "9.5.0")


def test_a_launcher_before_the_compiler(machine: Machine) -> None:
    program(machine.bin / "ccache", "ccache version 4.8")
    program(machine.bin / "g++")
    cxx = machine.examine(CXX="ccache g++").cxx
    assert cxx is not None
    assert (cxx.command, cxx.path, cxx.version) == ("ccache g++", str(machine.bin / "g++"), "12.2.0")


def test_the_compiler_that_built_python(machine: Machine) -> None:
    program(machine.bin / "gcc")
    text = "build_time_vars = {'AR': 'ar',\n 'CC': 'gcc -pthread',\n 'CXX': 'g++ -pthread'}\n"
    touch(machine.root / "opt/py/lib/python3.11/_sysconfigdata__linux_x86_64-linux-gnu.py", text.encode())
    cc = machine.examine(patient(Path("/opt/py"))).cc
    assert cc is not None
    assert (cc.command, cc.selected_by, cc.version) == ("gcc -pthread", "sysconfig", "12.2.0")


def test_no_compiler_at_all(machine: Machine) -> None:
    found = machine.examine()
    assert found.cxx is not None
    assert (found.cxx.command, found.cxx.path, found.cxx.version) == ("c++", None, None)
    assert found.found == ()
    assert found.libc_headers is False


@pytest.mark.parametrize(
    ("text", "code", "also", "says"),
    [
        ("cannot execute cc1plus", 1, "", "ended with exit code 1: cannot execute cc1plus"),
        ("hello", 0, "", "printed no version: hello"),
        ("", 0, "exec /bin/sleep 20", "gave no answer within 1 s"),
        ("", 0, "kill -ILL $$", "was ended by SIGILL"),
    ],
)
def test_a_compiler_that_is_broken(machine: Machine, text: str, code: int, also: str, says: str) -> None:
    program(machine.bin / "c++", text, code, also)
    cxx = machine.examine(limit_s=1.0).cxx
    assert cxx is not None
    assert (cxx.version, cxx.problem) == (None, says)


def test_candidates_on_path(machine: Machine) -> None:
    program(machine.bin / "gcc")
    (machine.bin / "gcc-12").symlink_to("gcc")
    program(machine.bin / "g++-10", also="echo never asked; exit 9")
    program(machine.bin / "clang++-18", also="exit 9")
    program(machine.bin / "gcc-ar-12")
    found = {c.command: (c.family, c.version) for c in machine.examine().found}
    assert found == {
        "gcc": ("gcc", "12.2.0"),
        "gcc-12": ("gcc", "12.2.0"),
        "g++-10": ("gcc", "10"),
        "clang++-18": ("clang", "18"),
    }


def test_ninja_on_path_as_torch_asks(machine: Machine) -> None:
    program(machine.bin / "ninja", "1.11.1.git.kitware.jobserver-1")
    ninja = machine.examine().ninja
    assert ninja is not None
    assert (ninja.path, ninja.version, ninja.problem) == (
        str(machine.bin / "ninja"),
        "1.11.1.git.kitware.jobserver-1",
        None,
    )


def test_a_ninja_whose_wheel_is_gone(machine: Machine) -> None:
    program(machine.bin / "ninja", "ModuleNotFoundError: No module named 'ninja'", 1)
    ninja = machine.examine().ninja
    assert ninja is not None
    assert ninja.version is None
    assert ninja.problem == "ended with exit code 1: ModuleNotFoundError: No module named 'ninja'"


def test_ninja_in_an_environment_that_is_not_active(machine: Machine) -> None:
    touch(machine.root / "opt/venv/bin/ninja")
    ninja = machine.examine(patient(Path("/opt/venv"))).ninja
    assert ninja is not None
    assert (ninja.path, ninja.in_environment) == (None, "/opt/venv/bin/ninja")


def test_the_standard_libraries_and_their_newest_symbol(machine: Machine) -> None:
    symbols = b"\0GLIBCXX_3.4\0GLIBCXX_3.4.9\0GLIBCXX_3.4.%d\0GLIBCXX_LDBL_3.4\0"
    touch(machine.root / "usr/lib64/libstdc++.so.6", symbols % 25)
    touch(machine.root / "opt/conda/lib/libstdc++.so.6", symbols % 34)
    touch(machine.root / "opt/conda/conda-meta/history")
    found = machine.examine(patient(Path("/opt/conda"))).standard_libraries
    assert [(lib.owner, lib.path, lib.glibcxx) for lib in found] == [
        ("system", "/usr/lib64/libstdc++.so.6", "3.4.25"),
        ("conda", "/opt/conda/lib/libstdc++.so.6", "3.4.34"),
    ]


def test_libaio_of_the_distribution(machine: Machine) -> None:
    folder = f"usr/lib/{libraries.multiarch()}"
    touch(machine.root / "usr/include/libaio.h")
    touch(machine.root / folder / "libaio.so")
    touch(machine.root / folder / "libaio.so.1t64")
    found = machine.examine()
    assert found.libaio_header == "/usr/include/libaio.h"
    assert (found.libaio_link, found.libaio_runtime) == (f"/{folder}/libaio.so", f"/{folder}/libaio.so.1t64")


def test_libaio_by_flags_as_deepspeed_advises(machine: Machine) -> None:
    touch(machine.root / "opt/libaio/include/libaio.h")
    touch(machine.root / "opt/libaio/lib/libaio.a")
    found = machine.examine(CFLAGS="-O2 -I /opt/libaio/include", LDFLAGS="-L/opt/libaio/lib")
    assert found.libaio_header == "/opt/libaio/include/libaio.h"
    assert (found.libaio_link, found.libaio_runtime) == ("/opt/libaio/lib/libaio.a", None)


def test_condas_libaio_serves_condas_compiler_only(machine: Machine) -> None:
    program(machine.bin / "gcc")
    touch(machine.root / "opt/conda/conda-meta/history")
    touch(machine.root / "opt/conda/include/libaio.h")
    touch(machine.root / "opt/conda/lib/libaio.so.1")
    found = machine.examine(patient(Path("/opt/conda")))
    assert (found.libaio_header, found.libaio_runtime) == (None, "/opt/conda/lib/libaio.so.1")


def test_libcuda_and_nccl_that_were_looked_for_and_are_not_there(machine: Machine) -> None:
    found = machine.examine()
    assert (found.libcuda_link, found.nccl_header) == ("", ""), "None would say that nobody looked"
    touch(machine.root / "opt/stubs/libcuda.so")
    touch(machine.root / "usr/include/nccl.h")
    there = machine.examine(LIBRARY_PATH="/opt/stubs")
    assert (there.libcuda_link, there.nccl_header) == ("/opt/stubs/libcuda.so", "/usr/include/nccl.h")


def test_headers_of_libc(machine: Machine) -> None:
    touch(machine.root / "usr/include/stdio.h")
    assert machine.examine().libc_headers is False
    touch(machine.root / "usr/include/limits.h")
    assert machine.examine().libc_headers is True


def cache(*entries: tuple[int, str, str]) -> bytes:
    """A loader cache as ldconfig writes it: header, entries, strings."""
    at, table, rows = 48 + 24 * len(entries), b"", b""
    for flags, name, path in entries:
        where = [at + len(table), at + len(table) + len(name) + 1]
        table += f"{name}\0{path}\0".encode()
        rows += struct.pack("<iIIIQ", flags, *where, 0, 0)
    return b"glibc-ld.so.cache1.1" + struct.pack("<II", len(entries), len(table)) + b"\2" + bytes(19) + rows + table


def test_the_loaders_cache(tmp_path: Path) -> None:
    touch(tmp_path / "usr/local/nvidia/lib64/libcuda.so.1")
    touch(tmp_path / "private/libcuda.so.1")
    rows = (
        (0x0003, "libcuda.so.1", "/usr/lib32/libcuda.so.1"),
        (0x0303, "libcuda.so.1", "/gone/libcuda.so.1"),
        (0x0303, "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"),
    )
    touch(tmp_path / "usr/lib32/libcuda.so.1")
    touch(tmp_path / "etc/ld.so.cache", cache(*rows))
    assert libraries.find(System({}, root=tmp_path), "libcuda.so.1") == "/usr/local/nvidia/lib64/libcuda.so.1"
    system = System({"LD_LIBRARY_PATH": "/empty:/private"}, root=tmp_path)
    assert libraries.find(system, "libcuda.so.1") == "/private/libcuda.so.1"
    touch(tmp_path / "etc/ld.so.cache", cache(*rows)[:60])
    assert libraries.find(System({}, root=tmp_path), "libcuda.so.1") is None
