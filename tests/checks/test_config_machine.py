"""The config against the machine: accelerator, precision, ops, memory; and what of it could be left out."""

from typing import Any

from dsdoctor.facts import (
    AccelerateConfig,
    ConfigWord,
    ConfigWords,
    DeepSpeed,
    DeepSpeedLive,
    Gpu,
    Gpus,
    Import,
    OpBuild,
    OpBuilds,
)
from dsdoctor.model import Proof, Severity, Status
from tests.checks.config_cases import H200S, OLD, config, found, judged, one

CPU = DeepSpeedLive(imported=Import(outcome="ok"), accelerator="cpu")
CUDA = DeepSpeedLive(imported=Import(outcome="ok"), accelerator="cuda")
T4 = Gpus(nvml="ok", devices=(Gpu(index=0, name="Tesla T4", compute_capability="7.5", total_bytes=16 * 2**30),))
A100 = Gpus(nvml="ok", devices=(Gpu(index=0, name="A100", compute_capability="8.0", total_bytes=40 * 2**30),))


def test_gpudirect_storage_needs_cuda() -> None:
    wish = config(aio={"use_gds": True})
    assert "accelerator here is cpu" in one("CFG039", wish, CPU).message
    assert not found("CFG039", wish, CUDA)
    assert judged("CFG039", wish).status is Status.UNKNOWN


def test_autocast_in_bf16_on_an_old_gpu() -> None:
    wish = config(torch_autocast={"enabled": True, "dtype": "bfloat16"})
    assert "Tesla T4" in one("CFG040", wish, T4).message
    assert not found("CFG040", wish, H200S)
    assert not found("CFG040", config(torch_autocast={"enabled": True, "dtype": "fp16"}), T4)


def test_fp8_needs_ada_or_hopper() -> None:
    wish = AccelerateConfig(path="acc.yaml", values={"mixed_precision": "fp8"}, places={"mixed_precision": (4, 1)})
    assert one("CFG041", wish, A100).message.startswith("acc.yaml:4:1: mixed_precision is fp8")
    assert not found("CFG041", wish, H200S)
    assert not found("CFG041", AccelerateConfig(path="acc.yaml", values={"mixed_precision": "bf16"}), A100)


def test_an_op_that_did_not_build_is_named_with_the_setting_that_asks_for_it() -> None:
    offload = config(
        zero_optimization={"stage": 2, "offload_optimizer": {"device": "cpu"}}, optimizer={"type": "AdamW"}
    )
    broken = OpBuilds(cache="private", builds=(OpBuild(name="cpu_adam", outcome="failed", first_error="no such file"),))
    finding = one("CFG042", offload, broken)
    assert finding.subject == "cpu_adam"
    assert "offload_optimizer.device" in finding.message
    sound = OpBuilds(cache="private", builds=(OpBuild(name="cpu_adam", outcome="ok"),))
    assert not found("CFG042", offload, sound)


def test_autocast_without_a_type_is_fp16() -> None:
    t4 = Gpus(nvml="ok", devices=(Gpu(index=0, name="Tesla T4", compute_capability="7.5"),))
    assert found("CFG040", config(torch_autocast={"enabled": True, "dtype": "bfloat16"}), t4)
    assert not found("CFG040", config(torch_autocast={"enabled": True}), t4)


def test_buckets_that_fill_a_small_gpu() -> None:
    tiny = Gpus(nvml="ok", devices=(Gpu(index=0, name="GTX 1650", compute_capability="7.5", total_bytes=4 * 2**30),))
    zero = config(zero_optimization={"stage": 2}, fp16={"enabled": True})
    assert "0.9 GiB of the GPU's 4 GiB" in one("CFG043", zero, tiny).message
    assert not found("CFG043", zero, H200S)
    twice = {"stage": 2, "overlap_comm": True}
    assert "1.9 GiB" in one("CFG043", config(zero_optimization=twice, fp16={"enabled": True}), tiny).message
    once = {"stage": 3, "overlap_comm": True}  # stage 3 has one buffer
    assert "0.9 GiB" in one("CFG043", config(zero_optimization=once, bf16={"enabled": True}), tiny).message
    scattered = config(zero_optimization={"stage": 2, "contiguous_gradients": False})
    assert judged("CFG043", scattered, tiny).status is Status.NOT_APPLICABLE
    small = config(zero_optimization={"stage": 3, "reduce_bucket_size": 10**7}, fp16={"enabled": True})
    assert not found("CFG043", small, tiny)


