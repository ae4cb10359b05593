"""The items: what a strategy shares out, what it moves away, and that each says why."""

import msgspec
import pytest

from dsdoctor.config.planned import ds_config
from dsdoctor.fit.host import pinned
from dsdoctor.fit.items import Account
from dsdoctor.fit.memory import Need, need, needs
from dsdoctor.fit.shapes import from_config, from_size
from dsdoctor.fit.strategies import STRATEGIES, strategy, traffic
from dsdoctor.fit.training import OPTIMIZERS, Buckets, Training

LLAMA = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
         "vocab_size": 32000}  # fmt: skip
SHAPE = from_config(LLAMA)
P = SHAPE.parameters
ONE = Training(checkpointing=True)
EIGHT = msgspec.structs.replace(ONE, gpus_per_node=8)


def states(account: Account) -> int:
    return account.of("parameters", "master", "optimizer")


@pytest.mark.parametrize(("name", "bytes_"), [("ddp", 14), ("zero1", 2 + 12 / 8), ("zero2", 2 + 12 / 8)])
def test_the_textbook_states(name: str, bytes_: float) -> None:
    assert states(need(SHAPE, EIGHT, strategy(name)).gpu) == pytest.approx(bytes_ * P, rel=0.001)


def test_each_stage_needs_less_than_the_one_before() -> None:
    found = [need(SHAPE, EIGHT, strategy(name)).gpu.bytes for name in ("ddp", "zero1", "zero2")]
    assert found == sorted(found, reverse=True)
    assert need(SHAPE, EIGHT, strategy("zero3-cpu-params")).gpu.bytes < found[-1]


def test_offload_moves_bytes_from_the_gpu_to_ram_and_disk() -> None:
    gpu, cpu, nvme = (need(SHAPE, ONE, strategy(name)) for name in ("zero3", "zero3-cpu", "zero3-nvme-params"))
    assert gpu.gpu.of("optimizer") == 8 * P
    assert cpu.gpu.of("optimizer") == 0
    assert cpu.host.of("optimizer") == 8 * P
    assert nvme.host.of("optimizer") == 8_095_334_400  # the largest sub-group's, before they go to the files
    assert nvme.nvme.bytes == 18 * P  # 16 for the optimizer, 2 for the parameters: reference/memory.md, measured


def test_pinned_memory_is_a_power_of_two() -> None:
    assert pinned(5 << 30, ONE) == 8 << 30
    assert pinned(5 << 30, Training(pin_memory=False)) == 5 << 30
    assert pinned(8 << 30, ONE) == 8 << 30
    assert pinned(0, ONE) == 0


def test_every_rank_makes_the_model_in_ram_unless_zero_init_does() -> None:
    plain = need(SHAPE, EIGHT, strategy("zero3")).host
    assert plain.moment == "start"
    assert plain.of("model") == 8 * 2 * P
    assert need(SHAPE, msgspec.structs.replace(EIGHT, zero_init=True), strategy("zero3")).host.of("model") == 0


@pytest.mark.parametrize(
    "change",
    [{"micro_batch": 2}, {"sequence": 4096}, {"checkpointing": False}, {"attention": "eager", "checkpointing": False}],
)
def test_more_work_needs_more(change: dict[str, object]) -> None:
    changed = msgspec.structs.replace(EIGHT, **change)
    for plan in STRATEGIES:
        assert need(SHAPE, changed, plan).gpu.moments["loss"] > need(SHAPE, EIGHT, plan).gpu.moments["loss"]


def test_overlap_comm_doubles_the_bucket() -> None:
    once, twice = (Training(checkpointing=True, micro_batch=1, buckets=Buckets(overlap=on)) for on in (False, True))
    plan = strategy("zero2")
    assert need(SHAPE, twice, plan).gpu.moments["head"] - need(SHAPE, once, plan).gpu.moments["head"] == 2 * 500_000_000


