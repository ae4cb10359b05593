"""dsdoctor never passes a config that DeepSpeed's own class refuses, and has no error for a good one.

More of the same: `python -m tests.bench.config`.
"""

import importlib.util
import json
from itertools import islice, product
from pathlib import Path

import pytest

from dsdoctor.config.fix import apply, edits_of
from dsdoctor.config.new import Device, Precision, Wish, problem
from dsdoctor.config.new import text as new_config
from dsdoctor.config.planned import config_text
from dsdoctor.fit.strategies import STRATEGIES
from dsdoctor.fit.training import OPTIMIZERS, Training
from dsdoctor.model import Status
from tests.config_truth.generator import configs, one_odd_value_each
from tests.config_truth.judging import errors, verdicts
from tests.config_truth.oracle import Oracle

TUTORIALS = sorted((Path(__file__).parents[2] / "fixtures" / "tutorial_configs").glob("*.json"))
MADE = 300
DEVICES: tuple[Device, ...] = ("none", "cpu", "nvme")
PRECISIONS: tuple[Precision, ...] = ("bf16", "fp16", "fp32")
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
    asked = 0
    for stage, precision, optimizer, param in product(range(4), PRECISIONS, DEVICES, DEVICES):
        wish = Wish(stage=stage, precision=precision, offload_optimizer=optimizer, offload_param=param, micro_batch=3)
        if problem(wish) is None:
            assert deepspeed.refuses(new_config(wish), ranks=8) is None, wish
            asked += 1
    assert asked > 40


def test_deepspeed_takes_the_config_of_every_strategy(deepspeed: Oracle) -> None:
    for plan, dtype, optimizer in product(STRATEGIES, ("bf16", "fp16", "fp32"), OPTIMIZERS):
        asked = Training(dtype=dtype, optimizer=optimizer, micro_batch=2, accumulation=4)  # type: ignore[arg-type]
        text = config_text(plan, asked, nvme_path="/tmp", framework="none")
        assert deepspeed.refuses(text, ranks=2) is None, (plan.name, dtype, optimizer)
