"""The CUDA toolkit: found, complete, and fit for this torch and this GPU."""

from typing import Any

import pytest
from dsdoctor_checks import cuda as family

from dsdoctor import healthy as h
from dsdoctor.facts import Fact, Toolkit, Toolkits
from dsdoctor.facts.toolkit import HEADERS
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

CHECKS = checks_of(family)
OTHER = h.toolkit(
    root="/usr/local/cuda-13.0", found_by="/usr/local", nvcc="/usr/local/cuda-13.0/bin/nvcc", real_path=None
)


def old(**changes: Any) -> Toolkit:
    return h.toolkit(
        **{
            "version": "12.4",
            "gcc_max": 13,
            "real_path": "/usr/local/cuda-12.4",
            "architectures": ("8.0", "8.6", "9.0"),
            **changes,
        }
    )


def found(check: Check, *sections: Fact) -> Finding:
    judged = verdict(check, h.healthy(*sections))
    assert judged.status is Status.FAILED, judged.reason
    assert judged.findings[0].remedy is not None
    return judged.findings[0]


def commands(finding: Finding) -> tuple[str, ...]:
    assert finding.remedy is not None
    return finding.remedy.commands


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.code)
def test_a_healthy_toolkit_is_quiet(check: Check) -> None:
    judged = verdict(check, h.healthy())
    assert not judged.findings
    optional = {"CUDA006", "CUDA013", "CUDA015"}
    assert judged.status is (Status.NOT_APPLICABLE if check.code in optional else Status.PASSED), judged.reason


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.code)
@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ((h.torch(version="2.13.0+cpu", cuda=None),), "not a CUDA build"),
        ((h.no_gpus(), h.purpose(name="ci-cpu")), "no GPU is here"),
    ],
)
def test_a_machine_without_cuda_is_not_judged(check: Check, sections: tuple[Fact, ...], reason: str) -> None:
    judged = verdict(check, h.healthy(Toolkits(), *sections))
    assert judged.status is Status.NOT_APPLICABLE
    assert reason in (judged.reason or "")


def test_a_builder_without_a_gpu_is_judged() -> None:
    assert found(family.toolkit_found, Toolkits(), h.no_gpus(), h.purpose(name="builder")).cause == "cuda-home-missing"


def test_no_toolkit_is_one_finding_with_the_packages_of_torchs_cuda() -> None:
    machine = h.healthy(Toolkits())
    failed = [c.code for c in CHECKS if verdict(c, machine).status is Status.FAILED]
    assert failed == ["CUDA001"]
    finding = found(family.toolkit_found, Toolkits())
    assert "CUDA_HOME and CUDA_PATH are not set" in finding.message
    assert "cuda-toolkit-13-0" in commands(finding)[0]
    assert commands(finding)[1] == "export CUDA_HOME=/usr/local/cuda-13.0"


def test_an_empty_cuda_home_hides_the_toolkit_that_is_there() -> None:
    finding = found(family.toolkit_found, Toolkits(found=(OTHER,)), h.environment(CUDA_HOME=""))
    assert "CUDA_HOME is set to nothing" in finding.message
    assert commands(finding) == ("export CUDA_HOME=/usr/local/cuda-13.0",)


@pytest.mark.parametrize(
    ("root", "exists", "word", "command"),
    [
        (":/usr/local/cuda", False, "joined by ':'", "unset CUDA_HOME"),
        ("/usr/local/cuda-9.9", False, "does not exist", "unset CUDA_HOME"),
        ("/usr/local/cuda/bin", True, "ends in /bin", "export CUDA_HOME=/usr/local/cuda"),
    ],
)
def test_a_malformed_cuda_home_is_told_once(root: str, exists: bool, word: str, command: str) -> None:
    kits = h.toolkits(h.toolkit(root=root, exists=exists, nvcc=None, version=None, headers=(), libraries={}))
    finding = found(family.home_well_formed, kits)
    assert word in (finding.message + finding.evidence[0].text)
    assert finding.evidence[0].text == root
    assert commands(finding) == (command,)
    assert [c.code for c in CHECKS if verdict(c, h.healthy(kits)).status is Status.FAILED] == ["CUDA002"]


def test_windows_drives_are_no_list_of_folders() -> None:
    kits = h.toolkits(h.toolkit(root="C:/CUDA/v13.0", nvcc="C:/CUDA/v13.0/bin/nvcc.exe"))
    assert verdict(family.home_well_formed, h.healthy(kits)).status is Status.PASSED