def test_settings_that_nothing_reads() -> None:
    idle = config(
        zero_optimization={
            "stage": 2,
            "sub_group_size": 10**9,
            "offload_optimizer": {"device": "cpu", "pipeline_read": True, "pin_memory": True},
        },
        tensorboard={"enabled": False, "output_path": "logs"},
        pipeline={"stages": 4},
    )
    notes = {f.subject: f.message for f in found("CFG017", idle)}
    assert set(notes) == {
        "zero_optimization.offload_optimizer.pipeline_read",
        "zero_optimization.sub_group_size",
        "tensorboard.output_path",
        "pipeline.stages",
    }
    assert "the ZeRO stage is 2" in notes["zero_optimization.sub_group_size"]
    assert judged("CFG017", idle).severity is Severity.INFO


def test_settings_in_use_are_not_called_idle() -> None:
    busy = config(
        zero_optimization={"stage": 3, "stage3_max_live_parameters": 10**8, "offload_param": {"device": "nvme", "nvme_path": "/n", "buffer_count": 6}},
        aio={"queue_depth": 32},
        wandb={"enabled": True, "project": "x"},
        fp16={"enabled": "auto", "loss_scale_window": 100},
    )  # fmt: skip
    assert not found("CFG017", busy)


def test_settings_that_say_the_default() -> None:
    wordy = config(gradient_clipping=1.0, zero_optimization={"stage": 2, "reduce_scatter": True, "overlap_comm": True})
    message = one("CFG045", wordy).message
    assert "reduce_scatter" in message
    assert "overlap_comm" not in message
    assert "gradient_clipping" not in message  # 0.0 was the default before 0.19.3


def heard(*words: tuple[str, str], known: tuple[str, ...] = (), **more: Any) -> ConfigWords:
    made = tuple(ConfigWord(key=key, kind=kind, said="It says so") for key, kind in words)
    return ConfigWords(path="ds.json", version="0.30.0", known=known, words=made, **more)


FUTURE = DeepSpeed(version="0.30.0", path="/opt/venv/lib/python3.11/site-packages/deepspeed")
BRAND_NEW = config(brand_new=1, zero_optimization={"stage": 2, "newer": 1}, aio={"fresh": 2})


def test_a_newer_deepspeed_is_judged_by_itself() -> None:
    knows = heard(known=("brand_new", "zero_optimization", "aio", "aio.fresh"))
    assert not found("CFG003", BRAND_NEW, FUTURE, knows)
    assert not found("CFG004", BRAND_NEW, FUTURE, knows)
    assert not found("CFG061", BRAND_NEW, FUTURE, knows)
    assert judged("CFG003", BRAND_NEW, FUTURE, knows).proof is Proof.PROBED
    knows_not = heard(("zero_optimization.newer", "extra_forbidden"))
    assert one("CFG003", BRAND_NEW, FUTURE, knows_not).subject == "brand_new"
    assert {f.subject for f in found("CFG004", BRAND_NEW, FUTURE, knows_not)} == {
        "zero_optimization.newer",
        "aio.fresh",
    }
    assert not found("CFG061", BRAND_NEW, FUTURE, knows_not)  # said once


def test_what_the_table_allows_and_the_deepspeed_here_refuses() -> None:
    sizes = config(zero_optimization={"stage": 2, "reduce_bucket_size": 10})
    finding = one("CFG061", sizes, heard(("zero_optimization.reduce_bucket_size", "greater_than")))
    assert finding.message.startswith("ds.json:5:3: DeepSpeed 0.30.0 here refuses zero_optimization.reduce_bucket_size")
    assert finding.cause == "config-value-range"
    assert (
        one("CFG061", sizes, heard(("zero_optimization.stage", "extra_forbidden"))).cause == "config-unknown-zero-key"
    )
    assert judged("CFG061", sizes, heard(("zero_optimization", "deprecated"))).severity is Severity.WARNING
    assert "refuses them together" in one("CFG061", sizes, heard(whole="ValueError: no")).message
    assert not found("CFG061", sizes, heard(whole="AssertionError: Check batch related parameters. ..."))


def test_a_value_left_out_as_auto_clears_no_key() -> None:
    auto = config(zero_optimization={"stage": 2, "overlapcomm": "auto"})
    assert found("CFG004", auto, heard(left_out=("zero_optimization.overlapcomm",)))


def test_a_key_newer_than_the_table_says_that_is_there_already() -> None:
    nightly = config(disable_python_gc=True)
    assert found("CFG015", nightly, OLD)
    assert not found("CFG015", nightly, OLD, heard(known=("disable_python_gc",)))
