"""What a build of an op takes. Tiny programs tell where they were tried; without them the file system does."""

from collections.abc import Callable
from typing import Any

import pytest
from dsdoctor_checks import compilers as cxx_family
from dsdoctor_checks import cuda as cuda_family
from dsdoctor_checks import ops as family
from dsdoctor_checks.op_specs import needing

from dsdoctor import healthy as h
from dsdoctor.facts import Fact, Snapshot, Trial, Trials
from dsdoctor.model import Check, Finding, Proof, Severity, Status, Verdict
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

ALL = {c.code: c for module in (family, cuda_family, cxx_family) for c in checks_of(module)}
WORDS = "tiny.cpp:3:10: error: something that no table knows"
QUIET = (Status.PASSED, Status.NOT_APPLICABLE)


def judged(code: str, *sections: Fact) -> Verdict:
    return verdict(ALL[code], h.healthy(*sections))


def only(code: str, *sections: Fact) -> Finding:
    found = judged(code, *sections)
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    return finding


def repeats(finding: Finding, trial: str) -> bool:
    """The command that repeats the trial is in the evidence."""
    return any(f"repeat with: c++ {trial}.cpp" in evidence.where for evidence in finding.evidence)


def wants(op_key: str) -> Fact:
    """A config that asks for an op."""
    value: Any = True
    for part in reversed(op_key.split(".")):
        value = {part: value}
    return h.ds_config(value)


def no_kit() -> Fact:
    return h.toolkits(found=(), chosen=None, chosen_by=None, nvcc_on_path=None)


# --- the tiny programs themselves: OPS050 to OPS054

PROGRAMS = [
    ("OPS050", "cxx"),
    ("OPS051", "torch-headers"),
    ("OPS052", "nvcc"),
    ("OPS053", "nvcc-headers"),
    ("OPS054", "cuda-headers"),
]


@pytest.mark.parametrize(("code", "trial"), PROGRAMS)
def test_programs_that_worked_are_quiet_and_probed(code: str, trial: str) -> None:
    found = judged(code, h.trials())
    assert (found.status, found.proof) == (Status.PASSED, Proof.PROBED)


@pytest.mark.parametrize(("code", "trial"), PROGRAMS)
def test_a_program_that_failed_is_told_with_its_first_error_and_how_to_repeat_it(code: str, trial: str) -> None:
    finding = only(code, h.trials(**{trial.replace("-", "_"): WORDS}))
    assert WORDS in finding.message
    assert finding.cause == "op-build-fails"
    assert repeats(finding, trial)
    assert finding.remedy is not None


@pytest.mark.parametrize(("code", "trial"), PROGRAMS)
@pytest.mark.parametrize("trials", [(), (Trials(),), "not-tried"])
def test_without_a_verdict_of_the_program_nothing_is_said(code: str, trial: str, trials: Any) -> None:
    untried = Trials(tried=(Trial(name=trial, outcome="not-tried", error="there is no compiler"),))
    sections = (untried,) if trials == "not-tried" else trials
    assert judged(code, *sections).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(("code", "trial"), PROGRAMS)
def test_a_program_that_took_too_long_failed(code: str, trial: str) -> None:
    slow = Trials(tried=(Trial(name=trial, outcome="timed-out", command="c++ x.cpp", error="no end after 60 s"),))
    assert "no end after 60 s" in only(code, slow).message


@pytest.mark.parametrize(
    ("code", "trial", "words", "cause"),
    [
        ("OPS050", "cxx", "/bin/sh: 1: c++: not found", "cxx-compiler-missing"),
        ("OPS051", "torch-headers", "Error: C++17 or later compatible compiler is required to use PyTorch.", "nvcc-no-cxx20"),
        ("OPS052", "nvcc", "nvcc fatal   : Unsupported gpu architecture 'compute_70'", "unsupported-gpu-arch"),
        ("OPS052", "nvcc", "/opt/none/bin/nvcc: No such file or directory", "cuda-home-without-nvcc"),
        ("OPS052", "nvcc", "#error -- unsupported GNU version! gcc versions later than 13", "gcc-too-new-for-nvcc"),
        ("OPS053", "nvcc-headers", "fatal error: cusparse.h: No such file or directory", "cuda-math-headers-missing"),
        ("OPS054", "cuda-headers", "fatal error: cublas_v2.h: No such file or directory", "cuda-math-headers-missing"),
    ],
)  # fmt: skip
def test_the_words_of_a_compiler_name_the_cause(code: str, trial: str, words: str, cause: str) -> None:
    assert only(code, h.trials(**{trial.replace("-", "_"): words})).cause == cause