def test_a_runtime_image_is_named_and_nothing_else_fails() -> None:
    kits = h.toolkits(h.toolkit(nvcc=None, headers=(), libraries={}))
    finding = found(family.nvcc_there, kits, h.host(container="docker", is_root=True))
    assert finding.cause == "cuda-runtime-image"
    assert "-devel" in (finding.remedy.note or "" if finding.remedy else "")
    machine = h.healthy(kits, h.host(container="docker"))
    assert [c.code for c in CHECKS if verdict(c, machine).status is Status.FAILED] == ["CUDA003"]


def test_nvcc_on_path_is_not_in_cuda_home() -> None:
    kits = h.toolkits(h.toolkit(root="/opt/cuda", nvcc=None), OTHER, nvcc_on_path=OTHER.nvcc)
    assert found(family.nvcc_there, kits).cause == "cuda-home-without-nvcc"
    finding = found(family.nvcc_of_home, kits)
    assert "/usr/local/cuda-13.0/bin/nvcc" in finding.message
    assert commands(finding) == commands(found(family.nvcc_there, kits)) == ("export CUDA_HOME=/usr/local/cuda-13.0",)


def test_an_nvcc_that_does_not_start() -> None:
    kits = h.toolkits(h.toolkit(version=None, nvcc_problem="is not executable"))
    assert "nvcc is not executable" in found(family.nvcc_there, kits).message


def test_another_major_version_takes_the_toolkit_that_is_here() -> None:
    finding = found(family.same_major, h.toolkits(old(), OTHER))
    assert "12.4" in finding.message
    assert "13.0" in finding.message
    assert commands(finding) == ("export CUDA_HOME=/usr/local/cuda-13.0",)
    assert "cuda-toolkit-13-0" in commands(found(family.same_major, h.toolkits(old())))[0]
    assert verdict(family.same_minor, h.healthy(h.toolkits(old()))).status is Status.NOT_APPLICABLE


def test_conda_installs_its_own_toolkit() -> None:
    conda = h.python(environment="conda", prefix="/opt/conda/envs/ds")
    finding = found(family.same_major, h.toolkits(old()), conda)
    assert "cuda-version=13.0" in commands(finding)[0]
    assert commands(finding)[1] == "export CUDA_HOME=/opt/conda/envs/ds"


def test_another_minor_version_warns() -> None:
    judged = verdict(family.same_minor, h.healthy(h.toolkits(h.toolkit(version="13.2"))))
    assert judged.severity is Severity.WARNING
    assert "13.2" in judged.findings[0].message


def test_the_skip_variable_does_not_help_across_majors() -> None:
    assert commands(found(family.skip_check_enough, h.toolkits(old(), skip_check=True))) == (
        "unset DS_SKIP_CUDA_CHECK",
    )
    same = h.healthy(h.toolkits(skip_check=True))
    assert verdict(family.skip_check_enough, same).status is Status.PASSED


def test_several_toolkits_matter_only_without_cuda_home() -> None:
    kits = h.toolkits(old(found_by="PATH"), OTHER, chosen_by="nvcc on PATH")
    assert "nvcc on PATH" in found(family.one_toolkit, kits).message
    clear = h.healthy(h.toolkits(OTHER, old(root="/opt/old"), chosen_by="CUDA_HOME"))
    assert verdict(family.one_toolkit, clear).status is Status.PASSED


def test_missing_headers_name_the_packages_of_nvccs_release() -> None:
    kits = h.toolkits(h.toolkit(headers=("cuda_runtime_api.h",)))
    finding = found(family.math_headers, kits)
    assert "cublas_v2.h, cusparse.h, cusolverDn.h" in finding.message
    assert "cuda-libraries-dev-13-0" in commands(finding)[0]
    assert verdict(family.curand_header, h.healthy(kits)).status is Status.NOT_APPLICABLE
    fedora = found(family.math_headers, kits, h.host(package_manager="dnf"))
    assert "cuda-libraries-devel-13-0" in commands(fedora)[0]


def test_headers_of_pip_serve_through_cpath() -> None:
    pip = h.toolkit(root=f"{h.SITE}/nvidia/cu13", found_by="pip", nvcc=None)
    kits = h.toolkits(h.toolkit(headers=()), pip)
    assert commands(found(family.math_headers, kits)) == (f'export CPATH="{h.SITE}/nvidia/cu13/include:$CPATH"',)
    named = h.healthy(kits, h.environment(CPATH=f"{h.SITE}/nvidia/cu13/include"))
    assert verdict(family.math_headers, named).status is Status.PASSED
    elsewhere = h.healthy(kits, h.environment(CPATH="/opt/include"))
    assert verdict(family.math_headers, elsewhere).status is Status.UNKNOWN


def test_curands_header_alone() -> None:
    without = tuple(name for name in HEADERS if name != "curand_kernel.h")
    assert "libcurand-dev-13-0" in commands(found(family.curand_header, h.toolkits(h.toolkit(headers=without))))[0]


