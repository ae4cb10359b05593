"""The CUDA toolkit: found, complete, and fit for this torch and this GPU."""

from typing import Any

import pytest
from dsdoctor_checks import cuda as family

from dsdoctor import healthy as h
from dsdoctor.facts import Environment, Fact, Toolkit, Toolkits
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
    optional = {"CUDA006", "CUDA013", "CUDA015", "CUDA017", "CUDA019"}
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


@pytest.mark.parametrize(
    ("variables", "said", "not_said"),
    [
        ({"CUDA_PATH": ""}, "CUDA_PATH is set to nothing, which ends torch's search", "CUDA_HOME is set"),
        ({"CUDA_HOME": "", "CUDA_PATH": ""}, "CUDA_PATH is set to nothing, which ends torch's search", "CUDA_HOME is set"),
        ({"CUDA_HOME": ""}, "CUDA_HOME is empty, which counts as not set", "ends torch's search"),
    ],
)  # fmt: skip
def test_only_an_empty_cuda_path_ends_torchs_search(variables: dict[str, str], said: str, not_said: str) -> None:
    kits = Toolkits(found=(OTHER,) if "CUDA_PATH" in variables else ())
    finding = found(family.toolkit_found, kits, Environment(variables=variables))
    assert said in finding.message
    assert not_said not in finding.message


def test_an_empty_cuda_path_hides_the_toolkit_that_is_there() -> None:
    finding = found(family.toolkit_found, Toolkits(found=(OTHER,)), Environment(variables={"CUDA_PATH": ""}))
    assert commands(finding) == ("export CUDA_HOME=/usr/local/cuda-13.0",), "a CUDA_HOME goes before an empty CUDA_PATH"


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


@pytest.mark.parametrize(
    ("nvcc", "torch_cuda", "release"),
    [("12.4", "12.8", "0.19.8"), ("12.9", "12.6", "0.17.2"), ("11.5", "11.8", "0.7.4"), ("10.1", "10.2", "0.4.0")],
)
def test_minor_versions_that_deepspeed_lists_are_fine(nvcc: str, torch_cuda: str, release: str) -> None:
    machine = h.healthy(h.toolkits(h.toolkit(version=nvcc)), h.torch(cuda=torch_cuda), h.deepspeed(version=release))
    assert verdict(family.same_minor, machine).status is Status.PASSED


def test_minor_versions_that_deepspeed_does_not_list_concern_builds_at_install_time() -> None:
    kits = h.toolkits(h.toolkit(version="13.2"))
    judged = verdict(family.same_minor, h.healthy(kits))
    assert judged.severity is Severity.INFO, "a build at first use compares nothing since 0.12.3"
    for word in ("13.2", "13.0", "DeepSpeed 0.19.8", "at install time", "builds at first use go on"):
        assert word in judged.findings[0].message
    assert commands(judged.findings[0]) == ("export DS_SKIP_CUDA_CHECK=1",)
    asked = h.healthy(kits, h.environment(DS_BUILD_FUSED_ADAM="1"))
    assert verdict(family.same_minor, asked).severity is Severity.WARNING
    told = h.healthy(h.toolkits(h.toolkit(version="13.2"), skip_check=True), h.environment(DS_BUILD_OPS="1"))
    assert verdict(family.same_minor, told).severity is Severity.INFO


def test_deepspeed_before_0_12_3_compares_minor_versions_at_first_use_too() -> None:
    kits, torch = h.toolkits(h.toolkit(version="12.4")), h.torch(version="2.1.2", cuda="12.1")
    judged = verdict(family.same_minor, h.healthy(kits, torch, h.deepspeed(version="0.12.2")))
    assert judged.severity is Severity.WARNING
    assert "when it builds an op" in judged.findings[0].message


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


def test_a_folder_with_a_blank_is_quoted_for_the_shell() -> None:
    conda = h.toolkit(root="/opt/my conda", found_by="conda", lib_dir="lib")
    finding = found(family.curand_linked, h.toolkits(conda), h.torch(version="1.13.1"))
    assert commands(finding) == ('export LIBRARY_PATH="/opt/my conda/lib:$LIBRARY_PATH"',)
    donor = h.toolkit(root="/home/u/my env/nvidia/cu13", found_by="pip", nvcc=None)
    headers = found(family.math_headers, h.toolkits(h.toolkit(headers=()), donor))
    assert commands(headers) == ('export CPATH="/home/u/my env/nvidia/cu13/include:$CPATH"',)


