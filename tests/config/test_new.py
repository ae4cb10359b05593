"""A new config is lean, sound and says why."""

import itertools
import json
from collections.abc import Iterator

import pytest

from dsdoctor.config.new import Device, Precision, Wish, problem, text
from dsdoctor.facts import FrameworkName, RunPlan
from dsdoctor.judge import finding_severity
from dsdoctor.model import Severity
from dsdoctor.readers import ds_config
from dsdoctor.testing import machine, verdict
from tests.checks.config_cases import CHECKS, H200S, NOW

DEVICES: tuple[Device, ...] = ("none", "cpu", "nvme")
PRECISIONS: tuple[Precision, ...] = ("bf16", "fp16", "fp32")
FRAMEWORKS: tuple[FrameworkName, ...] = ("none", "hf", "accelerate", "lightning")


def wishes() -> Iterator[Wish]:
    for stage, precision, optimizer, param, framework in itertools.product(
        range(4), PRECISIONS, DEVICES, DEVICES, FRAMEWORKS
    ):
        wish = Wish(
            stage=stage, precision=precision, offload_optimizer=optimizer, offload_param=param, framework=framework
        )
        if problem(wish) is None:
            yield wish


def test_no_check_has_more_than_advice_for_it() -> None:
    asked = 0
    for wish in wishes():
        facts = (ds_config.parse(text(wish), "ds.json"), NOW, H200S, RunPlan(gpus_per_node=8, framework=wish.framework))
        told = [(v, f) for check in CHECKS.values() for v in [verdict(check, machine(*facts))] for f in v.findings]
        assert [f.message for v, f in told if finding_severity(f, v) is not Severity.INFO] == [], wish
        asked += 1
    assert asked > 100


def test_hugging_face_can_read_it() -> None:
    for wish in wishes():
        if wish.framework != "none":
            json.loads(text(wish))


def test_it_says_why() -> None:
    made = text(Wish(stage=3, offload_param="nvme", nvme_path="/mnt/fast"))
    assert "// 0: off, 1: optimizer states are split" in made
    assert '"nvme_path": "/mnt/fast"' in made
    assert ds_config.parse(made, "ds.json").get("zero_optimization.stage") == 3


@pytest.mark.parametrize(
    "wish",
    [
        Wish(stage=4),
        Wish(stage=2, offload_param="cpu"),
        Wish(stage=0, offload_optimizer="cpu"),
        Wish(stage=2, offload_optimizer="nvme"),
        Wish(micro_batch=0),
    ],
)
def test_what_deepspeed_would_ignore_is_refused(wish: Wish) -> None:
    assert problem(wish)
