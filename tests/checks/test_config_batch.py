"""The batch equation: what DeepSpeed computes, what does not hold, and numbers that would."""

from typing import Any

import pytest
from dsdoctor_checks.config_batch import Sizes, holds, solve, ways_out

from dsdoctor.facts import RunPlan
from dsdoctor.model import Severity
from tests.checks.config_cases import H200S, config, found, judged, one

FOUR = RunPlan(gpus_per_node=4, named_by="--gpus 4")
SIXTEEN = RunPlan(gpus_per_node=8, nodes=2, named_by="--gpus 8 --nodes 2")


@pytest.mark.parametrize(
    ("given", "ranks", "solved"),
    [
        (Sizes(64, 4, 2), 8, Sizes(64, 4, 2)),
        (Sizes(64, 4, None), 8, Sizes(64, 4, 2)),
        (Sizes(64, None, 2), 8, Sizes(64, 4, 2)),
        (Sizes(None, 4, 2), 8, Sizes(64, 4, 2)),
        (Sizes(64, None, None), 8, Sizes(64, 8, 1)),
        (Sizes(None, 4, None), 8, Sizes(32, 4, 1)),
    ],
)
def test_the_missing_size_is_computed_as_deepspeed_does(given: Sizes, ranks: int, solved: Sizes) -> None:
    assert solve(given, ranks) == solved
    assert holds(given, ranks)


def test_every_way_out_solves_the_equation() -> None:
    for batch in range(1, 40):
        for micro in (None, 1, 2, 3, 5):
            for steps in (None, 1, 2, 3):
                for ranks in (1, 2, 4, 6):
                    for way in ways_out(Sizes(batch, micro, steps), ranks):
                        words = dict(zip(way.split()[::3], map(int, way.split()[1::3]), strict=False))
                        assert holds(_changed(Sizes(batch, micro, steps), words), ranks), (
                            batch,
                            micro,
                            steps,
                            ranks,
                            way,
                        )


def _changed(given: Sizes, words: dict[str, int]) -> Sizes:
    names = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
    return Sizes(*(words.get(name, value) for name, value in zip(names, given, strict=True)))


@pytest.mark.parametrize(
    ("sizes", "plan", "says", "order"),
    [
        ({"train_batch_size": 32, "gradient_accumulation_steps": 4}, FOUR, "4 ranks (--gpus 4)", "gradient_accumulation_steps 8"),
        ({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}, SIXTEEN,
         "16 ranks (--gpus 8 --nodes 2); it would fit 6 ranks", "train_batch_size 32"),
        ({"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1}, FOUR, "0 (computed)", "train_batch_size 4"),
    ],
)  # fmt: skip
def test_a_stated_number_of_ranks_makes_it_an_error(
    sizes: dict[str, Any], plan: RunPlan, says: str, order: str
) -> None:
    finding = one("CFG010", config(**sizes), plan)
    assert finding.severity is Severity.ERROR
    assert says in finding.message
    assert finding.remedy is not None
    assert order in finding.remedy.order


def test_the_place_stands_in_the_message() -> None:
    assert one("CFG010", config(train_batch_size=5), FOUR).message.startswith("ds.json:3:2: ")


def test_counted_gpus_make_it_a_warning() -> None:
    assert one("CFG010", config(train_batch_size=12, gradient_accumulation_steps=1), H200S).severity is Severity.WARNING


def test_ranks_that_hold_one_model_together_may_share_a_batch() -> None:
    halves = config(train_batch_size=2, tensor_parallel={"autotp_size": 2})
    assert not found("CFG010", halves, FOUR)
    assert not found("CFG010", config(train_batch_size=2, sequence_parallel_size=2), FOUR)
    assert found("CFG010", config(train_batch_size=4, gradient_accumulation_steps=1, sequence_parallel_size=2), FOUR)


def test_ranks_have_to_be_a_multiple_of_each_kind_of_parallelism() -> None:
    finding = one("CFG044", config(tensor_parallel={"autotp_size": 3}), FOUR)
    assert "does not divide the 4 ranks" in finding.message
    assert not found("CFG044", config(tensor_parallel={"autotp_size": 2}, pipeline={"stages": "auto"}), FOUR)
    assert not found("CFG044", config(), FOUR)


def test_more_processes_than_gpus() -> None:
    assert "wants 16 GPUs" in one("CFG018", RunPlan(gpus_per_node=16, named_by="--gpus 16"), H200S).message
    assert not found("CFG018", SIXTEEN, H200S)
    assert judged("CFG018", FOUR).reason == "the GPUs were not examined"