def test_libraries_that_the_linker_does_not_find() -> None:
    finding = found(
        family.libraries_linked, h.toolkits(h.toolkit(libraries={"cudart": "/usr/local/cuda/lib64/libcudart.so"}))
    )
    assert "libcurand.so" in finding.message
    assert "libcudart.so" not in finding.message
    conda = h.toolkit(root="/opt/conda", found_by="conda", lib_dir="lib")
    assert found(family.libraries_linked, h.toolkits(conda)).cause == "conda-lib-not-lib64"
    named = h.healthy(h.toolkits(conda), h.environment(LIBRARY_PATH="/opt/conda/lib:"))
    assert verdict(family.libraries_linked, named).status is Status.PASSED


@pytest.mark.parametrize(
    ("capability", "kit", "torch_cuda", "package"),
    [
        ("12.0", old(), "12.4", "cuda-toolkit-12-8"),
        ("12.0", old(), "13.0", "cuda-toolkit-13-0"),
        ("7.0", h.toolkit(), "13.0", "cuda-toolkit-12-9"),
    ],
)
def test_a_gpu_that_nvcc_does_not_know(capability: str, kit: Toolkit, torch_cuda: str, package: str) -> None:
    gpus = h.gpus(2, devices=(h.gpu(compute_capability=capability), h.gpu(index=1, compute_capability=capability)))
    finding = found(family.gpu_known_to_nvcc, h.toolkits(kit), gpus, h.torch(cuda=torch_cuda))
    assert f"compute capability {capability}" in finding.message
    assert package in commands(finding)[0]
    judged = verdict(family.gpu_known_to_nvcc, h.healthy(h.toolkits(kit), gpus))
    assert len(judged.findings) == 1, "two GPUs of one kind are told once"


def test_nvcc_that_lists_nothing_is_unknown() -> None:
    kits = h.toolkits(h.toolkit(architectures=()))
    assert verdict(family.gpu_known_to_nvcc, h.healthy(kits)).status is Status.UNKNOWN


def test_the_distributions_old_nvcc() -> None:
    kit = old(root="/usr", nvcc="/usr/bin/nvcc", version="12.0", real_path=None)
    assert "/usr/bin/nvcc of the distribution is 12.0" in found(family.distro_nvcc, h.toolkits(kit)).message


@pytest.mark.parametrize(
    ("torch", "nvcc", "cause"),
    [("2.1.2", "10.2", "nvcc-no-cxx17"), ("2.12.0", "11.8", "nvcc-no-cxx20"), ("2.12.0", "12.4", "nvcc-no-cxx20")],
)
def test_nvcc_lacks_the_standard(torch: str, nvcc: str, cause: str) -> None:
    finding = found(family.nvcc_standard, h.torch(version=torch, cuda="12.6"), h.toolkits(h.toolkit(version=nvcc)))
    assert finding.cause == cause
    assert nvcc in finding.message
    assert torch in finding.message


@pytest.mark.parametrize(("torch", "nvcc"), [("2.12.0", "12.6"), ("2.11.0", "12.4"), ("1.13.1", "10.2")])
def test_nvcc_has_the_standard(torch: str, nvcc: str) -> None:
    machine = h.healthy(h.torch(version=torch, cuda="12.6"), h.toolkits(h.toolkit(version=nvcc)))
    assert verdict(family.nvcc_standard, machine).status is Status.PASSED


def test_libraries_of_another_cuda_come_first() -> None:
    path = "/usr/local/cuda-11.8/lib64:/opt/mine/lib"
    finding = found(family.library_path, h.environment(LD_LIBRARY_PATH=path))
    assert "CUDA 11.8" in finding.message
    assert "CUDA 13.0" in finding.message
    assert commands(finding) == ("export LD_LIBRARY_PATH=/opt/mine/lib",)
    same = h.healthy(h.environment(LD_LIBRARY_PATH="/usr/local/cuda/lib64"))
    assert verdict(family.library_path, same).status is Status.PASSED
    newer = h.healthy(h.environment(LD_LIBRARY_PATH="/usr/local/cuda-14.0/lib64"))
    assert verdict(family.library_path, newer).severity is Severity.INFO


def test_pasted_text_decides_versions_and_nothing_about_files() -> None:
    kit = Toolkit(
        root="/usr/local/cuda", found_by="CUDA_HOME", nvcc="/usr/local/cuda/bin/nvcc", version="12.4", from_text=True
    )
    machine = h.healthy(h.toolkits(kit))
    states = {c.code: verdict(c, machine).status for c in CHECKS}
    assert states["CUDA004"] is Status.FAILED
    assert {states[c] for c in ("CUDA009", "CUDA010", "CUDA011", "CUDA012")} == {Status.UNKNOWN}
