"""RUN010 to RUN015: what a run that came to its end computed."""

import math
from typing import Any

import msgspec
import pytest
from dsdoctor_checks import run_numbers as family

from dsdoctor import healthy as h
from dsdoctor.facts import Collective, SmokeProof, SmokeRun, SmokeStep
from dsdoctor.model import Check, Finding, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

REDUCE = Collective(name="all_reduce", message_bytes=1 << 20, bytes_per_s=(1e9, 1.1e9), correct=True)
RESUMES = SmokeProof(name="resumes", ok=True, detail="loss 0.2134 before and 0.2134 after the resume")


def told(check: Check, *runs: SmokeRun) -> tuple[Finding, ...]:
    found = verdict(check, h.healthy(h.smoke(*runs)))
    assert found.status is Status.FAILED, (found.status, found.reason)
    for finding in found.findings:
        assert finding.remedy is not None
        assert str(finding.remedy.verify).startswith("dsdoctor smoke ")
    return found.findings


def status(check: Check, *runs: SmokeRun) -> Status:
    return verdict(check, h.healthy(h.smoke(*runs))).status


def comm(**changes: Any) -> SmokeRun:
    return h.smoke_run("comm", **{"losses": (), "world_size": 2, "collectives": (REDUCE,), **changes})


@pytest.mark.parametrize("check", checks_of(family), ids=lambda check: check.code)
def test_a_healthy_set_of_runs_is_quiet(check: Check) -> None:
    runs = [h.smoke_run(f"zero{stage}", world_size=2) for stage in (1, 2, 3)]
    assert status(check, *runs, comm(), h.smoke_run("checkpoint", stage=2, proofs=(RESUMES,))) is Status.PASSED


@pytest.mark.parametrize("check", checks_of(family), ids=lambda check: check.code)
def test_a_run_that_fell_has_no_numbers_to_judge(check: Check) -> None:
    odd: dict[str, Any] = {"losses": (1.0, None), "collectives": (msgspec.structs.replace(REDUCE, correct=False),)}
    assert status(check, h.fallen_run(**odd)) is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("losses", "word"),
    [
        ((1.0, None), "no finite number in step 2"),
        ((None, 1.0), "no finite number in step 1"),
        ((1.0, 1.2), "from 1 to 1.2 in 2 steps"),
        ((1.0, 1.0), "did not learn"),
        ((), "without a loss"),
    ],
)
def test_a_run_that_ended_but_did_not_learn(losses: tuple[float | None, ...], word: str) -> None:
    (finding,) = told(family.losses_fall, h.smoke_run(losses=losses))
    assert word in finding.message
    assert (finding.cause, finding.subject) == ("smoke-loss-wrong", "zero2")


def test_one_step_has_no_way_to_fall_and_collectives_have_no_loss() -> None:
    assert status(family.losses_fall, h.smoke_run(losses=(1.0,))) is Status.PASSED
    assert status(family.losses_fall, comm()) is Status.PASSED


def test_fp16_that_skipped_every_step_is_no_broken_gpu() -> None:
    steps = tuple(SmokeStep(number=n + 1, loss=1.1, ms=9.0, loss_scale=65536.0 / 2**n) for n in range(4))
    (finding,) = told(family.losses_fall, h.smoke_run(dtype="fp16", steps=steps))
    assert finding.cause == "loss-scale-minimum"
    assert "all 4 steps" in finding.message
    assert "from 65536 to 8192" in finding.message
    same = tuple(msgspec.structs.replace(step, loss_scale=256.0) for step in steps)
    (finding,) = told(family.losses_fall, h.smoke_run(dtype="fp16", steps=same))
    assert finding.cause == "smoke-loss-wrong"


def two_ranks(first: float, second: float, dtype: str) -> SmokeRun:
    ranks = (h.smoke_rank(0, 2, loss=first), h.smoke_rank(1, 2, loss=second))
    return h.smoke_run(world_size=2, ranks=ranks, dtype=dtype)


@pytest.mark.parametrize(
    ("first", "second", "dtype", "equal"),
    [
        (0.2134, 0.2134, "fp32", True),
        (0.2134, 0.2134 * (1 + 5e-6), "fp32", True),
        (0.2134, 0.2134 * (1 + 5e-5), "fp32", False),
        (0.2134, 0.2134 * (1 + 5e-3), "bf16", True),
        (0.2134, 0.2134 * (1 + 5e-2), "bf16", False),
        (0.2134, 0.2134 * (1 + 5e-2), "fp16", False),
        (0.2134, math.nan, "bf16", False),
        (0.0, 0.0, "fp32", True),
    ],
)
def test_ranks_that_differ_are_named_with_both_losses(first: float, second: float, dtype: str, equal: bool) -> None:
    run = two_ranks(first, second, dtype)
    if equal:
        assert status(family.ranks_agree, run) is Status.PASSED
        return
    (finding,) = told(family.ranks_agree, run)
    assert "0.2134" in finding.message
    assert f"{second:.6g}" in finding.message
    assert "rank 0" in finding.message
    assert "rank 1" in finding.message


