"""What of an order can be run on a machine, and why the rest cannot."""

from typing import Any

import pytest

from dsdoctor.facts import Fact, SmokeRun, Snapshot, Unavailable
from dsdoctor.healthy import environment, gpus, healthy, host, no_gpus, packages, torch_live
from dsdoctor.smoke.order import Job, SmokeOrder, UnknownRecipe, gpus_of, jobs, visible
from dsdoctor.smoke.recipes import RECIPES, listing


def machine(count: int = 1, *changed: Fact, **missing: Unavailable) -> Snapshot:
    """A healthy machine with so many GPUs, and with Accelerate and transformers."""
    live = torch_live(count) if count else torch_live(0, cuda_available=False, device_count=0)
    seen = () if "torch_live" in missing else (live,)
    found = packages({"accelerate": "1.15.0", "transformers": "5.24.0"})
    return healthy(*seen, gpus(count) if count else no_gpus(), found, *changed, **missing)


def run(order: SmokeOrder, where: Snapshot, **rest: Any) -> Job | SmokeRun:
    (only,) = jobs(order, where, blocked={}, **rest)
    return only


def why(order: SmokeOrder, where: Snapshot) -> str:
    found = run(order, where)
    assert isinstance(found, SmokeRun)
    assert found.outcome == "not-applicable"
    return found.because or ""


def job(order: SmokeOrder, where: Snapshot) -> Job:
    found = run(order, where)
    assert isinstance(found, Job)
    return found


def test_default_is_zero2_on_every_gpu() -> None:
    found = job(SmokeOrder(), machine(2))
    assert (found.recipe.name, found.ranks, found.use_gpu, found.visible) == ("zero2", 2, True, (0, 1))


def test_on_a_cpu_a_recipe_takes_as_few_ranks_as_it_needs() -> None:
    assert (job(SmokeOrder(), machine(0)).ranks, job(SmokeOrder(), machine(0)).use_gpu) == (1, False)
    assert job(SmokeOrder(recipes=("pipeline",)), machine(0)).ranks == 2
    assert job(SmokeOrder(recipes=("pipeline",), cpu=True), machine(1)).ranks == 2


def test_two_ranks_on_one_gpu_are_not_tried() -> None:
    assert "there is one GPU" in why(SmokeOrder(recipes=("pipeline",)), machine(1))
    assert "torch sees 1 GPU:" in why(SmokeOrder(ranks=2), machine(1))


@pytest.mark.parametrize("recipe", ["accelerate", "trainer"])
def test_missing_packages_are_named(recipe: str) -> None:
    bare = machine(1, packages({"accelerate": None, "transformers": None}))
    assert "accelerate" in why(SmokeOrder(recipes=(recipe,)), bare)
    assert "not installed" in why(SmokeOrder(recipes=(recipe,)), bare)


def test_swapping_needs_a_folder_and_linux() -> None:
    order = SmokeOrder(recipes=("zero3-nvme",))
    assert "--nvme" in why(order, machine())
    there = SmokeOrder(recipes=("zero3-nvme",), nvme="/mnt/nvme")
    assert job(there, machine()).nvme == "/mnt/nvme"
    assert "Linux" in why(there, machine(1, host(system="darwin")))


def test_all_leaves_out_what_is_blocked_and_says_by_what() -> None:
    found = jobs(SmokeOrder(everything=True, nvme="/mnt"), machine(2), blocked={"nvme-offload": "OPS003"})
    left = {one.recipe: one.because for one in found if isinstance(one, SmokeRun)}
    assert "OPS003" in (left["zero3-nvme"] or "")
    ran = {one.recipe.name for one in found if isinstance(one, Job)}
    assert ran | left.keys() == {recipe.name for recipe in RECIPES} - {"config"}


def test_a_blocked_recipe_that_is_named_runs_all_the_same() -> None:
    (found,) = jobs(SmokeOrder(recipes=("zero2",)), machine(), blocked={"zero2": "GPU001"})
    assert isinstance(found, Job)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownRecipe, match="did you mean zero3-offload"):
        jobs(SmokeOrder(recipes=("zero3-ofload",)), machine(), blocked={})


def test_the_users_gpus_are_sampled() -> None:
    for named, expected in (("3,1", (3, 1)), ("2", (2,)), ("GPU-abc,GPU-def", ())):
        where = machine(2, environment(CUDA_VISIBLE_DEVICES=named))
        assert visible(where, 2)[:2] == expected


def test_before_torch_was_imported_nvml_knows_the_gpus() -> None:
    late = Unavailable(kind="timed-out", detail="the import hangs")
    assert gpus_of(machine(2, torch_live=late)) == 2
    assert gpus_of(machine(0, torch_live=late)) == 0


def test_the_list_says_what_each_recipe_needs() -> None:
    lines = {line.split()[0]: line for line in listing().splitlines()}
    assert lines.keys() == {recipe.name for recipe in RECIPES}
    assert "2 ranks" in lines["pipeline"]
    assert "--nvme PATH" in lines["zero3-nvme"]
