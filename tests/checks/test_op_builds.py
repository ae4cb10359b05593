"""The builders' own words (OPS040, OPS041), and what real builds did (OPS042)."""

import pytest
from dsdoctor_checks.op_builds import builders_answer, gpu_left, ops_build
from dsdoctor_checks.op_libaio import cutlass_there
from dsdoctor_checks.ops import dskernels_there

from dsdoctor import healthy as h
from dsdoctor.facts import DsOp, Fact, OpBuild, OpBuilder, OpBuilders, Unavailable
from dsdoctor.model import Check, Finding, Proof, Severity, Status, Verdict
from dsdoctor.testing import verdict

WORDS = "csrc/adam/multi_tensor_adam.cu(12): error: something that no table knows"


def builder(name: str = "fused_adam", **changes: object) -> OpBuilders:
    return h.op_builders(builders=(OpBuilder(name=name, builder="ABuilder", **changes),))  # type: ignore[arg-type]


def built(outcome: str, **changes: object) -> Fact:
    return h.op_builds(OpBuild(name="fused_adam", outcome=outcome, **changes))  # type: ignore[arg-type]


def only(found: Verdict) -> Finding:
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    assert finding.subject
    return finding


@pytest.mark.parametrize("check", [builders_answer, gpu_left], ids=lambda c: c.code)
def test_builders_that_answer_are_quiet(check: Check) -> None:
    found = verdict(check, h.healthy())
    assert (found.status, found.proof) == (Status.PASSED, Proof.PROBED)


@pytest.mark.parametrize("check", [builders_answer, gpu_left], ids=lambda c: c.code)
def test_builders_that_nobody_asked_say_nothing(check: Check) -> None:
    silent = h.healthy(op_builders=Unavailable(kind="not-examined", detail="--static"))
    assert verdict(check, silent).status is not Status.FAILED
    assert verdict(check, silent).status is not Status.PASSED


def test_a_builder_that_raises_is_told_with_its_words_and_who_needs_it() -> None:
    sick = h.healthy(h.op_builders(errors={"quantizer": "ValueError: no moon"}))
    finding = only(verdict(builders_answer, sick))
    assert (finding.subject, finding.cause) == ("quantizer", "op-build-fails")
    assert "ValueError: no moon" in finding.message
    assert "zero_quantized_weights" in finding.message


def test_the_words_of_a_builder_name_the_cause() -> None:
    words = "RuntimeError: torch_extensions: No space left on device"
    assert only(verdict(builders_answer, h.healthy(builder(error=words)))).cause == "build-no-space"


KERNELS = "ModuleNotFoundError: No module named 'dskernels'"
CUTLASS = "RuntimeError: Unable to locate CUTLASS. Install nvidia-cutlass, or set CUTLASS_PATH"


@pytest.mark.parametrize(
    ("check", "name", "words", "cause"),
    [
        (dskernels_there, "cutlass_ops", KERNELS, "dskernels-missing"),
        (cutlass_there, "evoformer_attn", CUTLASS, "cutlass-path-missing"),
    ],
)
def test_what_has_a_check_of_its_own_is_told_once_and_probed(check: Check, name: str, words: str, cause: str) -> None:
    for report in (h.ds_report(), h.ds_report(ops=(DsOp(name=name, installed=False, compatible=False),))):
        sick = h.healthy(builder(name, error=words), report)
        found = verdict(check, sick)
        assert (only(found).cause, only(found).subject, found.proof) == (cause, name, Proof.PROBED)
        assert verdict(builders_answer, sick).status is Status.PASSED
        assert verdict(check, h.healthy(builder(name), report)).status is Status.PASSED, (
            "its builder says that it is there"
        )


def test_a_source_that_is_not_in_the_package() -> None:
    sick = h.healthy(builder(missing_sources=("csrc/adam/fused.cu",)))
    assert "csrc/adam/fused.cu, which is not in the package" in only(verdict(builders_answer, sick)).message


def test_stand_ins_may_raise() -> None:
    sick = h.healthy(builder("deepspeed_not_implemented", error="ValueError: not implemented"))
    assert verdict(builders_answer, sick).status is Status.PASSED


