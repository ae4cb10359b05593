"""The recipes pipeline, moe and comm with two real ranks and a network that lies."""

from pathlib import Path

import pytest

from tests.smoke.ranks import damage, proven, real, train

pytestmark = real


@pytest.mark.rare
def test_pipeline_whose_activations_arrive_wrong_is_not_the_model(tmp_path: Path) -> None:
    wrong = damage(tmp_path, "recv", "tensor.is_floating_point() and tensor.dim() == 2 and tensor.mul_(2)")
    run = train("pipeline", 2, steps=1, shadow=wrong)
    assert not proven(run)["pipeline-agrees"]
    assert not proven(run)["pipeline-gradients-agree"]


@pytest.mark.rare
def test_experts_that_get_other_tokens_are_not_the_model(tmp_path: Path) -> None:
    run = train("moe", 2, steps=1, shadow=damage(tmp_path, "all_to_all_single", "tensor.mul_(2)"))
    assert not proven(run)["experts-agree"]


def test_collectives_and_the_one_that_lies_on_a_rank_that_is_not_the_first(tmp_path: Path) -> None:
    wrong = damage(tmp_path, "recv", "tensor.numel() == 1024 and tensor[7].add_(1)")
    run = train("comm", 2, shadow=wrong)
    told = {one.name: (one.message_bytes, one.correct) for one in run.collectives}
    sound = (16 * 2**20, True)
    assert told == {
        "all_reduce": sound, "all_gather": sound, "reduce_scatter": sound, "broadcast": sound,
        "point_to_point": (4096, False),
    }  # fmt: skip
    assert all(len(one.bytes_per_s) == 5 for one in run.collectives)
    assert all(rate > 0 for one in run.collectives for rate in one.bytes_per_s)
    (proof,) = run.proofs
    assert (proof.name, proof.ok) == ("collective point_to_point", False)
    assert "1 of 1024 elements differ, the first at 7: 8.0 instead of 7.0 on rank 1" in proof.detail