def stage(number: int, *, scale: float = 1.0, **changes: Any) -> SmokeRun:
    losses = changes.pop("losses", tuple(loss * scale for loss in (1.1, 0.9, 0.7, 0.55)))
    return h.smoke_run(f"zero{number}", losses=losses, **changes)


def test_the_stage_that_trains_unlike_the_others_is_the_odd_one() -> None:
    findings = told(family.stages_agree, stage(1), stage(2), stage(3, scale=1.2))
    assert {finding.subject for finding in findings} == {"zero3"}
    assert "zero1 has a loss of 1.1 in step 1, and zero3 1.32" in findings[0].message


def test_of_two_stages_that_part_both_are_in_doubt() -> None:
    (finding,) = told(family.stages_agree, stage(2, dtype="fp32"), stage(3, scale=1.005, dtype="fp32"))
    assert finding.subject == "zero2, zero3"
    assert status(family.stages_agree, stage(2), stage(3, scale=1.005)) is Status.PASSED, "bf16 is that coarse"


@pytest.mark.parametrize(
    "other",
    [
        stage(3, scale=2, dtype="fp16"),
        stage(3, scale=2, world_size=2),
        stage(3, scale=2, accelerator="cpu"),
        stage(3, losses=(9.0, 8.0)),
        stage(3, scale=2, config="ds.json"),
        h.smoke_run("zero3-offload", losses=(9.0, 8.0, 7.0, 6.0)),
    ],
)
def test_stages_are_compared_on_the_same_terms_only(other: SmokeRun) -> None:
    assert status(family.stages_agree, stage(2), other) is Status.NOT_APPLICABLE


def test_a_rank_that_holds_all_states_is_found() -> None:
    (finding,) = told(family.states_are_partitioned, h.smoke_run(world_size=2, rank={"held_state_elements": 16384}))
    assert (finding.cause, finding.subject) == ("states-not-partitioned", "zero2")
    assert "rank 0 holds 16,384 of 16,384 elements" in finding.message


def test_zero3_must_partition_its_parameters_too_and_zero2_need_not() -> None:
    whole = {"held_parameter_elements": 16384}
    assert status(family.states_are_partitioned, h.smoke_run("zero2", world_size=2, rank=whole)) is Status.PASSED
    (finding,) = told(family.states_are_partitioned, h.smoke_run("zero3", world_size=2, rank=whole))
    assert "its parameters" in finding.message


def test_parts_must_make_the_whole_up_to_padding() -> None:
    lost = h.smoke_run(world_size=4, rank={"held_state_elements": 1000})
    (finding,) = told(family.states_are_partitioned, lost)
    assert "holds 4,000 elements" in finding.message
    assert "16,384" in finding.message
    padded = h.smoke_run(world_size=4, rank={"held_state_elements": 4100})
    assert status(family.states_are_partitioned, padded) is Status.PASSED
    own = h.smoke_run(world_size=4, rank={"held_state_elements": 8192}, config="ds.json")
    assert status(family.states_are_partitioned, own) is Status.PASSED, "a user's config may keep groups of its own"


def test_one_rank_or_unknown_holdings_prove_nothing_against_zero() -> None:
    assert status(family.states_are_partitioned, h.smoke_run()) is Status.NOT_APPLICABLE
    unknown = h.smoke_run(world_size=2, rank={"held_state_elements": None})
    assert status(family.states_are_partitioned, unknown) is Status.PASSED
    split = h.smoke_run("moe", stage=2, world_size=2, parallel="experts over 2 ranks", rank={"held_state_elements": 99})
    assert status(family.states_are_partitioned, split) is Status.PASSED


def test_wrong_sums_are_named_and_the_path_is_tried_without_peer_access() -> None:
    wrong = tuple(msgspec.structs.replace(REDUCE, name=n, correct=False) for n in ("broadcast", "all_gather"))
    (finding,) = told(family.collectives_are_right, comm(collectives=(REDUCE, *wrong)))
    assert "broadcast, all_gather" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("export NCCL_P2P_DISABLE=1", "dsdoctor smoke comm --ranks 2")
    (finding,) = told(family.collectives_are_right, comm(collectives=wrong, accelerator="cpu"))
    assert finding.remedy is not None
    assert not finding.remedy.commands


def test_a_proof_that_does_not_hold_is_told_with_its_detail() -> None:
    broken = SmokeProof(name="resumes", ok=False, detail="loss 0.2134 before and 0.9911 after the resume")
    other = SmokeProof(name="partitioned", ok=False, detail="rank 1 holds 16384 of 16384")
    findings = told(family.proofs_hold, h.smoke_run("checkpoint", proofs=(RESUMES, broken, other)))
    assert [finding.cause for finding in findings] == ["smoke-loss-wrong", "states-not-partitioned"]
    assert "0.9911" in findings[0].message
    assert findings[0].subject == "checkpoint"


def test_a_users_own_warmup_may_begin_without_learning_and_a_loss_that_rises_is_told() -> None:
    still = h.smoke_run(recipe="config", config="ds_config.json", losses=(1.0, 1.0, 1.0))
    assert status(family.losses_fall, still) is Status.PASSED
    (finding,) = told(family.losses_fall, h.smoke_run(recipe="config", config="ds_config.json", losses=(1.0, 1.5)))
    assert "from 1 to 1.5" in finding.message