def test_curands_header_alone() -> None:
    without = tuple(name for name in HEADERS if name != "curand_kernel.h")
    assert "libcurand-dev-13-0" in commands(found(family.curand_header, h.toolkits(h.toolkit(headers=without))))[0]


NO_CURAND = h.toolkit(libraries={"cudart": "/usr/local/cuda/lib64/libcudart.so"})


def test_curand_that_the_linker_does_not_find_names_its_ops() -> None:
    finding = found(family.curand_linked, h.toolkits(NO_CURAND))
    assert finding.cause == "libcurand-link-failure"
    assert "libcurand.so" in finding.message
    assert "random_ltd" in finding.message
    assert "libcurand-dev-13-0" in commands(finding)[0]
    assert verdict(family.cudart_linked, h.healthy(h.toolkits(NO_CURAND))).status is Status.PASSED


def test_cudart_that_the_linker_does_not_find_ends_every_cuda_op() -> None:
    kits = h.toolkits(h.toolkit(libraries={"curand": "/usr/local/cuda/lib64/libcurand.so"}))
    judged = verdict(family.cudart_linked, h.healthy(kits))
    assert judged.severity is Severity.ERROR
    assert judged.findings[0].cause == "libcudart-link-failure"
    assert "cuda-cudart-dev-13-0" in commands(judged.findings[0])[0]
    fedora = found(family.cudart_linked, kits, h.host(package_manager="dnf"))
    assert "cuda-cudart-devel-13-0" in commands(fedora)[0]
    assert verdict(family.curand_linked, h.healthy(kits)).status is Status.PASSED


def test_pips_toolkit_lacks_only_the_name() -> None:
    root = f"{h.SITE}/nvidia/cu13"
    kits = h.toolkits(h.toolkit(root=root, found_by="pip", libraries={}, lib_dir=None, real_path=None))
    assert commands(found(family.cudart_linked, kits)) == (f"ln -s libcudart.so.13 {root}/lib/libcudart.so",)
    assert commands(found(family.curand_linked, kits)) == (f"ln -s libcurand.so.10 {root}/lib/libcurand.so",)


def test_condas_lib_folder_matters_to_older_torch_only() -> None:
    kits = h.toolkits(h.toolkit(root="/opt/conda", found_by="conda", lib_dir="lib"))
    old_torch = h.torch(version="1.13.1", cuda="11.7")
    assert found(family.curand_linked, kits, old_torch).cause == "conda-lib-not-lib64"
    named = h.healthy(kits, old_torch, h.environment(LIBRARY_PATH="/opt/conda/lib:"))
    assert verdict(family.curand_linked, named).status is Status.PASSED
    assert verdict(family.curand_linked, h.healthy(kits, h.torch(version="2.13.0"))).status is Status.PASSED


def test_cpu_adam_of_an_older_deepspeed_needs_curand() -> None:
    kits, older = h.toolkits(NO_CURAND), h.deepspeed(version="0.19.7")
    judged = verdict(family.cpu_ops_linked, h.healthy(kits, older))
    assert judged.severity is Severity.ERROR
    assert "cpp-build" in family.cpu_ops_linked.guards
    finding = judged.findings[0]
    assert finding.cause == "libcurand-link-failure"
    for word in ("0.19.7", "cpu_adam", "no libcurand.so"):
        assert word in finding.message
    assert finding.remedy is not None
    assert "0.19.8" in (finding.remedy.note or "")
    assert verdict(family.curand_linked, h.healthy(kits, older)).status is Status.NOT_APPLICABLE, "told once"
    compiled_in = h.deepspeed(version="0.19.7", prebuilt_ops=("cpu_adam", "cpu_adagrad", "cpu_lion"))
    for quiet in (h.deepspeed(version="0.19.8"), compiled_in):
        assert verdict(family.cpu_ops_linked, h.healthy(kits, quiet)).status is Status.NOT_APPLICABLE
    assert verdict(family.cpu_ops_linked, h.healthy(older)).status is Status.PASSED