def test_a_missing_python_h_is_told_once() -> None:
    words = "fatal error: Python.h: No such file or directory"
    both = h.trials(python_headers=words, torch_headers=words)
    assert judged("OPS051", both).status is Status.NOT_APPLICABLE, "passed would be a claim"
    assert only("OPS007", both).cause == "python-h-missing"
    other = h.trials(python_headers=words, torch_headers=WORDS)
    assert judged("OPS051", other).status is Status.FAILED


def test_headers_are_not_blamed_on_an_nvcc_that_compiles_nothing() -> None:
    assert judged("OPS053", h.trials(nvcc=WORDS, nvcc_headers=WORDS)).status is Status.NOT_APPLICABLE


def test_headers_for_c_sources_are_a_note_until_a_config_asks() -> None:
    broken = h.trials(cuda_headers=WORDS)
    finding = only("OPS054", broken)
    assert finding.severity is Severity.INFO
    assert all(name in finding.message for name in needing("cuda-headers"))
    asked = judged("OPS054", broken, wants("zero_optimization.zero_quantized_weights"))
    assert asked.severity is Severity.ERROR
    assert judged("OPS054", broken, h.ds_config()).severity is Severity.INFO


# --- the trial wins over the search, both ways


def bare(**changes: Any) -> Fact:
    return h.compilers(**changes)


def without(*libraries: str) -> Fact:
    kit = h.toolkit()
    return h.toolkits(h.toolkit(libraries={k: v for k, v in kit.libraries.items() if k not in libraries}))


def no_header(*headers: str) -> Fact:
    return h.toolkits(h.toolkit(headers=tuple(name for name in h.toolkit().headers if name not in headers)))


def without_nccl() -> tuple[Fact, ...]:
    return no_header("nccl.h"), bare(nccl_header="")


SEARCHED: list[tuple[str, Callable[[], tuple[Fact, ...]], str, str]] = [
    ("OPS007", lambda: (h.python(python_h=False),), "python_headers", "python-h-missing"),
    ("OPS010", lambda: (bare(libaio_header=None),), "aio_headers", "libaio-missing"),
    ("OPS010", lambda: (bare(libaio_link=None),), "link_aio", "libaio-missing"),
    ("OPS016", lambda: (bare(libcuda_link=""),), "link_cuda", "libcuda-link-failure"),
    ("OPS017", lambda: (no_header("cufile.h"),), "cufile_headers", "cufile-missing"),
    ("OPS017", lambda: (without("cufile"),), "link_cufile", "cufile-missing"),
    ("OPS018", without_nccl, "nccl_headers", "nccl-header-missing"),
    ("CUDA018", lambda: (without("cudart"),), "link_cudart", "libcudart-link-failure"),
    ("CUDA011", lambda: (without("curand"),), "link_curand", "libcurand-link-failure"),
]


@pytest.mark.parametrize(("code", "sick", "trial", "cause"), SEARCHED)
def test_the_search_finds_what_is_missing(code: str, sick: Any, trial: str, cause: str) -> None:
    assert only(code, *sick()).cause == cause
    assert judged(code).status is Status.PASSED


@pytest.mark.parametrize(("code", "sick", "trial", "cause"), SEARCHED)
def test_a_trial_that_worked_wins_over_the_search(code: str, sick: Any, trial: str, cause: str) -> None:
    assert judged(code, *sick(), h.trials()).status is Status.PASSED


@pytest.mark.parametrize(("code", "sick", "trial", "cause"), SEARCHED)
def test_a_trial_that_failed_wins_over_the_search(code: str, sick: Any, trial: str, cause: str) -> None:
    words = "fatal error: Python.h: No such file" if code == "OPS007" else WORDS
    found = judged(code, h.trials(**{trial: words}))
    assert (found.status, found.proof) == (Status.FAILED, Proof.PROBED)
    assert found.findings[0].cause == cause
    assert repeats(found.findings[0], trial.replace("_", "-"))


def test_another_error_leaves_python_h_to_the_search() -> None:
    broken = h.trials(python_headers="/bin/sh: 1: c++: not found")
    assert judged("OPS007", broken).status is Status.PASSED
    assert judged("OPS007", broken, h.python(python_h=False)).status is Status.FAILED
    assert judged("OPS007", broken, h.python(python_h=None)).status is Status.UNKNOWN


def test_python_headers_come_from_the_distribution_or_from_another_python() -> None:
    words = h.trials(python_headers="fatal error: Python.h: No such file")
    system = only("OPS007", words).remedy
    assert system is not None
    assert any("python3-dev" in command for command in system.commands)
    own = only("OPS007", words, h.python(base_prefix="/home/user/.pyenv/versions/3.12.3")).remedy
    assert own is not None
    assert (own.commands, own.safety) == ((), "manual")


