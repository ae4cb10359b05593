"""A verdict per op: real builds outweigh everything, then findings, then ds_report's word; silence proves nothing."""

import pytest

from dsdoctor import healthy as h
from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.facts import DsOp, DsReport, Fact, OpBuild, OpBuilds, Snapshot, Unavailable
from dsdoctor.facts.snapshot import LIVE_SECTIONS
from dsdoctor.model import OpVerdict, Proof

KNOWLEDGE = load_knowledge()
STATIC = Unavailable(kind="not-examined", detail="--static: nothing of the patient's is run")
WORDS = "nvcc fatal   : something that no table knows"


def op(name: str, snapshot: Snapshot) -> OpVerdict:
    return next(o for o in diagnose(snapshot, KNOWLEDGE).ops if o.name == name)


def static(*sections: Fact) -> Snapshot:
    return h.healthy(*sections, **dict.fromkeys(LIVE_SECTIONS, STATIC))


def report(name: str, *, compatible: bool, installed: bool = False, warnings: tuple[str, ...] = ()) -> DsReport:
    """The healthy report with another row for one op."""
    row = DsOp(name=name, compatible=compatible, installed=installed, warnings=warnings)
    return h.ds_report(ops=(*(o for o in h.ds_report().ops if o.name != name), row))


def built(outcome: str, name: str = "fused_adam", **more: object) -> OpBuilds:
    return h.op_builds(OpBuild(name=name, outcome=outcome, **more))  # type: ignore[arg-type]


def test_grades_go_from_files_over_tiny_programs_to_a_real_build() -> None:
    assert (op("fused_adam", static()).state, op("fused_adam", static()).proof) == ("builds", Proof.DECLARED)
    probed = op("fused_adam", h.healthy(h.trials()))
    assert (probed.state, probed.proof) == ("builds", Proof.PROBED)
    ran = op("fused_adam", h.healthy(h.trials(), built("ok", seconds=30.9)))
    assert (ran.state, ran.proof, ran.seconds) == ("builds", Proof.RAN, 30.9)


def test_a_builder_that_answers_is_no_program_that_was_compiled() -> None:
    assert op("fused_adam", h.healthy()).proof is Proof.DECLARED


def test_a_build_that_worked_outweighs_what_was_foretold() -> None:
    sick = h.healthy(h.trials(nvcc=WORDS), h.toolkits(h.toolkit(nvcc=None)), built("ok"))
    found = op("fused_adam", sick)
    assert (found.state, found.proof, found.blocked_by) == ("builds", Proof.RAN, ())


@pytest.mark.parametrize("outcome", ["failed", "crashed", "timed-out"])
def test_a_build_that_failed_outweighs_what_was_foretold(outcome: str) -> None:
    found = op("fused_adam", h.healthy(h.trials(), built(outcome, first_error=WORDS)))
    assert (found.state, found.proof, found.because, found.differs) == ("fails", Proof.RAN, WORDS, True)
    assert found.blocked_by == ("OPS042",)


def test_the_cause_of_a_failed_build_is_read_from_its_words() -> None:
    words = "/usr/bin/ld: cannot find -lcurand: No such file or directory"
    found = op("fused_adam", h.healthy(h.trials(), built("failed", first_error=words)))
    assert found.cause == "libcurand-link-failure"
    assert op("fused_adam", h.healthy(built("failed", first_error=WORDS))).cause == "op-build-fails"


def test_a_build_that_says_nothing_still_says_how_it_ended() -> None:
    assert "no end within its time" in str(op("fused_adam", h.healthy(built("timed-out"))).because)


def test_a_build_that_was_not_reached_leaves_the_prediction() -> None:
    found = op("fused_adam", h.healthy(h.trials(), built("not-reached")))
    assert (found.state, found.proof) == ("builds", Proof.PROBED)


def test_a_build_of_one_op_says_nothing_of_another() -> None:
    found = op("fused_lion", h.healthy(h.trials(), built("failed", first_error=WORDS)))
    assert (found.state, found.proof) == ("builds", Proof.PROBED)