def test_an_op_whose_filter_drops_every_gpu() -> None:
    sick = h.healthy(builder("fp_quantizer", architectures=()))
    finding = only(verdict(gpu_left, sick))
    assert (finding.subject, finding.cause) == ("fp_quantizer", "op-needs-newer-gpu")


def test_a_filter_that_was_not_asked_drops_nothing() -> None:
    assert verdict(gpu_left, h.healthy(builder(architectures=None))).status is Status.PASSED


def test_nothing_was_built_unless_asked_for() -> None:
    assert verdict(ops_build, h.healthy()).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("outcome", ["ok", "not-reached"])
def test_builds_that_worked_or_were_not_reached_are_quiet(outcome: str) -> None:
    assert verdict(ops_build, h.healthy(built(outcome))).status is Status.PASSED


@pytest.mark.parametrize("outcome", ["failed", "crashed", "timed-out"])
def test_a_build_that_failed_is_told_with_its_first_error(outcome: str) -> None:
    found = verdict(ops_build, h.healthy(built(outcome, first_error=WORDS, log_tail="last words")))
    finding = only(found)
    assert (found.proof, found.severity) == (Proof.RAN, Severity.WARNING)
    assert "fused_adam does not build" in finding.message
    assert WORDS in finding.message
    assert "last words" in finding.evidence[0].text


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("ld: cannot find -lcurand: No such file or directory", "libcurand-link-failure"),
        ("/bin/sh: 1: /opt/none/bin/nvcc: not found", "cuda-home-without-nvcc"),
        ('error: template parameter "q_exponent_bits" may not be redeclared in this scope', "op-source-rejected-by-nvcc"),
        ("Unable to JIT load the x op due to hardware/software issue. Unable to locate CUTLASS.", "cutlass-path-missing"),
        ("Unable to JIT load the gds op due to it not being compatible due to hardware/software issue. None", "cufile-missing"),
        ("Unable to JIT load the gds op due to it not being compatible due to hardware/software issue. If libaio is already "
         "installed (perhaps from source), try setting the CFLAGS", "libaio-missing"),
        (WORDS, "op-build-fails"),
    ],
)  # fmt: skip
def test_the_words_of_a_build_name_the_cause(words: str, cause: str) -> None:
    assert only(verdict(ops_build, h.healthy(built("failed", first_error=words)))).cause == cause
    assert only(verdict(ops_build, h.healthy(built("failed", error=words)))).cause == cause


def test_the_first_error_names_the_cause_and_not_its_echo() -> None:
    echo = "Error building extension 'fused_adam'"
    sick = h.healthy(built("failed", error=echo, first_error="ld: cannot find -lcurand"))
    assert only(verdict(ops_build, sick)).cause == "libcurand-link-failure"


def test_a_build_without_words_says_how_it_ended() -> None:
    slow = only(verdict(ops_build, h.healthy(built("timed-out"))))
    assert (slow.cause, "within its time" in slow.message) == ("op-build-hangs", True)
    crashed = only(verdict(ops_build, h.healthy(built("crashed", signal="SIGSEGV"))))
    assert "SIGSEGV" in crashed.message


def test_a_second_try_is_mentioned() -> None:
    again = "a compiler was killed: one at a time"
    assert again in only(verdict(ops_build, h.healthy(built("failed", error=WORDS, retried=again)))).message


def test_the_remedy_ends_with_the_same_build() -> None:
    remedy = only(verdict(ops_build, h.healthy(built("failed", error="ninja: error: Ninja is required to load C++ extensions")))).remedy  # fmt: skip
    assert remedy is not None
    assert remedy.verify == "dsdoctor ops fused_adam --build"


def test_kernels_that_are_installed_and_broken_are_not_called_missing() -> None:
    sick = h.healthy(builder("cutlass_ops", error=KERNELS), h.packages({"deepspeed-kernels": "0.0.1"}))
    assert "cannot be imported" in only(verdict(dskernels_there, sick)).message
    bare = h.healthy(builder("cutlass_ops", error=KERNELS))
    assert "is not installed" in only(verdict(dskernels_there, bare)).message
