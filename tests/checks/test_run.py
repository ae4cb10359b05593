"""The smoke run: when it proves health, and what it names when it dies."""

import math
import re
from typing import Any

import pytest
from dsdoctor_checks import run as family

from dsdoctor import healthy as h
from dsdoctor.cli import check
from dsdoctor.facts import Smoke
from dsdoctor.model import Finding, Proof, Status
from dsdoctor.testing import verdict


def told(smoke: Smoke) -> Finding:
    found = verdict(family.runs_end, h.healthy(smoke))
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    assert finding.remedy is not None
    return finding


def fallen(
    outcome: str = "failed", *, output_tail: str | None = None, seconds: float | None = 9.0, **rank: Any
) -> Smoke:
    return h.smoke(h.fallen_run(outcome=outcome, output_tail=output_tail, seconds=seconds, rank=rank))


def failed(error_type: str, error: str, output: str = "") -> Smoke:
    return fallen(error_type=error_type, error=error, output_tail=output, last_phase="initialize")


def test_a_run_whose_loss_falls_is_proof() -> None:
    found = verdict(family.runs_end, h.healthy(h.smoke()))
    assert (found.status, found.proof) == (Status.PASSED, Proof.RAN)
    assert verdict(family.runs_end, h.healthy()).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("losses", "word"),
    [((1.0, math.nan), "nan"), ((1.0, math.inf), "inf"), ((1.0, 1.2), "did not learn"), ((), "without a loss")],
)
def test_a_run_that_ended_but_did_not_learn(losses: tuple[float, ...], word: str) -> None:
    finding = told(h.smoke(losses=losses))
    assert word in finding.message
    assert finding.cause == "smoke-loss-wrong"


@pytest.mark.parametrize(
    ("error_type", "error", "output", "cause"),
    [
        ("ValueError", "invalid literal for int() with base 10: '0a'", "", "arch-list-suffix-crash"),
        ("RuntimeError", "Unable to JIT load the deepspeed_shm_comm op due to ninja not being installed.", "", "ninja-missing"),
        ("RuntimeError", "Error building extension 'cpu_adam'", "/bin/sh: 1: c++: not found", "cxx-compiler-missing"),
        ("RuntimeError", "Error building extension 'random_ltd'", "/usr/bin/ld: cannot find -lcurand", "libcurand-link-failure"),
        ("RuntimeError", "Error building extension 'fused_adam'", "/usr/bin/ld: cannot find -lcudart: No such file or directory", "libcudart-link-failure"),
        ("RuntimeError", "Error building extension 'fused_adam'", "gcc: No such file or directory\nnvcc fatal   : Failed to preprocess host compiler properties.", "cxx-compiler-missing"),
        ("RuntimeError", "Error building extension 'fused_adam'", "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...':", "compiler-mismatch-template-errors"),
        ("RuntimeError", "Error building extension 'cpu_adam'", "ATen/ATen.h:5:2: error: #error C++20 or later compatible compiler is required to use ATen.", "nvcc-no-cxx20"),
        ("RuntimeError", "Error building extension 'fused_adam'", "fatal error: cusparse.h: No such file or directory", "cuda-math-headers-missing"),
        ("RuntimeError", "Unable to JIT load the async_io op due to it not being compatible due to hardware/software issue. None", "", "libaio-missing"),
        ("torch.distributed.DistNetworkError", "The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE", "", "port-in-use"),
        ("ModuleNotFoundError", "No module named 'mpi4py'", "", "mpi4py-missing"),
        ("RuntimeError", "Distributed package doesn't have NCCL built in", "", "cpu-only-torch"),
        ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 MiB.", "", "gpu-busy"),
        ("ImportError", "libaio.so.1: cannot open shared object file: No such file or directory", "", "runtime-lib-not-found"),
        ("RuntimeError", "PyTorch version mismatch! DeepSpeed ops were compiled and installed with a different version", "", "prebuilt-ops-torch-mismatch"),
    ],
)  # fmt: skip
def test_the_text_of_a_failure_names_its_cause(error_type: str, error: str, output: str, cause: str) -> None:
    finding = told(failed(error_type, error, output))
    assert finding.cause == cause
    assert error[:40] in finding.message
    assert "initialize" in finding.message


