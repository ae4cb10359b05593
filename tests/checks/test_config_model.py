"""What follows from the model's config.json."""

from pathlib import Path
from typing import Any

import pytest

from dsdoctor.facts import AccelerateConfig, DeepSpeed, Distribution, ModelConfig, Packages, RunPlan
from dsdoctor.model import Severity, Status
from dsdoctor.readers import model_words
from tests.checks.config_cases import NOW, OLD, config, found, judged, one

AUTO = {"stage": 3, "reduce_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}
THREE = config(zero_optimization={"stage": 3})


def model(**values: Any) -> ModelConfig:
    return model_words.told({"model_type": "llama", "hidden_size": 4096, **values}, "m/config.json")


def transformers(version: str) -> Packages:
    return Packages(distributions={"transformers": Distribution(name="transformers", version=version, location="/s")})


def test_what_auto_becomes_with_this_model() -> None:
    note = one("CFG063", config(zero_optimization=AUTO), model())
    assert note.severity is Severity.INFO
    assert "reduce_bucket_size = 16777216" in note.message
    assert "stage3_param_persistence_threshold = 40960" in note.message
    assert "prefetch" not in note.message
    assert (
        judged("CFG063", config(zero_optimization=AUTO), model(), RunPlan(framework="none")).status
        is Status.NOT_APPLICABLE
    )


@pytest.mark.parametrize(
    ("values", "hidden"),
    [({"n_embd": 768}, 768), ({"d_model": 512}, 512), ({"hidden_sizes": [64, 256]}, 256), ({"hidden_size": "many"}, None), ({"hidden_size": True}, None)],
)  # fmt: skip
def test_families_name_their_hidden_size_as_they_like(values: dict[str, Any], hidden: int | None) -> None:
    assert model_words.told(values, "c").hidden == hidden


def test_experts_without_a_leaf_at_stage_3() -> None:
    sparse = model(model_type="deepseek_v3", n_routed_experts=256)
    assert judged("CFG064", THREE, sparse, transformers("4.51.0")).severity is Severity.WARNING
    assert judged("CFG064", THREE, sparse).severity is Severity.INFO  # transformers 5 would need none
    assert not found("CFG064", THREE, sparse, transformers("5.24.0"))
    assert not found("CFG064", config(zero_optimization={"stage": 2}), sparse)
    assert not found("CFG064", THREE, model())
    named = config(zero_optimization={"stage": 3, "leaf_module": {"classes": ["DeepseekV3MoE"]}})
    assert not found("CFG064", named, sparse)
    by_yaml = AccelerateConfig(
        path="a.yaml", values={"deepspeed_config": {"deepspeed_moe_layer_cls_names": "DeepseekV3MoE"}}
    )
    assert not found("CFG064", THREE, sparse, by_yaml)


@pytest.mark.parametrize(("release", "told"), [(NOW, False), (OLD, True)])
def test_deepspeed_marks_the_experts_of_some_families(release: DeepSpeed, told: bool) -> None:
    mixtral = model(model_type="mixtral", num_local_experts=8)
    assert bool(found("CFG064", THREE, mixtral, release, transformers("4.40.0"))) is told


@pytest.mark.parametrize("name", ["dtype", "torch_dtype"])
def test_fp16_for_weights_in_bf16(name: str) -> None:
    assert one("CFG065", config(fp16={"enabled": True}), model(**{name: "bfloat16"})).cause == "loss-scale-minimum"
    assert not found("CFG065", config(bf16={"enabled": True}), model(**{name: "bfloat16"}))
    assert not found("CFG065", config(fp16={"enabled": True}), model(**{name: "float16"}))


def test_heads_and_kinds_of_parallelism() -> None:
    llama = model(num_attention_heads=32, num_key_value_heads=8)
    stopped = judged("CFG066", config(sequence_parallel_size=5), llama)
    assert stopped.severity is Severity.ERROR
    assert "32 heads, 8 of keys and values" in stopped.findings[0].message
    assert not found("CFG066", config(sequence_parallel_size=16), llama)  # two ranks share a head of keys
    assert "some ranks have none" in one("CFG066", config(tensor_parallel={"autotp_size": 16}), llama).message
    assert judged("CFG066", config(tensor_parallel={"autotp_size": 3}), llama).severity is Severity.WARNING
    assert not found("CFG066", config(tensor_parallel={"autotp_size": 4}), llama)


def test_a_config_json_that_is_none(tmp_path: Path) -> None:
    gone = one("CFG062", model_words.read(str(tmp_path)))
    assert "it holds no config.json" in gone.message
    assert gone.cause == "config-path-not-found"
    (tmp_path / "config.json").write_text('{"hidden_size": 4096,')
    broken = model_words.read(str(tmp_path))
    assert "config.json:1:22: this is not JSON" in one("CFG062", broken).message
    assert judged("CFG063", config(zero_optimization=AUTO), broken).status is Status.UNKNOWN
    assert not found("CFG062", model())
