"""The config of a strategy is one that dsdoctor passes. That DeepSpeed takes it: tests/config_truth."""

from collections.abc import Iterator
from itertools import product

from dsdoctor.config.planned import config_text, ds_config
from dsdoctor.fit.strategies import STRATEGIES, Strategy, strategy
from dsdoctor.fit.training import OPTIMIZERS, Buckets, Training
from dsdoctor.judge import finding_severity
from dsdoctor.model import Severity, Status
from tests.config_truth.judging import verdicts

RANKS = 2
DTYPES = ("bf16", "fp16", "fp32")


def every_one() -> Iterator[tuple[Strategy, Training]]:
    for plan, dtype, optimizer in product(STRATEGIES, DTYPES, OPTIMIZERS):
        yield plan, Training(dtype=dtype, optimizer=optimizer, micro_batch=2, accumulation=4)  # type: ignore[arg-type]


def text(plan: Strategy, training: Training) -> str:
    return config_text(plan, training, nvme_path="/tmp", framework="none")


def test_no_check_has_more_than_advice_for_any() -> None:
    for plan, training in every_one():
        judged = verdicts(text(plan, training), RANKS)
        assert sum(v.status is Status.PASSED for v in judged) > 5
        told = [f.message for v in judged for f in v.findings if finding_severity(f, v) is not Severity.INFO]
        assert told == [], (plan.name, training)


def test_it_says_what_was_asked() -> None:
    made = ds_config(strategy("zero3-nvme"), Training(micro_batch=3, accumulation=5), nvme_path="/fast")
    assert (made["train_micro_batch_size_per_gpu"], made["gradient_accumulation_steps"]) == (3, 5)
    assert made["zero_optimization"]["offload_optimizer"] == {"device": "nvme", "nvme_path": "/fast"}
    assert made["zero_optimization"]["offload_param"] == {"device": "cpu"}


def test_a_trainer_fills_its_own_values() -> None:
    made = ds_config(strategy("zero2"), Training(micro_batch=3), framework="hf")
    assert made["train_micro_batch_size_per_gpu"] == "auto"
    assert made["optimizer"]["params"]["lr"] == "auto"
    assert "optimizer" not in ds_config(strategy("zero2"), Training(optimizer="adamw-8bit"), framework="hf")


def test_sizes_that_are_not_the_usual_ones_are_said() -> None:
    ours = Training(buckets=Buckets(reduce=5, live=7, overlap=False))
    assert ds_config(strategy("zero2"), ours)["zero_optimization"] == {
        "stage": 2,
        "reduce_bucket_size": 5,
        "overlap_comm": False,
    }
    assert ds_config(strategy("zero3"), ours)["zero_optimization"]["stage3_max_live_parameters"] == 7
    assert "reduce_bucket_size" not in ds_config(strategy("ddp"), ours)["zero_optimization"]
