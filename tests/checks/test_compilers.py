"""Compilers, ninja and the C++ library."""

from typing import Any

import msgspec
import pytest
from dsdoctor_checks import compilers as family

from dsdoctor import healthy as h
from dsdoctor.facts import Compilers, Fact, Ninja, StandardLibrary, Unavailable
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

CHECKS = checks_of(family)
SYSTEM = StandardLibrary(path="/usr/lib/x86_64-linux-gnu/libstdc++.so.6", owner="system", glibcxx="3.4.33")
CONDA = StandardLibrary(path="/opt/conda/lib/libstdc++.so.6", owner="conda", glibcxx="3.4.29")


def found(check: Check, *sections: Fact) -> Finding:
    judged = verdict(check, h.healthy(*sections))
    assert judged.status is Status.FAILED, judged.reason
    assert judged.findings[0].remedy is not None
    return judged.findings[0]


def commands(finding: Finding) -> tuple[str, ...]:
    assert finding.remedy is not None
    return finding.remedy.commands


def named(command: str, version: str) -> Any:
    return h.compiler(command=command, path=f"/usr/bin/{command}", selected_by="PATH", version=version)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.code)
def test_healthy_compilers_are_quiet(check: Check) -> None:
    judged = verdict(check, h.healthy())
    assert judged.status is (Status.NOT_APPLICABLE if check.code == "CXX007" else Status.PASSED), judged.reason


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.code)
def test_nothing_known_is_never_healthy(check: Check) -> None:
    assert verdict(check, h.healthy(Compilers())).status in (Status.UNKNOWN, Status.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("host", "word"),
    [
        (h.host(), "install -y g++"),
        (h.host(package_manager="dnf"), "gcc-c++"),
        (h.host(system="darwin", package_manager="brew"), "xcode-select"),
        (h.host(system="windows", package_manager="winget"), "VCTools"),
    ],
)
def test_no_compiler_is_one_finding_with_this_systems_command(host: Fact, word: str) -> None:
    nothing = h.compiler(path=None, version=None, family="unknown")
    lost = h.compilers(cxx=nothing, cc=nothing, nvcc_host=nothing, libc_headers=False)
    assert word in commands(found(family.compiler_there, lost, host))[0]
    assert [c.code for c in CHECKS if verdict(c, h.healthy(lost, host)).status is Status.FAILED] == ["CXX001"]


def test_a_cxx_that_is_not_there_is_unset() -> None:
    lost = h.compilers(cxx=h.compiler(command="g++-99", path=None, selected_by="CXX"))
    finding = found(family.compiler_there, lost)
    assert "g++-99" in finding.message
    assert commands(finding) == ("unset CXX",)


def test_too_new_a_gcc_takes_the_older_one_that_is_here() -> None:
    candidates = tuple(
        named(c, v) for c, v in (("gcc-12", "12"), ("g++-12", "12.3.0"), ("g++-11", "11"), ("gcc-13", "13"))
    )
    sick = h.compilers(nvcc_host=named("gcc", "14.2.0"), found=candidates)
    finding = found(family.gcc_accepted, sick, h.toolkits(h.toolkit(version="12.2", gcc_max=12)), h.torch(cuda="12.1"))
    assert "gcc 14.2.0" in finding.message
    assert "up to 12" in finding.message
    assert commands(finding) == ("export CC=/usr/bin/gcc-12", "export CXX=/usr/bin/g++-12")


def test_too_new_a_gcc_and_no_other_installs_one() -> None:
    sick = h.compilers(nvcc_host=named("gcc", "14.2.0"), found=())
    kits = h.toolkits(h.toolkit(version="12.2", gcc_max=None))
    finding = found(family.gcc_accepted, sick, kits)
    assert "install -y g++-12" in commands(finding)[0], "the table knows 12.2 when the header was not read"
    conda = found(family.gcc_accepted, sick, kits, h.python(environment="conda", prefix="/opt/conda"))
    assert "gxx_linux-64=12" in commands(conda)[0]


def test_the_distributions_nvcc_and_clang_have_their_own_words() -> None:
    kits = h.toolkits(h.toolkit(root="/usr", nvcc="/usr/bin/nvcc", gcc_max=12, clang_max=15))
    gcc = h.compilers(nvcc_host=named("gcc", "14.2.0"))
    assert found(family.gcc_accepted, gcc, kits).cause == "ubuntu-nvcc-no-host-compiler"
    clang = h.compilers(nvcc_host=h.compiler(command="clang", path="/usr/bin/clang", family="clang", version="18.1.0"))
    assert "up to 15" in found(family.gcc_accepted, clang, kits).message


