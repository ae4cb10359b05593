"""Where nothing fits: what is said to help does help."""

import msgspec

from dsdoctor.fit.fits import best, fits
from dsdoctor.fit.room import Room
from dsdoctor.fit.shapes import from_size
from dsdoctor.fit.strategies import STRATEGIES
from dsdoctor.fit.training import Training
from dsdoctor.fit.ways import cheapest, easier, nearest, ways

GIB = 1 << 30
SEVEN = from_size("7B", layers=32, hidden=4096, vocab=32_000)
BIG = Room(gpus=1, gpu=79 * GIB, host=60 * GIB)


def test_each_way_makes_it_fit_and_names_its_strategy() -> None:
    asked = Training(micro_batch=16, sequence=4096)
    assert best(fits(SEVEN, asked, BIG)) is None
    found = ways(SEVEN, asked, BIG)
    assert found
    for way in found:
        changed = msgspec.structs.replace(asked, **_options(way.options))
        choice = best(fits(SEVEN, changed, BIG))
        assert choice is not None, way
        assert (choice.plan.name, choice.word) == (way.strategy, way.word)


def _options(options: tuple[str, ...]) -> dict[str, object]:
    """As the command line understands them."""
    names = {
        "--activation-checkpointing": ("checkpointing", bool), "--zero-init": ("zero_init", bool), "--dtype": ("dtype", str),
        "--micro-batch": ("micro_batch", int), "--accumulation": ("accumulation", int), "--seq": ("sequence", int),
        "--lora-rank": ("lora_rank", int), "--gpus": ("gpus_per_node", int), "--nodes": ("nodes", int),
    }  # fmt: skip
    made: dict[str, object] = {}
    for option in options:
        name, _, value = option.partition(" ")
        made[names[name][0]] = names[name][1](value or True)
    return made


def test_single_changes_come_alone() -> None:
    """One that suffices is not mixed with others."""
    for way in ways(SEVEN, Training(micro_batch=16, sequence=4096, lora_rank=8), BIG):
        assert ";" not in way.change


def test_a_smaller_micro_batch_keeps_the_global_batch() -> None:
    found = ways(SEVEN, Training(micro_batch=16, sequence=4096, lora_rank=8), BIG)
    smaller = next(_options(way.options) for way in found if "accumulated" in way.change)
    assert smaller["micro_batch"] in (1, 2, 4, 8)
    assert int(str(smaller["micro_batch"])) * int(str(smaller["accumulation"])) == 16


def test_together_when_no_single_change_does() -> None:
    seventy = from_size("70B")
    machine = Room(gpus=8, gpu=79 * GIB, host=900 * GIB)
    found = ways(seventy, Training(gpus_per_node=8), machine)
    assert found
    assert any(len(way.options) > 1 for way in found)


def test_nothing_helps_a_card_without_room() -> None:
    assert ways(SEVEN, Training(), Room(gpus=1, gpu=GIB // 2, host=60 * GIB)) == ()


def test_the_cheapest_is_the_best_of_all() -> None:
    for room in (BIG, Room(gpus=1, gpu=79 * GIB, host=500 * GIB), Room(gpus=1, gpu=20 * GIB, host=500 * GIB)):
        for training in (Training(checkpointing=True), Training(gpus_per_node=8), Training(lora_rank=16)):
            one, other = cheapest(SEVEN, training, room), best(fits(SEVEN, training, room))
            assert (one and one.plan.name) == (other and other.plan.name)


def test_easier_ways_leave_the_results_alone() -> None:
    tight = Room(gpus=2, gpu=int(14.7 * GIB), host=23 * GIB)
    for way in easier(from_size("1B"), Training(gpus_per_node=2), tight):
        assert way.word == "fits"
        assert not any(option.startswith(("--lora", "--seq", "--dtype")) for option in way.options)


def test_the_nearest_lacks_least() -> None:
    found = fits(SEVEN, Training(), Room(gpus=1, gpu=20 * GIB, host=60 * GIB, nvme=900 * GIB))
    near = nearest(found)
    assert len(found) == len(STRATEGIES)
    assert near is not None
    assert near.plan.name.startswith("zero3-nvme")
