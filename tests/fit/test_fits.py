"""Whether it fits here, and what is told to do."""

from typing import Any

import msgspec
import pytest

from dsdoctor.facts.gpu import Gpu, GpuProcess, Gpus
from dsdoctor.facts.memory import Memory
from dsdoctor.facts.snapshot import Snapshot
from dsdoctor.facts.storage import Place, Storage
from dsdoctor.fit.fits import best, fit, fits, highest, highest_below, largest
from dsdoctor.fit.room import Room, room_of
from dsdoctor.fit.shapes import ModelShape, from_config, from_size
from dsdoctor.fit.strategies import STRATEGIES, Strategy, strategy
from dsdoctor.fit.training import Training
from dsdoctor.testing import machine

GIB = 1 << 30
SEVEN = from_size("7B", layers=32, hidden=4096, vocab=32_000)
EIGHT = Training(gpus_per_node=8, sequence=2048, checkpointing=True)


def card(index: int = 0, free: int = 79, **more: object) -> Gpu:
    return Gpu(index=index, name="NVIDIA A100-SXM4-80GB", total_bytes=80 * GIB, free_bytes=free * GIB, **more)  # type: ignore[arg-type]


def here(*cards: Gpu, ram: int = 500, nvme: int | None = None, **memory: Any) -> Snapshot:
    sections = [Gpus(nvml="ok", devices=cards), Memory(total_bytes=ram * GIB, available_bytes=ram * GIB, **memory)]
    if nvme is not None:
        return machine(
            *sections, Storage(places=(Place(path="/nvme", role="nvme", named_by="--nvme", free_bytes=nvme * GIB),))
        )
    return machine(*sections)


def test_the_fullest_of_the_used_gpus_decides() -> None:
    room = room_of(here(card(0), card(1, free=20), card(2)), gpus=2)
    assert room.gpu == 79 * GIB  # the full one is left out
    assert room_of(here(card(0), card(1, free=20), card(2))).gpu == 20 * GIB


def test_other_processes_are_told() -> None:
    busy = card(free=30, processes=(GpuProcess(pid=7, used_bytes=49 * GIB),))
    assert any("49.0 GiB" in note for note in room_of(here(busy)).notes)


def test_a_cgroup_is_less_ram_than_the_machine_has() -> None:
    room = room_of(here(card(), cgroup_limit_bytes=32 * GIB, cgroup_used_bytes=2 * GIB))
    assert room.host == 30 * GIB
    assert any("cgroup" in note for note in room.notes)


def test_a_gpu_that_does_not_answer_is_no_room() -> None:
    assert room_of(here(card(error="lost"))).gpus == 0
    assert room_of(machine()).gpu is None


def test_a_machine_without_a_gpu_gets_numbers_and_no_verdict() -> None:
    room = room_of(
        machine(Gpus(nvml="library-missing", devices=()), Memory(total_bytes=64 * GIB, available_bytes=60 * GIB)),
        gpus=1,
    )
    assert [note for note in room.notes if "GPU" in note] == [
        "no usable GPU is here: what a GPU needs is said, not judged"
    ]
    found = fit(SEVEN, Training(), strategy("zero2"), room)
    assert found.word == "unknown"
    assert found.need.gpu.bytes > 0


def test_seven_billion_on_one_card_needs_the_cpu() -> None:
    found = fits(SEVEN, Training(checkpointing=True), room_of(here(card())))
    words = {f.plan.name: f.word for f in found}
    assert words["ddp"] == words["zero2"] == "no"
    assert words["zero2-cpu"] == "fits"
    choice = best(found)
    assert choice is not None
    assert choice.plan.optimizer == "cpu"
    assert "stay free" in choice.reason


def test_eight_cards_share_and_the_least_traffic_wins() -> None:
    found = fits(SEVEN, EIGHT, room_of(here(*(card(i) for i in range(8)))))
    choice = best(found)
    assert choice is not None
    assert choice.plan.name in ("zero1", "zero2")
    costs = [f.traffic.cost for f in found if f.word == "fits"]
    assert costs == sorted(costs)


def test_what_is_missing_is_said() -> None:
    found = fit(SEVEN, Training(), strategy("ddp"), room_of(here(card(free=40))))
    gpu = found.answers[0]
    assert found.word == "no"
    assert gpu.spare is not None
    assert gpu.spare < 0
    assert f"{-gpu.spare / GIB:.1f} GiB are missing" in found.reason


