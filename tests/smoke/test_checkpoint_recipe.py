"""What the proofs of the checkpoint recipe say when a checkpoint is not all that it should be."""

from pathlib import Path

from tests.smoke.ranks import proven, real, train

pytestmark = real
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


def test_lost_moments_and_wrong_weights_are_seen(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FORGETS_MOMENTS + CONSOLIDATES_WRONGLY)
    run = train("checkpoint", 1, shadow=tmp_path, dtype="bf16")
    assert proven(run) == {"resumes": False, "zero-to-fp32": False}
