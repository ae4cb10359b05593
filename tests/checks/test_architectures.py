"""NVIDIA's rules: which compiled code runs on which GPU."""

import pytest
from dsdoctor_checks.architectures import of_wheel, older_than_all, runs_on


@pytest.mark.parametrize(("capability", "names", "runs"), [
    ("8.9", ("sm_80", "sm_86"), True), ("8.0", ("sm_86",), False), ("9.0", ("sm_86",), False),
    ("12.0", ("sm_90", "compute_90"), True), ("12.1", ("sm_120",), True), ("10.3", ("sm_100a",), False),
    ("9.0", ("sm_90a",), True), ("10.3", ("sm_100f",), True), ("7.0", ("sm_75", "compute_120"), False),
    ("8.6", ("gfx90a",), False),
])  # fmt: skip
def test_where_compiled_code_runs(capability: str, names: tuple[str, ...], runs: bool) -> None:
    assert runs_on(capability, names) is runs


def test_a_gpu_that_is_older_than_all_code_is_told_from_a_newer_one() -> None:
    assert older_than_all("7.0", ("sm_75", "sm_80"))
    assert not older_than_all("12.0", ("sm_75", "sm_90"))


def test_the_wheel_of_another_cuda_is_not_guessed() -> None:
    assert of_wheel("2.8.0+cu128", "12.8") is not None
    assert of_wheel("2.8.0+cu126", "12.6") is None
