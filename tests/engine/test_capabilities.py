"""What can run here: ready only with evidence, blocked by codes, unknown with a reason, and never ready by silence."""

import pytest

from dsdoctor import healthy as h
from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.facts import Snapshot, Unavailable
from dsdoctor.model import Capability, Proof

KNOWLEDGE = load_knowledge()


def capability(name: str, snapshot: Snapshot) -> Capability:
    report = diagnose(snapshot, KNOWLEDGE)
    return next(c for c in report.capabilities if c.name == name)


@pytest.mark.parametrize(
    "name", ["zero1", "zero2", "zero3", "bf16", "fp16", "fused-adam", "optimizer-offload-cpu", "moe"]
)
def test_a_healthy_gpu_machine_is_ready(name: str) -> None:
    assert capability(name, h.healthy()).state == "ready"


def test_a_run_is_the_highest_proof_and_only_for_what_ran() -> None:
    ran = h.healthy(h.smoke())
    assert capability("zero2", ran).proof is Proof.RAN
    assert capability("bf16", ran).proof is Proof.RAN
    assert capability("zero3", ran).proof is Proof.PROBED
    assert capability("fused-adam", ran).proof is Proof.DECLARED, "the smoke run used torch's Adam"


def test_a_run_whose_loss_rose_proves_nothing_and_blocks() -> None:
    found = capability("zero2", h.healthy(h.smoke(losses=(1.0, 2.0))))
    assert (found.state, found.blocked_by) == ("blocked", ("RUN010",))


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        ("zero1", "zero1"),
        ("zero3", "zero3"),
        ("zero2-offload", "optimizer-offload-cpu"),
        ("zero3-offload", "param-offload-cpu"),
        ("zero3-nvme", "nvme-offload"),
        ("moe", "moe"),
        ("accelerate", "accelerate"),
        ("trainer", "hf-trainer"),
    ],
)
def test_a_recipe_proves_its_own_capability_and_blocks_it_when_it_falls(recipe: str, name: str) -> None:
    ran = capability(name, h.healthy(h.smoke(h.smoke_run(recipe, offload="to cpu" if "-" in recipe else None))))
    assert (ran.state, ran.proof) == ("ready", Proof.RAN)
    fell = h.healthy(h.smoke(h.fallen_run(recipe, rank={"error_type": "WeirdError", "error": "new"})))
    found = capability(name, fell)
    assert (found.state, found.blocked_by) == ("blocked", ("RUN001",))
    others = [c.name for c in diagnose(fell, KNOWLEDGE).capabilities if c.blocked_by]
    assert others == [name]


@pytest.mark.parametrize("recipe", ["pipeline", "3d", "comm"])
def test_recipes_of_several_gpus(recipe: str) -> None:
    two = (h.gpus(2), h.torch_live(2))
    run = h.smoke_run(recipe, world_size=2)
    name = "several-gpus" if recipe == "comm" else "pipeline-3d"
    assert capability(name, h.healthy(*two, h.smoke(run))).proof is Proof.RAN
    assert capability("several-gpus", h.healthy(*two, h.smoke(run))).proof is Proof.RAN, (
        "any run over several GPUs shows it"
    )
    fell = h.healthy(*two, h.smoke(h.fallen_run(recipe, world_size=2)))
    assert capability(name, fell).blocked_by == ("RUN001",)


def test_a_pipeline_over_cpu_ranks_is_ready_where_there_is_no_gpu() -> None:
    cpu = (
        h.no_gpus(),
        h.deepspeed_live(accelerator="cpu"),
        h.purpose(name="ci-cpu"),
        h.torch(cuda=None),
        h.torch_live(0, cuda=None, cuda_available=False, kernel=None),
    )
    run = h.smoke_run("pipeline", world_size=2, accelerator="cpu", dtype="fp32")
    found = capability("pipeline-3d", h.healthy(*cpu, h.smoke(run)))
    assert (found.state, found.proof) == ("ready", Proof.RAN)
    assert capability("pipeline-3d", h.healthy(*cpu)).state == "not_applicable"


@pytest.mark.parametrize(("phase", "blocked"), [("import deepspeed", True), ("initialize", False)])
def test_a_run_that_fell_while_it_imported_blocks_all_training(phase: str, blocked: bool) -> None:
    fell = h.healthy(h.smoke(h.fallen_run("zero2", rank={"last_phase": phase})))
    assert (capability("zero3", fell).state == "blocked") is blocked
    assert (capability("moe", fell).state == "blocked") is blocked


def test_a_checkpoint_that_fell_is_no_word_against_a_training_that_worked() -> None:
    fell = h.fallen_run("checkpoint", stage=2)
    assert capability("zero2", h.healthy(h.smoke(fell))).state == "blocked"
    assert capability("zero2", h.healthy(h.smoke(h.smoke_run(), fell))).proof is Proof.RAN


def test_offload_shows_its_own_capability_and_no_plain_stage() -> None:
    ran = h.healthy(h.smoke(h.smoke_run("zero3-offload", offload="optimizer and parameters to cpu")))
    assert capability("zero3", ran).proof is Proof.PROBED
    assert capability("bf16", ran).proof is Proof.RAN


def test_stages_that_part_are_both_blocked() -> None:
    runs = h.smoke(h.smoke_run("zero2"), h.smoke_run("zero3", losses=(9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0)))
    assert capability("zero2", h.healthy(runs)).blocked_by == ("RUN012",)
    assert capability("zero3", h.healthy(runs)).blocked_by == ("RUN012",)


def test_nvme_offload_without_libaio_is_blocked_even_when_nobody_asked() -> None:
    without = h.compilers(libaio_header=None, libaio_link=None, libaio_runtime=None)
    found = capability("nvme-offload", h.healthy(without))
    assert found.state == "blocked"
    assert "OPS010" in found.blocked_by


def test_arch_list_blocks_what_must_be_built_and_nothing_else() -> None:
    sick = h.healthy(h.environment(TORCH_CUDA_ARCH_LIST="9.0a"))
    assert capability("fused-adam", sick).blocked_by == ("OPS001",)
    assert capability("zero2", sick).state == "ready"


def test_missing_facts_make_unknown_not_ready() -> None:
    static = h.healthy(
        torch_live=Unavailable(kind="not-examined", detail="--static"),
        deepspeed_live=Unavailable(kind="not-examined", detail="--static"),
    )
    found = capability("zero2", static)
    assert (found.state, "--static" in str(found.because)) == ("unknown", True)


def test_one_gpu_is_no_place_for_several_and_two_are() -> None:
    assert capability("several-gpus", h.healthy()).state == "not_applicable"
    two = h.healthy(h.gpus(2), h.torch_live(2))
    assert capability("several-gpus", two).state == "ready"
    assert capability("pipeline-3d", two).state == "ready"


def test_an_old_gpu_has_no_bf16_and_says_why() -> None:
    t4 = h.gpus(devices=(h.gpu(name="Tesla T4", compute_capability="7.5"),))
    found = capability("bf16", h.healthy(t4))
    assert (found.state, "7.5" in str(found.because)) == ("not_applicable", True)


def test_a_broken_gpu_does_not_turn_its_machine_into_a_cpu_box() -> None:
    silent = h.gpus(nvml="driver-not-loaded", devices=(), driver_version=None)
    dead = h.torch_live(0, cuda_available=False, cuda_error="no driver", kernel=None)
    found = capability("zero2", h.healthy(silent, dead, h.deepspeed_live(accelerator="cpu")))
    assert found.state == "blocked"