def test_no_is_believed_because_deepspeed_refuses() -> None:
    found = op("utils", h.healthy(h.trials(), report("utils", compatible=False)))
    assert (found.state, found.proof, found.cause, found.differs) == ("fails", Proof.PROBED, None, False)
    assert "refuses" in str(found.because)
    warned = op("utils", h.healthy(h.trials(), report("utils", compatible=False, warnings=("no moon",))))
    assert "no moon" in str(warned.because)


def test_no_that_a_build_refutes_differs() -> None:
    found = op("utils", h.healthy(h.trials(), report("utils", compatible=False), built("ok", "utils")))
    assert (found.state, found.said, found.differs) == ("builds", "no", True)


def test_okay_that_a_finding_refutes_differs() -> None:
    found = op("fused_adam", h.healthy(h.environment(TORCH_CUDA_ARCH_LIST="9.0a")))
    assert (found.state, found.said, found.differs) == ("fails", "okay", True)
    assert found.blocked_by == ("OPS001",)


def test_a_finding_about_cuda_leaves_cpu_ops_alone() -> None:
    assert op("cpu_adam", h.healthy(h.environment(TORCH_CUDA_ARCH_LIST="9.0a"))).state == "builds"


def test_an_installed_op_needs_no_tools() -> None:
    found = op("utils", h.healthy(h.trials(), report("utils", compatible=True, installed=True)))
    assert (found.state, found.said, found.differs) == ("builds", "installed", False)
    assert "installed" in str(found.because)


def test_without_a_row_nobody_said_anything() -> None:
    found = op("fused_adam", h.healthy(h.trials(), h.ds_report(ops=())))
    assert (found.said, found.differs) == (None, False)


def test_an_op_with_unknown_facts_is_unknown_and_never_builds() -> None:
    silent = Unavailable(kind="failed", detail="the compilers could not be read")
    for sections in ((), (h.trials(),)):
        found = op("fused_adam", h.healthy(*sections, compilers=silent))
        assert (found.state, found.differs) == ("unknown", False)
        assert silent.detail in str(found.because)


def test_a_live_section_that_broke_is_not_one_that_was_left_out() -> None:
    broke = Unavailable(kind="timed-out", detail="importing torch took longer than 60 s")
    gone = {"torch_live": broke, "deepspeed_live": broke, "ds_report": broke, "op_builders": broke, "trials": broke}
    found = op("fused_adam", h.healthy(**gone))
    assert found.proof is Proof.DECLARED


def test_what_files_alone_refute_is_only_declared() -> None:
    found = op("async_io", static(h.compilers(libaio_header=None, libaio_link=None)))
    assert (found.state, found.cause, found.proof) == ("fails", "libaio-missing", Proof.DECLARED)


def test_a_cause_with_a_name_goes_before_a_compilers_bare_words() -> None:
    sick = h.healthy(h.trials(nvcc=WORDS), h.toolkits(h.toolkit(nvcc=None)))
    found = op("fused_adam", sick)
    assert found.cause not in (None, "op-build-fails")
    assert "OPS052" in found.blocked_by


def test_the_echo_of_ds_report_is_no_reason_when_there_is_one() -> None:
    sick = h.healthy(h.trials(aio_headers="fatal error: libaio.h: No such file"), report("gds", compatible=False))
    assert op("gds", sick).cause == "libaio-missing"


def test_ops_are_judged_for_the_whole_set_of_checks_only() -> None:
    from dsdoctor.request import Request

    assert diagnose(h.healthy(), KNOWLEDGE, Request(only=("OPS",))).ops == ()


def test_an_op_of_another_torch_is_refused_and_the_others_build() -> (
    None
):  # DeepSpeed built with torch 2.13, run with 2.14
    mixed = h.healthy(
        h.deepspeed(built_torch="2.13", prebuilt_ops=("cpu_adam", "utils")), h.torch(version="2.14.1"), h.trials()
    )
    said = {op.name: op for op in diagnose(mixed, load_knowledge()).ops}
    assert (said["cpu_adam"].state, said["cpu_adam"].cause) == ("fails", "prebuilt-ops-torch-mismatch")
    assert said["utils"].state == "fails"
    assert said["pin_memory"].state == "builds"