@pytest.mark.parametrize(
    ("sections", "status"),
    [
        ((h.toolkits(h.toolkit(gcc_max=None, version="99.0")),), Status.UNKNOWN),
        ((h.toolkits(h.toolkit(gcc_max=12)), h.environment(NVCC_APPEND_FLAGS="-allow-unsupported-compiler")), Status.NOT_APPLICABLE),
        ((h.torch(cuda=None),), Status.NOT_APPLICABLE),
    ],
)  # fmt: skip
def test_nvccs_limit_cannot_be_judged(sections: tuple[Fact, ...], status: Status) -> None:
    assert verdict(family.gcc_accepted, h.healthy(*sections)).status is status


@pytest.mark.parametrize(
    ("torch", "gcc", "severity"),
    [
        ("2.11.0", "7.5.0", Severity.ERROR),
        ("2.12.0", "9.4.0", Severity.ERROR),
        ("2.12.0", "10.2.1", Severity.WARNING),
        ("2.14.0", "10.2.1", Severity.ERROR),
    ],
)
def test_an_old_gcc(torch: str, gcc: str, severity: Severity) -> None:
    judged = verdict(family.gcc_new_enough, h.healthy(h.torch(version=torch), h.compilers(cxx=h.compiler(version=gcc))))
    assert judged.severity is severity
    assert gcc in judged.findings[0].message
    assert torch in judged.findings[0].message
    assert judged.findings[0].remedy is not None
    assert judged.findings[0].remedy.commands[-1] == "export CXX=/usr/bin/g++-13"


def test_gcc_11_is_enough_for_cxx20() -> None:
    machine = h.healthy(h.torch(version="2.13.0"), h.compilers(cxx=h.compiler(version="11.4.0")))
    assert verdict(family.gcc_new_enough, machine).status is Status.PASSED


def test_the_hpc_compiler_is_named_once() -> None:
    nvc = h.compiler(
        command="nvc++", path="/opt/nvidia/hpc_sdk/bin/nvc++", selected_by="CXX", family="nvhpc", version="24.1"
    )
    judged = verdict(family.usual_compiler, h.healthy(h.compilers(cxx=nvc, nvcc_host=nvc)))
    assert len(judged.findings) == 1
    assert "NVIDIA's HPC compiler" in judged.findings[0].message


@pytest.mark.parametrize(
    ("ninja", "word", "command"),
    [
        (Ninja(), "not on PATH", "/home/user/env/bin/python -m pip install ninja"),
        (Ninja(in_environment="/home/user/env/bin/ninja"), "not activated", 'export PATH="/home/user/env/bin:$PATH"'),
        (Ninja(path="/usr/bin/ninja", problem="ended with exit code 245"), "exit code 245", "/home/user/env/bin/python -m pip install --force-reinstall ninja"),
    ],
)  # fmt: skip
def test_ninja_cannot_be_run(ninja: Ninja, word: str, command: str) -> None:
    finding = found(family.ninja_runs, h.compilers(ninja=ninja))
    assert word in finding.message
    assert commands(finding) == (command,)


def test_a_folder_with_a_blank_is_quoted() -> None:
    finding = found(family.ninja_runs, h.compilers(ninja=Ninja(in_environment="/home/u/my env;x/bin/ninja")))
    assert commands(finding) == ('export PATH="/home/u/my env;x/bin:$PATH"',)


def test_ninja_on_windows() -> None:
    ninja = Ninja(in_environment="C:\\env\\Scripts\\ninja.exe")
    finding = found(family.ninja_runs, h.compilers(ninja=ninja), h.host(system="windows"))
    assert commands(finding) == ('set "PATH=C:\\env\\Scripts;%PATH%"',)


def test_the_c_librarys_headers() -> None:
    assert "libc6-dev" in commands(found(family.libc_headers, h.compilers(libc_headers=False)))[0]
    mac = h.healthy(h.compilers(libc_headers=None), h.host(system="darwin"))
    assert verdict(family.libc_headers, mac).status is Status.NOT_APPLICABLE


