"""Settings that exclude each other, or need each other: each rule has a config that breaks it and one that does not."""

from typing import Any

import pytest

from dsdoctor.facts import RunPlan
from dsdoctor.model import Severity, Status
from tests.checks.config_cases import CHECKS, NOW, OLD, config, found, judged, one

CPU = {"device": "cpu"}
CURRICULUM = {"data_sampling": {"curriculum_learning": {"enabled": True}}}
LTD = {
    "enabled": True,
    "total_layer_num": 2,
    "random_ltd_layer_num": 1,
    "random_ltd_layer_id": [1],
    "random_ltd_schedule": {},
}
ADAM = {"type": "AdamW", "params": {"lr": 1e-4}}

BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("CFG019", {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}}, "the stage is 0"),
    ("CFG019", {"bf16": {"enabled": True, "bf16_optimizer_states": True}, "zero_optimization": {"stage": 2}}, "without bf16.bf16_master"),
    ("CFG019", {"fp16": {"enabled": True, "fp16_master_weights_and_grads": True}, "zero_optimization": {"stage": 2}}, "CPU offload"),
    ("CFG020", {"zero_optimization": {"stage": 3, "compute_grad_norm": False}}, "the stage is 3"),
    ("CFG020", {"zero_optimization": {"stage": 2, "compute_grad_norm": False}}, "1.0 by default"),
    ("CFG020", {"gradient_clipping": 0, "zero_optimization": {"stage": 2, "compute_grad_norm": False, "offload_optimizer": CPU}}, "offload_optimizer"),
    ("CFG021", {"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}}, "zero_optimization.stage 3"),
    ("CFG021", {"prescale_gradients": True, "zero_optimization": {"stage": 2}}, "reduce_scatter is on"),
    ("CFG021", {"gradient_predivide_factor": 2.0, "zero_optimization": {"stage": 3}}, "gradient_predivide_factor is 2,"),
    ("CFG021", {"zero_optimization": {"stage": 1, "allgather_bucket_size": 500000001}}, "has to be even"),
    ("CFG022", {"zero_optimization": {"stage": 2, "cpu_offload": True, "offload_optimizer": CPU}}, "old name of zero_optimization.offload_optimizer"),
    ("CFG023", {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}, "at stage 3 only"),
    ("CFG024", {"optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 1}}, "has not been tested"),
    ("CFG024", {"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": 3}}, "reduce_scatter"),
    ("CFG024", {"optimizer": {"type": "Lamb"}, "fp16": {"enabled": True, "loss_scale": 128}}, "dynamic loss scale"),
    ("CFG025", {"optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1.0}}}, "gradient_clipping"),
    ("CFG026", {"zero_optimization": {"stage": 2, "offload_optimizer": CPU}}, "no optimizer section"),
    ("CFG027", {"data_types": {"param_dtype": "bf16"}, "fp16": {"enabled": True}}, "precision of the run is fp16"),
    ("CFG027", {"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"enabled": True}}, "unsupported mix"),
    ("CFG028", {"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10}}}, "total_num_steps is not given"),
    ("CFG029", {"data_efficiency": CURRICULUM}, "curriculum_metrics is not given"),
    ("CFG029", {"data_efficiency": {"data_routing": {"random_ltd": {**LTD, "layer_token_lr_schedule": {"enabled": True}}}}}, "has not written it yet"),
    ("CFG030", {"activation_checkpointing": {"contiguous_memory_optimization": True, "partition_activations": True}}, "number_checkpoints is null"),
    ("CFG031", {"pipeline": {"stages": 2}, "zero_optimization": {"stage": 2}}, "the ZeRO stage is 2"),
    ("CFG032", {"managed_gradient_accumulation": False, "zero_optimization": {"stage": 1, "overlap_comm": True}}, "partitioned gradients only"),
    ("CFG033", {"expert_parallel": {"enabled": True, "autoep_size": 2}, "zero_optimization": {"stage": 3, "zero_quantized_gradients": True}}, "does not go with"),
    ("CFG033", {"expert_parallel": {"enabled": True, "comm_backend": "deepep"}}, "comm_max_tokens_per_rank is not given"),
    ("CFG034", {"zero_optimization": {"stage": 3, "zero_quantized_weights": True}, "torch_autocast": {"enabled": True}}, "both on"),
    ("CFG034", {"weight_quantization": {"quantized_initialization": {"num_bits": 8}}, "zero_optimization": {"stage": 2}}, "stage 3 only"),
    ("CFG035", {"hybrid_engine": {"enabled": True, "enable_cuda_graph": True}, "zero_optimization": {"stage": 3}}, "has no effect with"),
    ("CFG020", {"zero_optimization": {"stage": 1, "compute_grad_norm": False}, "gradient_clipping": 0, "bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}, "grad_accum_dtype fp32"),
    ("CFG033", {"expert_parallel": {"enabled": True, "gate_up_impl": "fused", "use_grouped_mm": False}}, "the loop that it replaces"),
    ("CFG033", {"expert_parallel": {"enabled": True, "row_weighting_impl": "fused", "autoep_size": 2}}, "needs comm_backend deepep"),
    ("CFG033", {"expert_parallel": {"enabled": True, "combine_impl": "fused_weighted_sum", "autoep_size": 2}, "tensor_parallel": {"autotp_size": 2}}, "does not go with tensor_parallel"),
    ("CFG033", {"expert_parallel": {"enabled": True, "autoep_size": 2}, "tensor_parallel": {"autotp_size": 2}, "zero_optimization": {"stage": 2, "offload_optimizer": CPU}}, "does not go with zero_optimization.offload_optimizer"),
    ("CFG060", {"zero_optimization": {"stage": 1, "legacy_stage1": True}}, "at which the engine stops"),
    ("CFG060", {"zero_optimization": {"stage": 3, "elastic_checkpoint": True}}, "no longer supports"),
    ("CFG036", {"compile": {"deepcompile": True, "offload_opt_states": True}, "zero_optimization": {"stage": 3, "offload_optimizer": CPU}}, "cannot be combined"),
    ("CFG037", {"tensor_parallel": {"autotp_size": 4, "tp": {"tp_size": 2}}}, "tp_size is 2"),
]  # fmt: skip

SOUND: list[dict[str, Any]] = [
    {},
    {"bf16": {"enabled": True}, "zero_optimization": {"stage": 2, "offload_optimizer": CPU}, "optimizer": ADAM},
    {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}, "zero_optimization": {"stage": 2}},
    {"fp16": {"enabled": True, "loss_scale": 0}, "optimizer": {"type": "Lamb"}},
    {"zero_optimization": {"stage": 1, "compute_grad_norm": False}, "gradient_clipping": 0},
    {"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 1}},
    {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}, "optimizer": ADAM},
    {"optimizer": {"type": "SGD"}, "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": 1}},
    {"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": 3, "reduce_scatter": False}},
    {"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"enabled": True}, "zero_optimization": {"stage": 1}},
    {"scheduler": {"type": "WarmupLR", "params": {}}, "optimizer": ADAM},
    {"data_efficiency": {"data_sampling": {"curriculum_learning": {"enabled": True, "curriculum_metrics": {}}}}},
    {"activation_checkpointing": {"contiguous_memory_optimization": True, "partition_activations": True, "number_checkpoints": 4}},
    {"pipeline": {"activation_checkpoint_interval": 1}, "zero_optimization": {"stage": 1}},
    {"expert_parallel": {"enabled": True, "autoep_size": 2}, "zero_optimization": {"stage": 2}},
    {"compile": {"deepcompile": True, "offload_parameters": True}, "zero_optimization": {"stage": 3}},
    {"tensor_parallel": {"autotp_size": 4}},
    {"compile": {"deepcompile": True, "offload_opt_states": True}, "zero_optimization": {"stage": 2, "offload_optimizer": CPU}, "optimizer": ADAM},
    {"zero_optimization": {"stage": 2, "elastic_checkpoint": True, "legacy_stage1": False}},
]  # fmt: skip
CODES = sorted({code for code, _, _ in BROKEN})


@pytest.mark.parametrize(("code", "values", "says"), BROKEN)
def test_what_does_not_go_together_is_found_at_its_place(code: str, values: dict[str, Any], says: str) -> None:
    finding = one(code, config(**values), NOW)
    assert says in finding.message
    assert finding.message.startswith("ds.json:")
    assert finding.cause in CHECKS[code].causes


@pytest.mark.parametrize("values", SOUND)
def test_what_goes_together_is_quiet(values: dict[str, Any]) -> None:
    for code in CODES:
        assert judged(code, config(**values), NOW).status in (Status.PASSED, Status.NOT_APPLICABLE), code


def test_older_releases_do_not_clip_by_default() -> None:
    old = config(zero_optimization={"stage": 2, "compute_grad_norm": False})
    assert found("CFG020", old, NOW)
    assert not found("CFG020", old, OLD)


def test_old_names_alone_are_no_conflict() -> None:
    assert not found("CFG022", config(zero_optimization={"stage": 2, "cpu_offload": True}))


def test_an_idle_wish_is_a_warning_beside_an_error() -> None:
    slow = config(zero_optimization={"stage": 2, "offload_optimizer": {"device": "cpu", "super_offload": True}})
    assert one("CFG023", slow).severity is Severity.WARNING


def test_frameworks_bring_the_optimizer_of_an_offload() -> None:
    offload = config(zero_optimization={"stage": 2, "offload_optimizer": CPU})
    assert not found("CFG026", offload, RunPlan(framework="accelerate"))
    assert found("CFG026", offload, RunPlan(framework="none"))


def test_the_autotuner_needs_the_names_of_the_arguments() -> None:
    tuned = config(autotuning={"enabled": True})
    assert one("CFG038", tuned, RunPlan(framework="hf")).cause == "autotuning-hf-mismatch"
    assert not found("CFG038", tuned, RunPlan(framework="none"))
    assert not found(
        "CFG038", config(autotuning={"enabled": True, "arg_mappings": {"x": "--y"}}), RunPlan(framework="hf")
    )