@pytest.mark.parametrize(
    ("signal", "cause"),
    [("SIGKILL", "rc-minus-9-host-oom"), ("SIGILL", "cpu-adam-illegal-instruction"), ("SIGBUS", "shm-too-small"), ("SIGSEGV", "rc-minus-11-segfault")],
)  # fmt: skip
def test_signals_are_diagnoses(signal: str, cause: str) -> None:
    finding = told(fallen("signal", signal=signal))
    assert finding.cause == cause
    assert signal in finding.message


def test_a_run_that_hangs_in_a_build_is_told_from_one_that_waits() -> None:
    building = fallen("timed-out", seconds=600.0, last_phase="initialize",
                       output_tail="Using /c/torch_extensions as PyTorch extensions root...")  # fmt: skip
    assert told(building).cause == "jit-lock-hang"
    compiling = told(fallen("timed-out", seconds=600.0, last_phase="compile deepspeed_shm_comm"))
    assert compiling.cause == "jit-lock-hang"
    assert "compile deepspeed_shm_comm" in compiling.message
    assert compiling.remedy is not None
    options = {name for option in check.command.params for name in option.opts}
    said = f"{compiling.remedy.note} {compiling.remedy.order} {compiling.remedy.verify}"
    assert set(re.findall(r"--[\w-]+", said)) <= options, "an option that `dsdoctor check` has not"
    waiting = told(fallen("timed-out", seconds=600.0, last_phase="first step"))
    assert waiting.cause == "smoke-hangs"
    assert "first step" in waiting.message


@pytest.mark.parametrize("phase", ["import torch", "import deepspeed"])
def test_only_a_run_that_stopped_in_an_import_blames_the_import(phase: str) -> None:
    assert told(fallen("timed-out", last_phase=phase)).cause == "import-hangs"
    assert told(fallen("exited", exit_code=7, last_phase=phase)).cause == "import-crashes"
    raised = fallen("failed", error_type="WeirdError", error="new", last_phase=phase)
    assert told(raised).cause == "import-crashes"


@pytest.mark.parametrize("phase", ["initialize", "first step", "steps", None])
def test_a_run_that_failed_later_does_not_blame_the_import(phase: str | None) -> None:
    ended = told(fallen("exited", exit_code=7, last_phase=phase))
    assert ended.cause == "smoke-fails"
    assert "exit code 7" in ended.message
    assert (phase or "its start") in ended.message


BUILD = """Error building extension 'cpu_adam': [1/3] c++ -MMD -Werror -DTORCH_EXTENSION_NAME=cpu_adam -c /s/cpu_adam.cpp
FAILED: [code=1] cpu_adam.o
c++ -MMD -MF cpu_adam.o.d -c /s/cpu_adam.cpp
{0}
/s/simd.h:13:1: error: something after it
ninja: build stopped: subcommand failed.
"""


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("/s/simd.h:12:3: error: expected unqualified-id before '}'", "op-build-fails"),
        ("/s/cpu_adam.cpp:1:10: fatal error: foo.h: No such file or directory", "op-build-fails"),
        ("cpu_adam.cpp(12): error C2065: 'ssize_t': undeclared identifier", "op-build-fails"),
        ("cpu_adam.o: undefined reference to `omp_get_max_threads'", "op-build-fails"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "compile-oom"),
        ("/bin/sh: 1: c++: not found", "cxx-compiler-missing"),
    ],
)
def test_a_build_that_fails_is_told_by_the_first_error_of_the_compiler(line: str, cause: str) -> None:
    finding = told(failed("RuntimeError", BUILD.format(line)))
    assert finding.cause == cause
    assert line in finding.message
    assert "cpu_adam" in finding.message
    assert "-DTORCH_EXTENSION_NAME" not in finding.message, "the compiler's command says nothing"
    assert any(line in evidence.text for evidence in finding.evidence)


def test_a_build_that_fails_without_a_word_still_names_the_op() -> None:
    finding = told(failed("RuntimeError", "Error building extension 'cpu_adam'"))
    assert finding.cause == "op-build-fails"
    assert "cpu_adam" in finding.message


def test_a_run_that_was_not_reached_is_unknown() -> None:
    assert (
        verdict(
            family.runs_end, h.healthy(h.smoke(outcome="not-started", because="no such file", losses=(), ranks=()))
        ).status
        is Status.UNKNOWN
    )


def test_an_unseen_failure_keeps_its_own_words() -> None:
    finding = told(failed("WeirdError", "nobody saw this before", "line one\nline two"))
    assert "nobody saw this before" in finding.message
    assert finding.evidence[0].text.endswith("line two")
