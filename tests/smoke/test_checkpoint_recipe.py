"""Save, resume, consolidate, for real, and what the proofs say when a checkpoint is not all that it should be."""

import importlib.util
from pathlib import Path

import pytest

from tests.smoke.started import start

pytestmark = pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs torch and deepspeed")
FORGETS_MOMENTS = """
import deepspeed
load = deepspeed.DeepSpeedEngine.load_checkpoint
deepspeed.DeepSpeedEngine.load_checkpoint = lambda self, *a, **k: load(self, *a, load_optimizer_states=False, **k)
"""
CONSOLIDATES_WRONGLY = """
from deepspeed.utils import zero_to_fp32
right = zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint
def wrong(*a, **k):
    return {name: weights * 0.9 for name, weights in right(*a, **k).items()}
zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint = wrong
"""


def test_two_ranks_resume_and_consolidate(tmp_path: Path) -> None:
    ranks = start("checkpoint", 2, tmp_path)
    assert all(rank.ended_well for rank in ranks), ranks[0].output
    for rank in ranks:
        assert rank.proofs["resumes"]["ok"], rank.proofs
    assert ranks[0].proofs["zero-to-fp32"]["ok"], ranks[0].proofs
    assert [name for name in ranks[0].phases if name in ("save", "load", "consolidate")] == [
        "save",
        "load",
        "consolidate",
    ]
    assert f"{ranks[0].facts['loss']:.6f}" in ranks[0].proofs["zero-to-fp32"]["detail"]


def test_lost_moments_and_wrong_weights_are_seen(tmp_path: Path) -> None:
    (rank,) = start("checkpoint", 1, tmp_path, first=FORGETS_MOMENTS + CONSOLIDATES_WRONGLY, dtype="bf16")
    assert rank.ended_well, rank.output
    assert not rank.proofs["resumes"]["ok"], rank.proofs
    assert not rank.proofs["zero-to-fp32"]["ok"], rank.proofs