@pytest.mark.parametrize(
    ("code", "key"), [("OPS017", "aio.use_gds"), ("OPS018", "compile.deepcompile"), ("OPS016", "aio.use_gds")]
)
def test_what_one_op_needs_is_an_error_only_when_the_config_asks(code: str, key: str) -> None:
    broken = h.trials(link_cufile=WORDS, nccl_headers=WORDS, link_cuda=WORDS)
    assert judged(code, broken).severity is Severity.INFO
    assert judged(code, broken, wants(key)).severity is Severity.ERROR


@pytest.mark.parametrize("code", ["OPS016", "OPS017", "OPS018"])
def test_without_a_toolkit_the_cuda_checks_say_why(code: str) -> None:
    assert judged(code, no_kit()).status is Status.NOT_APPLICABLE
    assert judged(code, h.toolkits(h.toolkit(nvcc=None))).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("code", "field", "key"),
    [("OPS016", "libcuda_link", "aio.use_gds"), ("OPS018", "nccl_header", "compile.deepcompile")],
)
def test_what_nobody_looked_for_is_neither_there_nor_missing(code: str, field: str, key: str) -> None:
    old = (bare(**{field: None}), no_header("nccl.h"))  # a snapshot of a dsdoctor that did not look
    assert judged(code, *old).status is Status.NOT_APPLICABLE
    assert judged(code, *old, wants(key)).status is Status.UNKNOWN


def test_the_stub_serves_the_linker_where_there_is_one() -> None:
    named = only("OPS016", h.trials(link_cuda=WORDS)).remedy
    assert named is not None
    assert any("/usr/local/cuda/lib64/stubs" in command for command in named.commands)
    assert named.safety == "safe"
    installed = only("OPS016", h.trials(link_cuda=WORDS), h.toolkits(h.toolkit(stubs=False))).remedy
    assert installed is not None
    assert installed.safety == "careful"


def test_nccl_of_the_wheel_is_named_for_the_compiler() -> None:
    remedy = only("OPS018", h.trials(nccl_headers=WORDS)).remedy
    assert remedy is not None
    assert any(f"{h.SITE}/nvidia/nccl/include" in command for command in remedy.commands)


def test_libaio_that_the_trial_found_needs_no_package_and_nvme_makes_it_an_error() -> None:
    broken = h.trials(aio_headers="fatal error: libaio.h: No such file", link_aio="cannot find -laio")
    finding = only("OPS010", broken)
    assert "libaio.h and libaio.so" in finding.message
    assert judged("OPS010", broken).severity is Severity.INFO
    assert judged("OPS010", broken, h.storage(h.place())).severity is Severity.ERROR


def test_curand_that_is_there_and_is_not_found_gets_its_folder_named() -> None:
    finding = only("CUDA011", h.trials(link_curand="cannot find -lcurand"))
    assert "/usr/local/cuda/lib64, where the linker does not look" in finding.message
    assert finding.remedy is not None
    assert any("LIBRARY_PATH" in command for command in finding.remedy.commands)


def test_cudart_that_is_there_and_is_not_found_gets_its_folder_named() -> None:
    finding = only("CUDA018", h.trials(link_cudart="cannot find -lcudart"))
    assert finding.remedy is not None
    assert any("LIBRARY_PATH" in command for command in finding.remedy.commands)


# --- OPS012: CUTLASS, with and without a report


def test_cutlass_is_searched_for_where_no_report_tells() -> None:
    silent = h.ds_report(ops=())

    def without_report(*sections: Fact) -> Snapshot:
        return h.healthy(*sections).replace(ds_report=None)

    found = verdict(family.cutlass_there, without_report())
    assert (found.status, found.severity) == (Status.FAILED, Severity.INFO)
    assert found.findings[0].subject == "evoformer_attn"
    for named in (h.environment(CUTLASS_PATH="/opt/cutlass"), h.packages({"nvidia-cutlass": "4.2.0"})):
        assert verdict(family.cutlass_there, without_report(named)).status is Status.PASSED
    assert verdict(family.cutlass_there, without_report(h.torch(cuda=None))).status is Status.PASSED
    assert verdict(family.cutlass_there, h.healthy(silent)).status is Status.PASSED, "its accelerator has no such op"


# --- a trial that worked refutes what files suggest; one that failed does not

