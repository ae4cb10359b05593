"""What is said against what was measured on H200s: peak of GPU memory and of RAM, and never "fits" for what ran out."""

import statistics

import pytest

from dsdoctor.fit.fits import fit
from dsdoctor.fit.memory import need
from dsdoctor.fit.rehearsal import reserved
from dsdoctor.fit.room import Room
from tests.fit.measured import Row, asked, gpu_bytes, rows

ROWS = rows()
RAN = [row for row in ROWS if row["ok"]]
GIB = 1 << 30


def name(row: Row) -> str:
    return str(row["point"]["name"])


def gpu_error(row: Row) -> float:
    return need(*asked(row)).gpu.bytes / gpu_bytes(row) - 1


def host_error(row: Row) -> float:
    shape, training, plan = asked(row)
    return need(shape, training, plan).host.bytes / training.gpus_per_node / int(row["host_peak"]) - 1


def test_enough_was_measured() -> None:
    assert len(RAN) >= 12
    assert {row["point"]["stage"] for row in RAN} == {0, 1, 2, 3}


def shown_error(row: Row) -> float:
    """What nvidia-smi shows of the process: torch's cache included."""
    shape, training, plan = asked(row)
    said = reserved(shape, training, plan) + need(shape, training, plan).gpu.of("runtime")
    return said / int(row["nvml_process"]) - 1


@pytest.mark.parametrize("row", RAN, ids=name)
def test_no_point_is_far_off(row: Row) -> None:
    assert abs(gpu_error(row)) <= 0.10
    assert abs(shown_error(row)) <= 0.20
    assert abs(host_error(row)) <= 0.12


def test_most_are_close() -> None:
    assert statistics.median(abs(gpu_error(row)) for row in RAN) <= 0.03
    assert statistics.median(abs(shown_error(row)) for row in RAN) <= 0.08
    assert statistics.median(abs(host_error(row)) for row in RAN) <= 0.03


def on_a_card(row: Row, torch_bytes: float) -> str:
    """The word for a card that leaves torch's allocator so many bytes."""
    shape, training, plan = asked(row)
    beside = need(shape, training, plan).gpu.of("runtime")
    return fit(shape, training, plan, Room(gpus=1, gpu=int(torch_bytes) + beside, host=10**12)).word


@pytest.mark.parametrize("row", RAN, ids=name)
def test_a_card_smaller_than_what_was_needed_at_once_is_never_said_to_fit(row: Row) -> None:
    assert on_a_card(row, 0.97 * row["peak_allocated"]) in ("tight", "no")
    assert on_a_card(row, 1.15 * row["peak_reserved"]) == "fits"


def test_what_ran_out_of_memory_was_never_said_to_fit() -> None:
    """Points with a cap ran with a part of the card for torch; those with none had all of it."""
    for row in ROWS:
        cap = (row["point"]["cap"] or 139) * GIB
        assert on_a_card(row, cap) in (("fits", "tight") if row["ok"] else ("tight", "no")), name(row)


@pytest.mark.parametrize("row", RAN, ids=name)
def test_the_parameters_are_the_real_models(row: Row) -> None:
    assert asked(row)[0].parameters == row["parameters"]
