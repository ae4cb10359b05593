"""Every recipe for real, through the command line, on DeepSpeed's CPU accelerator with one rank and with two."""

import importlib.util

import pytest

from dsdoctor.smoke.recipes import RECIPES
from tests.lab.runs import Trained, train

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs torch and deepspeed"),
]
ON_A_CPU = [recipe for recipe in RECIPES if not recipe.swaps and recipe.name != "config"]
ELSEWHERE = ("accelerate", "trainer", "checkpoint")  # with one rank: test_huggingface_recipes, test_checkpoint_recipe
ALONE = [recipe.name for recipe in ON_A_CPU if recipe.least_ranks == 1 and recipe.name not in ELSEWHERE]
IN_CI = ("zero2", "zero3-offload")  # of one rank: the kinds that two ranks do not show already
TOGETHER = [recipe.name for recipe in ON_A_CPU]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(tmp_path_factory.mktemp("alone"), *IN_CI, "--ranks", "1", "--steps", "4")


@pytest.fixture(scope="module")
def rest_alone(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    rest = [recipe for recipe in ALONE if recipe not in IN_CI]
    return train(tmp_path_factory.mktemp("rest-alone"), *rest, "--ranks", "1", "--steps", "4")


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(tmp_path_factory.mktemp("together"), *TOGETHER, "--ranks", "2", "--steps", "4")


def sound(trained: Trained, recipe: str, ranks: int) -> None:
    run = trained.runs[recipe]
    assert run["outcome"] == "ok", (run["because"], [rank["error"] for rank in run["ranks"]], run["output_tail"])
    assert (run["accelerator"], run["world_size"], len(run["ranks"])) == ("cpu", ranks, ranks)
    assert all(proof["ok"] for proof in run["proofs"]), run["proofs"]
    assert run["aftermath"]["left_behind"] == []


@pytest.mark.parametrize("recipe", IN_CI)
def test_with_one_rank(alone: Trained, recipe: str) -> None:
    sound(alone, recipe, 1)


@pytest.mark.rare
@pytest.mark.parametrize("recipe", [recipe for recipe in ALONE if recipe not in IN_CI])
def test_the_rest_with_one_rank(rest_alone: Trained, recipe: str) -> None:
    sound(rest_alone, recipe, 1)


@pytest.mark.parametrize("recipe", TOGETHER)
def test_with_two_ranks(together: Trained, recipe: str) -> None:
    sound(together, recipe, 2)


@pytest.mark.parametrize("ranks", [1, 2])
def test_no_check_of_the_runs_finds_anything(alone: Trained, together: Trained, ranks: int) -> None:
    """Losses fall, ranks and ZeRO stages agree, states are partitioned, sums are right; and nothing is left behind."""
    trained = alone if ranks == 1 else together
    found = [f["message"] for v in trained.document["verdicts"] if v["code"].startswith("RUN") for f in v["findings"]]
    assert (found, trained.left) == ([], [])


def test_the_loss_is_that_of_one_rank_with_the_whole_batch(together: Trained) -> None:
    losses = {name: [step["loss"] for step in together.runs[name]["steps"]] for name in ("zero1", "zero2", "zero3")}
    assert losses["zero2"] == pytest.approx(losses["zero1"], rel=1e-4)
    assert losses["zero3"] == pytest.approx(losses["zero1"], rel=1e-4)


@pytest.mark.parametrize(("recipe", "part"), [("zero1", "held_state_elements"), ("zero3", "held_parameter_elements")])
def test_two_ranks_hold_half_each(together: Trained, recipe: str, part: str) -> None:
    ranks = together.runs[recipe]["ranks"]
    assert [rank[part] for rank in ranks] == [ranks[0]["parameter_elements"] // 2] * 2


@pytest.mark.parametrize(
    ("recipe", "parallel", "proofs"),
    [
        ("pipeline", "pipeline 2 x data 1", {"pipeline-agrees", "pipeline-gradients-agree", "stages-apart"}),
        (
            "3d",
            "pipeline 1 x data 1 x tensor 2",
            {"tensor-parallel-agrees", "tensor-parallel-gradients-agree", "slices-apart"},
        ),
        ("moe", "4 experts over 2 ranks", {"experts-agree", "tokens-travel", "experts-apart"}),
    ],
)
def test_a_model_over_two_ranks_is_the_model_in_one_piece(
    together: Trained, recipe: str, parallel: str, proofs: set[str]
) -> None:
    run = together.runs[recipe]
    assert run["parallel"] == parallel
    assert {proof["name"] for proof in run["proofs"]} == proofs
    for rank in run["ranks"]:
        assert 0 < rank["held_parameter_elements"] < rank["parameter_elements"]


def test_a_checkpoint_resumes_and_consolidates(together: Trained) -> None:
    assert {proof["name"] for proof in together.runs["checkpoint"]["proofs"]} == {"resumes", "zero-to-fp32"}


def test_capabilities_that_ran_say_so(together: Trained) -> None:
    proofs = {c["name"]: (c["state"], c["proof"]) for c in together.document["capabilities"]}
    for name in (
        "zero1",
        "zero2",
        "zero3",
        "optimizer-offload-cpu",
        "param-offload-cpu",
        "moe",
        "accelerate",
        "hf-trainer",
    ):
        assert proofs[name] == ("ready", "ran"), name