@pytest.mark.parametrize(
    ("kits", "cause"),
    [
        (Toolkits(), "cuda-home-missing"),
        (h.toolkits(h.toolkit(nvcc=None)), "cuda-home-without-nvcc"),
        (h.toolkits(h.toolkit(root="/usr/local/cuda-9.9", exists=False, nvcc=None)), "cuda-home-malformed"),
    ],
)
def test_cpu_adam_of_an_older_deepspeed_needs_nvcc(kits: Toolkits, cause: str) -> None:
    assert found(family.cpu_ops_linked, kits, h.deepspeed(version="0.18.9")).cause == cause


def test_two_releases_name_no_folder_for_curand() -> None:
    finding = found(family.cpu_ops_linked, h.deepspeed(version="0.14.4"))
    assert commands(finding) == ('export LIBRARY_PATH="/usr/local/cuda/lib64:$LIBRARY_PATH"',)
    named = h.healthy(h.deepspeed(version="0.14.4"), h.environment(LIBRARY_PATH="/usr/local/cuda/lib64"))
    assert verdict(family.cpu_ops_linked, named).status is Status.PASSED
    assert verdict(family.cpu_ops_linked, h.healthy(h.deepspeed(version="0.14.5"))).status is Status.PASSED


def bare(root: str) -> Toolkit:
    """An nvcc, and nothing else of a toolkit."""
    nvcc = f"{root}/bin/nvcc"
    return h.toolkit(root=root, found_by="PATH", nvcc=nvcc, headers=(), libraries={}, lib_dir=None, real_path=None)


def test_a_wrapper_of_nvcc_is_no_toolkit() -> None:
    kits = h.toolkits(bare("/usr/local"), OTHER, chosen_by="nvcc on PATH")
    finding = found(family.toolkit_whole, kits)
    assert finding.cause == "nvcc-is-no-toolkit"
    assert "/usr/local for the toolkit" in finding.message
    assert "the toolkit is /usr/local/cuda-13.0" in finding.message
    assert commands(finding) == ("export CUDA_HOME=/usr/local/cuda-13.0",)
    failed = [c.code for c in CHECKS if verdict(c, h.healthy(kits)).status is Status.FAILED]
    assert failed == ["CUDA016"], "missing headers and libraries are symptoms"


def test_a_wrapper_whose_toolkit_is_nowhere_asks_nvcc() -> None:
    finding = found(family.toolkit_whole, h.toolkits(bare("/usr/local"), chosen_by="nvcc on PATH"))
    assert "--dryrun" in commands(finding)[0]


def test_a_folder_with_nvcc_alone_lacks_headers_when_no_other_toolkit_is_here() -> None:
    kits = h.toolkits(bare("/opt/cuda-13"), chosen_by="nvcc on PATH")
    assert verdict(family.toolkit_whole, h.healthy(kits)).status is Status.PASSED
    assert verdict(family.math_headers, h.healthy(kits)).status is Status.FAILED


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


@pytest.mark.parametrize(
    ("value", "refused", "command"),
    [
        ("7.0;9.0", "7.0", "export TORCH_CUDA_ARCH_LIST=9.0"),
        ("6.0 7.0+PTX", "6.0, 7.0+PTX", "unset TORCH_CUDA_ARCH_LIST"),
        ("7.0;8.0", "7.0", "unset TORCH_CUDA_ARCH_LIST"),  # what is left does not name the GPU
    ],
)
def test_an_entry_of_the_arch_list_that_nvcc_refuses(value: str, refused: str, command: str) -> None:
    finding = found(family.arch_list_known_to_nvcc, h.environment(TORCH_CUDA_ARCH_LIST=value))
    assert finding.cause == "unsupported-gpu-arch"
    assert f"does not compile for {refused}," in finding.message
    assert commands(finding) == (command,)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("9.0", Status.PASSED),
        ("9.0a", Status.PASSED),
        ("8.0;9.0+PTX", Status.PASSED),
        ("Hopper", Status.NOT_APPLICABLE),
        (" ", Status.NOT_APPLICABLE),
    ],
)
def test_an_arch_list_that_nvcc_takes_or_nobody_can_read(value: str, status: Status) -> None:
    machine = h.healthy(h.environment(TORCH_CUDA_ARCH_LIST=value))
    assert verdict(family.arch_list_known_to_nvcc, machine).status is status