def test_condas_older_cpp_library() -> None:
    both = h.compilers(standard_libraries=(SYSTEM, CONDA))
    finding = found(family.standard_library, both, h.python(environment="conda", prefix="/opt/conda"))
    assert "GLIBCXX_3.4.29" in finding.message
    assert "GLIBCXX_3.4.33" in finding.message
    assert "libstdcxx-ng" in commands(finding)[0]
    own = h.compilers(
        cxx=h.compiler(path="/opt/conda/bin/x86_64-conda-linux-gnu-c++"), standard_libraries=(SYSTEM, CONDA)
    )
    assert verdict(family.standard_library, h.healthy(own)).status is Status.PASSED


def test_a_compiler_that_cannot_say_its_version() -> None:
    broken = h.compiler(path="/opt/bin/c++", selected_by="CXX", version=None, problem="cc1plus: cannot execute")
    finding = found(family.compilers_answer, h.compilers(cxx=broken))
    assert "/opt/bin/c++" in finding.message
    assert "cannot execute" in finding.message
    assert commands(finding) == ("unset CXX",)


def test_a_cxx_standard_below_torchs() -> None:
    finding = found(family.compiler_standard, h.torch(version="2.14.0"), h.deepspeed(version="0.19.4"))
    for word in ("2.14", "C++20", "0.19.4", "C++17"):
        assert word in finding.message
    assert "deepspeed>=0.19.5" in commands(finding)[0]
    for torch, deepspeed in (("2.14.0", "0.19.5"), ("2.13.0", "0.19.4"), ("2.1.2", "0.9.3")):
        machine = h.healthy(h.torch(version=torch), h.deepspeed(version=deepspeed))
        assert verdict(family.compiler_standard, machine).status is Status.PASSED


def test_two_releases_in_a_pasted_report_are_enough_to_compare_standards() -> None:
    pasted = Unavailable(kind="not-asked", detail="a pasted ds_report does not say")
    machine = h.healthy(h.torch(version="2.14.0"), h.deepspeed(version="0.19.4"))
    judged = verdict(family.compiler_standard, msgspec.structs.replace(machine, compilers=pasted))
    assert judged.status is Status.FAILED


ABSENT = h.compiler(command="gcc", path=None, selected_by="PATH", family="unknown", version=None)


def clang(version: str) -> Any:
    return h.compiler(command="clang++", path="/usr/bin/clang++", selected_by="CXX", family="clang", version=version)


def test_a_machine_of_clang_alone_has_no_host_compiler_for_nvcc() -> None:
    finding = found(family.host_compiler_there, h.compilers(cxx=clang("18.1.3"), nvcc_host=ABSENT))
    assert "gcc is not on PATH" in finding.message
    assert "/usr/bin/clang++ is here, which nvcc does not look at" in finding.message
    assert commands(finding) == ("export CC=/usr/bin/clang++", "export CXX=/usr/bin/clang++")


def test_a_clang_that_nvcc_does_not_accept_is_no_way_out() -> None:
    finding = found(family.host_compiler_there, h.compilers(cxx=clang("21.0.0"), nvcc_host=ABSENT))
    assert "install -y g++" in commands(finding)[0]


def test_a_cc_that_is_not_there_is_unset() -> None:
    wrong = h.compiler(command="gcc-99", path=None, selected_by="CC", family="unknown", version=None)
    finding = found(family.host_compiler_there, h.compilers(nvcc_host=wrong))
    assert "gcc-99 (by CC)" in finding.message
    assert commands(finding) == ("unset CC",)


def test_a_gcc_whose_library_nvcc_cannot_read() -> None:
    kit = h.toolkit(root="/usr", nvcc="/usr/bin/nvcc", version="11.5", gcc_max=11)
    sick = h.compilers(nvcc_host=named("gcc", "11.4.0"), found=(named("g++-10", "10.5.0"), named("gcc-10", "10.5.0")))
    finding = found(family.gcc_accepted, sick, h.toolkits(kit), h.torch(version="2.0.1", cuda="11.7"))
    assert finding.cause == "compiler-mismatch-template-errors"
    assert "parameter packs not expanded" in finding.message
    assert commands(finding) == ("export CC=/usr/bin/gcc-10", "export CXX=/usr/bin/g++-10")
    allowed = h.environment(NVCC_APPEND_FLAGS="-allow-unsupported-compiler")
    assert found(family.gcc_accepted, sick, h.toolkits(kit), allowed).cause == "compiler-mismatch-template-errors"
    newer = h.healthy(sick, h.toolkits(h.toolkit(version="11.8", gcc_max=11)), h.torch(version="2.0.1", cuda="11.7"))
    assert verdict(family.gcc_accepted, newer).status is Status.PASSED