REFUTED: list[tuple[str, str, Callable[[], tuple[Fact, ...]]]] = [
    ("CUDA009", "nvcc_headers", lambda: (no_header("cusparse.h"),)),
    ("CUDA010", "curand_headers", lambda: (no_header("curand_kernel.h"),)),
    ("CUDA012", "nvcc", lambda: (h.toolkits(h.toolkit(architectures=("7.5", "8.0"))),)),
    ("CUDA017", "nvcc", lambda: (h.environment(TORCH_CUDA_ARCH_LIST="7.0"),)),
    ("CXX002", "nvcc", lambda: (h.toolkits(h.toolkit(gcc_max=12)),)),
    ("CXX006", "cxx", lambda: (bare(libc_headers=False),)),
    ("CXX010", "nvcc", lambda: (bare(nvcc_host=h.compiler(command="g++", path=None, selected_by="PATH")),)),
]


@pytest.mark.parametrize(("code", "trial", "sick"), REFUTED)
def test_what_files_suggest_is_found_without_a_trial(code: str, trial: str, sick: Any) -> None:
    assert judged(code, *sick()).status is Status.FAILED
    assert judged(code).status in QUIET


@pytest.mark.parametrize(("code", "trial", "sick"), REFUTED)
def test_a_trial_that_worked_refutes_what_files_suggest(code: str, trial: str, sick: Any) -> None:
    found = judged(code, *sick(), h.trials())
    assert (found.status, found.proof) == (Status.PASSED, Proof.PROBED)
    assert trial.replace("_", "-") in str(found.reason)


@pytest.mark.parametrize(("code", "trial", "sick"), REFUTED)
def test_a_trial_that_failed_or_was_not_made_refutes_nothing(code: str, trial: str, sick: Any) -> None:
    assert judged(code, *sick(), h.trials(**{trial: WORDS})).status is Status.FAILED
    assert judged(code, *sick(), Trials()).status is Status.FAILED


@pytest.mark.parametrize("check", [c for c in ALL.values() if c.refuted_by], ids=lambda c: c.code)
def test_every_refutable_check_is_tried_here(check: Check) -> None:
    assert check.code in {code for code, _, _ in REFUTED}


# --- cuFile: DeepSpeed's own probe of gds looks into lib64 alone


def cufile_in(folder: str, root: str = "/opt/kit", **changes: Any) -> Fact:
    libraries = {name: f"{folder}/lib{name}.so" for name in h.toolkit().libraries}
    return h.toolkits(h.toolkit(root=root, nvcc=f"{root}/bin/nvcc", libraries=libraries, **changes))


@pytest.mark.parametrize("trials", [(), (h.trials(),)], ids=["files", "tried"])
def test_deepspeed_looks_for_cufile_in_lib64_alone(trials: tuple[Fact, ...]) -> None:
    conda = cufile_in("/opt/kit/lib", lib_dir="lib")
    finding = only("OPS017", conda, *trials)
    assert "/opt/kit/lib" in finding.message
    assert "/opt/kit/lib64" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ('export LIBRARY_PATH="/opt/kit/lib:$LIBRARY_PATH"',)
    named = h.environment(LIBRARY_PATH="/x:/opt/kit/lib/")
    assert judged("OPS017", conda, named, *trials).status is Status.PASSED
    assert judged("CUDA018", conda, *trials).status is Status.PASSED, "torch names the folder lib to the linker"


@pytest.mark.parametrize(
    ("folder", "root"),
    [("/opt/kit/lib64", "/opt/kit"), ("/usr/lib/x86_64-linux-gnu", "/usr"), ("/usr/lib", "/opt/kit")],
)
def test_cufile_in_lib64_or_in_the_systems_folders_is_found(folder: str, root: str) -> None:
    assert judged("OPS017", cufile_in(folder, root)).status is Status.PASSED


# --- OPS055: OpenMP, which only some ops are compiled with

NO_OMP = "openmp.cpp:1:10: fatal error: 'omp.h' file not found"  # clang 14 without libomp


def test_a_compiler_without_openmp_is_named_with_the_ops_that_want_it() -> None:
    finding = only("OPS055", h.trials(openmp=NO_OMP))
    assert finding.cause == "openmp-missing"
    assert "cpu_adam" in finding.message
    assert "pin_memory" not in finding.message
    assert "omp.h" in finding.message
    assert repeats(finding, "openmp")
    assert finding.remedy is not None
    assert any("install -y libomp-dev" in command for command in finding.remedy.commands)


def test_a_compiler_that_compiles_nothing_is_told_once() -> None:
    assert judged("OPS055", h.trials(openmp="c++: not found", cxx="c++: not found")).status is Status.PASSED
    assert judged("OPS050", h.trials(openmp="c++: not found", cxx="c++: not found")).status is Status.FAILED


def test_without_trials_gcc_is_trusted_and_clang_is_not_known() -> None:
    assert judged("OPS055").status is Status.PASSED
    clang = h.compilers(cxx=h.compiler(command="clang++", path="/usr/bin/clang++", family="clang", version="14.0.6"))
    assert judged("OPS055", clang).status is Status.NOT_APPLICABLE