def test_lora_trains_little() -> None:
    full, lora = (need(SHAPE, msgspec.structs.replace(ONE, lora_rank=rank), strategy("zero2")) for rank in (0, 16))
    assert lora.gpu.of("optimizer") < full.gpu.of("optimizer") / 100
    assert lora.gpu.of("parameters") == pytest.approx(full.gpu.of("parameters"), rel=0.01)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_keeps_what_it_keeps(optimizer: str) -> None:
    training = msgspec.structs.replace(ONE, optimizer=optimizer)
    assert need(SHAPE, training, strategy("zero2")).gpu.of("optimizer") == int(training.state_bytes * P)


@pytest.mark.parametrize("name", ["zero1", "zero2", "zero3"])
def test_zero_copies_weights_that_are_fp32_already(name: str) -> None:
    training = msgspec.structs.replace(ONE, dtype="fp32")
    assert need(SHAPE, training, strategy(name)).gpu.of("master") == 4 * P
    assert need(SHAPE, training, strategy("ddp")).gpu.of("master") == 0


def every_need() -> list[Need]:
    return [n for training in (ONE, EIGHT) for n in needs(SHAPE, training)] + list(needs(from_size("1B"), ONE))


def test_every_item_is_positive_and_says_why() -> None:
    for found in every_need():
        for account in (found.gpu, found.host, found.nvme):
            assert account.bytes == max(account.moments.values())
            for item in account.items:
                assert item.bytes > 0
                assert 10 < len(item.why) < 120, item


def test_activations_are_never_called_exact() -> None:
    for found in every_need():
        assert not any(item.exact for item in found.gpu.items if item.kind in ("activations", "runtime"))


@pytest.mark.parametrize("plan", STRATEGIES, ids=lambda plan: plan.name)
def test_the_config_says_what_the_strategy_is(plan: object) -> None:
    from dsdoctor.fit.strategies import Strategy

    assert isinstance(plan, Strategy)
    config = ds_config(plan, ONE, nvme_path="/nvme")
    zero = config["zero_optimization"]
    assert isinstance(zero, dict)
    assert zero["stage"] == plan.stage
    assert (zero.get("offload_optimizer") or {"device": "gpu"})["device"] == plan.optimizer
    assert (zero.get("offload_param") or {"device": "gpu"})["device"] == plan.parameters
    assert ("nvme_path" in zero.get("offload_optimizer", {})) is (plan.optimizer == "nvme")


def test_one_gpu_moves_nothing_between_gpus() -> None:
    assert traffic(strategy("zero3"), P, P, ONE).between_gpus == 0


def test_stage_3_moves_half_as_much_again_as_ddp() -> None:
    ddp, zero3 = (traffic(strategy(name), P, P, EIGHT).between_gpus for name in ("ddp", "zero3"))
    assert zero3 == pytest.approx(1.5 * ddp, rel=0.001)


def test_an_optimizer_that_zero_does_not_know_is_allowed_by_word() -> None:
    assert ds_config(strategy("zero2"), Training(optimizer="adafactor"))["zero_allow_untested_optimizer"] is True
    assert ds_config(strategy("zero2-cpu"), Training(optimizer="adafactor"))["zero_force_ds_cpu_optimizer"] is False
    assert "zero_allow_untested_optimizer" not in ds_config(strategy("ddp"), Training(optimizer="adafactor"))


@pytest.mark.parametrize(("name", "count"), [("ddp", P), ("zero1", P), ("zero2", P / 8), ("zero3", 0)])
def test_gradients_of_the_micro_steps_before_stay(name: str, count: float) -> None:
    several = msgspec.structs.replace(EIGHT, accumulation=4)
    plan = strategy(name)
    more = need(SHAPE, several, plan).gpu.moments["loss"] - need(SHAPE, EIGHT, plan).gpu.moments["loss"]
    assert more == pytest.approx(2 * count, rel=0.001)


def test_dropout_keeps_masks() -> None:
    bert = {
        "model_type": "bert",
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 30522,
    }
    off = {**bert, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    for attention in ("sdpa", "eager"):
        training = Training(sequence=512, attention=attention)
        usual, none = (need(from_config(c), training, strategy("ddp")).gpu.moments["loss"] for c in (bert, off))
        scores = 12 * 512 * 3 if attention == "eager" else 0  # a byte of mask, and 16 bits that it leaves
        assert usual - none == pytest.approx(12 * 512 * (2 * 768 + scores), rel=0.01)
