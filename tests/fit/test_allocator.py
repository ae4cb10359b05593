"""torch's allocator rehearsed: what is shared, split, melted and given back."""

from dsdoctor.fit.allocator import MIB, Allocator


def test_a_freed_block_serves_the_next_tensor() -> None:
    memory = Allocator()
    memory.give(memory.take(100 * MIB))
    memory.take(60 * MIB)
    memory.take(40 * MIB)
    assert memory.peak == 100 * MIB


def test_holes_do_not_hold_a_larger_tensor() -> None:
    memory = Allocator()
    memory.give(*[memory.take(50 * MIB) for _ in range(4)])
    memory.take(200 * MIB)
    assert memory.peak == 400 * MIB


def test_neighbours_melt_into_one_again() -> None:
    memory = Allocator()
    memory.give(memory.take(100 * MIB))
    pieces = [memory.take(25 * MIB) for _ in range(4)]
    memory.give(pieces[0], pieces[2], pieces[1], pieces[3])
    memory.take(100 * MIB)
    assert memory.peak == 100 * MIB


def test_the_smallest_hole_that_fits_is_taken() -> None:
    memory = Allocator()
    large, small = memory.take(100 * MIB), memory.take(30 * MIB)
    memory.give(large, small)
    memory.take(30 * MIB)
    memory.take(100 * MIB)
    assert memory.peak == 130 * MIB


def test_middling_tensors_share_segments_of_20_mib() -> None:
    memory = Allocator()
    for _ in range(4):
        memory.take(5 * MIB)
    assert memory.peak == 20 * MIB


def test_only_whole_segments_go_back() -> None:
    memory = Allocator()
    memory.give(memory.take(100 * MIB), memory.take(100 * MIB))
    memory.take(10 * MIB)
    memory.empty_cache()
    assert memory.reserved == 100 * MIB