def test_the_arch_list_decides_instead_of_the_gpus() -> None:
    gpus = h.gpus(devices=(h.gpu(name="Tesla V100", compute_capability="7.0"),))
    machine = h.healthy(gpus, h.environment(TORCH_CUDA_ARCH_LIST="7.0"))
    failed = [c.code for c in CHECKS if verdict(c, machine).status is Status.FAILED]
    assert failed == ["CUDA017"]


def test_nvcc_that_lists_nothing_is_unknown() -> None:
    kits = h.toolkits(h.toolkit(architectures=()))
    assert verdict(family.gpu_known_to_nvcc, h.healthy(kits)).status is Status.UNKNOWN


def test_the_distributions_old_nvcc() -> None:
    kit = old(root="/usr", nvcc="/usr/bin/nvcc", version="12.0", real_path=None)
    assert "/usr/bin/nvcc of the distribution is 12.0" in found(family.distro_nvcc, h.toolkits(kit)).message


def test_the_distributions_nvcc_of_a_listed_minor_version_is_fine() -> None:
    kit = old(root="/usr", nvcc="/usr/bin/nvcc", version="11.5", real_path=None)
    machine = h.healthy(h.toolkits(kit), h.torch(version="2.0.1", cuda="11.7"))
    assert verdict(family.distro_nvcc, machine).status is Status.PASSED


@pytest.mark.parametrize(("torch", "nvcc", "word"), [("2.1.2", "10.2", "C++17"), ("2.14.0", "11.8", "C++20")])
def test_nvcc_does_not_know_the_standard(torch: str, nvcc: str, word: str) -> None:
    judged = verdict(
        family.nvcc_standard, h.healthy(h.torch(version=torch, cuda="12.6"), h.toolkits(h.toolkit(version=nvcc)))
    )
    assert judged.severity is Severity.ERROR
    assert judged.findings[0].cause == "nvcc-no-cxx17"
    for said in (word, torch, nvcc):
        assert said in judged.findings[0].message


@pytest.mark.parametrize(
    ("torch", "nvcc", "deepspeed", "asked", "update"),
    [
        ("2.14.0", "13.0", "0.19.6", "C++17", "deepspeed>=0.19.7"),
        ("2.14.0", "12.6", "0.14.4", "C++17", "deepspeed>=0.14.5"),
        ("2.1.2", "12.1", "0.9.2", "C++14", "deepspeed>=0.9.3"),
        ("2.11.0", "13.3", "0.19.6", "C++17", "deepspeed>=0.19.7"),  # this nvcc misreads C++17
    ],
)
def test_deepspeed_asks_nvcc_for_too_little(torch: str, nvcc: str, deepspeed: str, asked: str, update: str) -> None:
    kits, cuda = h.toolkits(h.toolkit(version=nvcc)), nvcc.split(".")[0] + ".0"
    judged = verdict(
        family.nvcc_standard, h.healthy(h.torch(version=torch, cuda=cuda), kits, h.deepspeed(version=deepspeed))
    )
    assert judged.severity is Severity.WARNING
    finding = judged.findings[0]
    assert finding.cause == "nvcc-no-cxx20"
    for word in (torch, nvcc, deepspeed, asked):
        assert word in finding.message
    assert update in commands(finding)[0]


def test_no_deepspeed_asks_an_nvcc_before_12_5_for_cxx20() -> None:
    finding = found(family.nvcc_standard, h.torch(version="2.14.0", cuda="12.6"), h.toolkits(h.toolkit(version="12.4")))
    assert "cuda-toolkit-12-6" in commands(finding)[0]


@pytest.mark.parametrize(
    ("torch", "nvcc", "deepspeed"),
    [
        ("2.12.0", "12.4", "0.19.8"),  # torch 2.13's headers ask for C++17 only
        ("2.13.0", "13.0", "0.19.6"),
        ("2.14.0", "13.0", "0.19.7"),
        ("2.14.0", "12.6", "0.19.5"),
        ("1.13.1", "10.2", "0.9.0"),
    ],
)
def test_deepspeed_asks_nvcc_for_enough(torch: str, nvcc: str, deepspeed: str) -> None:
    kits = h.toolkits(h.toolkit(version=nvcc))
    machine = h.healthy(h.torch(version=torch, cuda="12.6"), kits, h.deepspeed(version=deepspeed))
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
    assert {states[c] for c in ("CUDA009", "CUDA010", "CUDA011", "CUDA012", "CUDA018")} == {Status.UNKNOWN}
