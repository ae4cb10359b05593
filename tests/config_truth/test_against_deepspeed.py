"""dsdoctor never passes a config that DeepSpeed's own class refuses, and has no error for a good one.

More of the same: `python -m tests.bench.config`.
"""

import importlib.util
import json
from itertools import islice
from pathlib import Path

import pytest

from dsdoctor.config_fix import apply, edits_of
from dsdoctor.config_new import Device, Wish, problem
from dsdoctor.config_new import text as new_config
from dsdoctor.model import Status
from tests.config_truth.generator import configs, one_odd_value_each
from tests.config_truth.judging import errors, verdicts
from tests.config_truth.oracle import Oracle

TUTORIALS = sorted((Path(__file__).parents[2] / "fixtures" / "tutorial_configs").glob("*.json"))
MADE = 300
DEVICES: tuple[Device, ...] = ("none", "cpu", "nvme")
pytestmark = pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs torch and deepspeed")


def test_nothing_that_deepspeed_refuses_is_passed(deepspeed: Oracle) -> None:
    passed, refused, taken = [], 0, 0
    for number, made, ranks in (*configs(MADE), *islice(one_odd_value_each(), 0, None, 61)):
        text = json.dumps(made, indent=1)
        said = deepspeed.refuses(text, ranks)
        refused, taken = refused + (said is not None), taken + (said is None)
        if said is not None and not errors(text, ranks):
            passed.append((number, said))
    assert passed == []
    assert refused > MADE / 4  # the generator makes both kinds
    assert taken > MADE / 4


def test_a_good_config_of_each_tutorial_has_no_error(deepspeed: Oracle) -> None:
    for file in TUTORIALS:
        text, ranks = file.read_text(), 8
        assert deepspeed.refuses(text, ranks) is None, file.name
        assert errors(text, ranks) == [], file.name


def test_no_check_crashes_on_what_people_write() -> None:
    for _, made, ranks in configs(100, start=MADE):
        crashed = [v.code for v in verdicts(json.dumps(made), ranks) if v.status is Status.CRASHED]
        assert crashed == [], made


def test_safe_edits_make_no_config_worse(deepspeed: Oracle) -> None:
    """A mended file is still read, has no more errors, and what DeepSpeed took before it takes afterwards."""
    changed = 0
    for number, made, ranks in configs(150, start=2 * MADE):
        text = json.dumps(made, indent=1)
        fixed = apply(text, edits_of(verdicts(text, ranks))).text
        if fixed == text:
            continue
        changed += 1
        assert len(errors(fixed, ranks)) <= len(errors(text, ranks)), number
        assert deepspeed.refuses(text, ranks) is not None or deepspeed.refuses(fixed, ranks) is None, number
    assert changed > 10


def test_deepspeed_takes_every_new_config(deepspeed: Oracle) -> None:
    for stage in range(4):
        for device in DEVICES:
            wish = Wish(stage=stage, offload_optimizer=device, offload_param=device if stage == 3 else "none")
            if problem(wish) is None:
                assert deepspeed.refuses(new_config(wish), ranks=8) is None, wish