def test_ram_can_be_what_is_missing() -> None:
    found = fit(SEVEN, Training(checkpointing=True), strategy("zero2-cpu"), room_of(here(card(), ram=64)))
    assert found.word == "no"
    assert found.reason.startswith("RAM")


def test_nvme_counts_only_for_those_that_use_it() -> None:
    room = room_of(here(card(), nvme=50))
    assert fit(SEVEN, Training(checkpointing=True), strategy("zero3-nvme"), room).answers[2].word == "no"
    assert fit(SEVEN, Training(checkpointing=True), strategy("zero2-cpu"), room).answers[2].word == "fits"


def test_an_unknown_room_is_neither_yes_nor_no() -> None:
    found = fit(SEVEN, Training(), strategy("zero2"), Room(host=500 * GIB))
    assert found.word == "unknown"
    assert "not known" in found.reason


def test_close_to_the_edge_is_tight() -> None:
    needed = fit(SEVEN, EIGHT, strategy("zero2"), Room()).need.gpu.bytes
    assert fit(SEVEN, EIGHT, strategy("zero2"), Room(gpu=needed + GIB // 4, host=900 * GIB)).word == "tight"


def test_the_largest_fits_and_one_more_does_not() -> None:
    room, plan = room_of(here(*(card(i) for i in range(8)))), strategy("zero3")
    most = largest(SEVEN, EIGHT, plan, room)
    assert most.micro_batch > 1
    assert most.sequence > 2048
    for batch, word in ((most.micro_batch, True), (most.micro_batch + 1, False)):
        assert (fit(SEVEN, msgspec.structs.replace(EIGHT, micro_batch=batch), plan, room).word == "fits") is word


def test_nothing_fits_is_zero() -> None:
    assert largest(SEVEN, Training(), strategy("ddp"), room_of(here(card(free=40)))).micro_batch == 0


@pytest.mark.parametrize("edge", [0, 1, 2, 3, 7, 8, 100])
def test_the_edge_is_found(edge: int) -> None:
    assert highest(lambda n: n <= edge, 100) == edge


@pytest.mark.parametrize(
    ("edge", "above"), [(0, 0), (0, 1), (0, 100), (1, 100), (7, 7), (7, 8), (60, 100), (99, 100), (3, 4096)]
)
def test_the_edge_is_found_from_above(edge: int, above: int) -> None:
    assert highest_below(lambda n: n <= edge, above) == min(edge, above)


SMALL: ModelShape = from_config({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 20, "num_attention_heads": 16,
                                 "vocab_size": 32000})  # fmt: skip


@pytest.mark.parametrize("plan", [plan for plan in STRATEGIES if plan.optimizer != "nvme"], ids=lambda plan: plan.name)
@pytest.mark.parametrize("cap", [9, 14])
def test_the_largest_is_what_trying_each_one_finds(plan: Strategy, cap: int) -> None:
    training, room = Training(checkpointing=True, sequence=2048), Room(gpus=1, gpu=cap * GIB, host=64 * GIB)
    count = 0
    while fit(SMALL, msgspec.structs.replace(training, micro_batch=count + 1), plan, room).word == "fits":
        count += 1
    assert largest(SMALL, training, plan, room).micro_batch == count


def test_stage_3_has_the_whole_model_on_each_gpu_at_the_start_unless_zero_init_made_it() -> None:
    """Measured: initialize() allocates the model's own size, on one GPU and on two."""
    room = room_of(here(*(card(i) for i in range(8)), ram=2000))
    seventy = from_size("70B", layers=80, hidden=8192, vocab=128_256)
    found = fit(seventy, EIGHT, strategy("zero3-cpu"), room)
    assert found.need.gpu.bytes < 80 * GIB < 140e9
    assert found.zero_init
    assert "zero.Init" in found.reason
    assert not fit(SEVEN, EIGHT, strategy("zero3"), room).zero_init


def test_adapters_alone_need_no_copies_of_the_frozen_weights() -> None:
    adapters = Training(lora_rank=8, checkpointing=True)
    room = Room(gpus=1, gpu=20 * GIB, host=64 * GIB)
    assert fit(SEVEN, adapters, strategy("ddp"), room).word == "fits"
