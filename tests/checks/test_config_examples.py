"""Every check of the family CFG by one bad and one good example: none can be written without."""

from typing import Any

import pytest

from dsdoctor.facts import (
    AccelerateConfig,
    ConfigWord,
    ConfigWords,
    DeepSpeedLive,
    Fact,
    Gpu,
    Gpus,
    Import,
    ModelConfig,
    OpBuild,
    OpBuilds,
    Place,
    RunPlan,
    Storage,
    TrainingArgs,
)
from dsdoctor.model import Status
from dsdoctor.readers import ds_config
from tests.checks.config_cases import CHECKS, H200S, NOW, OLD, config, judged

Facts = tuple[Fact, ...]
CPU, NVME = {"device": "cpu"}, {"device": "nvme", "nvme_path": "/mnt/nvme"}
ADAM: dict[str, Any] = {"type": "AdamW", "params": {"lr": 1e-4}}
CUDA, ON_CPU = (DeepSpeedLive(imported=Import(outcome="ok"), accelerator=name) for name in ("cuda", "cpu"))
T4 = Gpus(nvml="ok", devices=(Gpu(index=0, name="Tesla T4", compute_capability="7.5", total_bytes=4 * 2**30),))
EIGHT, ODD = (RunPlan(gpus_per_node=n, named_by=f"--gpus {n}") for n in (8, 9))
MODEL = ModelConfig(
    path="m/config.json", family="deepseek_v3", hidden=64, heads=32, kv_heads=8, experts=8, dtype="bfloat16"
)


def zero(stage: int = 3, **rest: Any) -> dict[str, Any]:
    return {"zero_optimization": {"stage": stage, **rest}}


def text(words: str) -> Fact:
    return ds_config.parse(words, "ds.json")


def yaml(**rows: Any) -> AccelerateConfig:
    beside: dict[str, Any] = {
        key: rows.pop(key) for key in ("mixed_precision", "num_processes", "num_machines") if key in rows
    }
    return AccelerateConfig(
        path="acc.yaml", values={"distributed_type": "DEEPSPEED", **beside, "deepspeed_config": rows}
    )


def arguments(**values: Any) -> TrainingArgs:
    return TrainingArgs(path="args.json", values=values)


def places(*, second: bool) -> Storage:
    return Storage(places=tuple(Place(role="nvme", named_by="--nvme", path=path, exists=there, is_directory=there, writable=there) for path, there in (("/mnt/nvme", True), ("/mnt/two", second))))  # fmt: skip


def words(*found: ConfigWord) -> ConfigWords:
    return ConfigWords(path="ds.json", version="0.30.0", words=found)


TWO_PATHS = config(**zero(offload_param=NVME, offload_optimizer={"device": "nvme", "nvme_path": "/mnt/two"}))
LTD = {
    "enabled": True,
    "total_layer_num": 2,
    "random_ltd_layer_num": 1,
    "random_ltd_layer_id": [1],
    "random_ltd_schedule": {},
}
GRAPHS = {"enabled": True, "enable_cuda_graph": True}
EXPERTS: dict[str, Any] = {"expert_parallel": {"enabled": True, "autoep_size": 2}}

# code: (the bad example, the good one)
EXAMPLES: dict[str, tuple[Facts, Facts]] = {
    "CFG001": ((text("{"),), (config(),)),
    "CFG002": ((text('{"fp16": {}, "fp16": {}}'),), (config(),)),
    "CFG003": ((config(zero_optimisation={}),), (config(),)),
    "CFG004": ((config(aio={"queue_dept": 1}),), (config(aio={"queue_depth": 1}),)),
    "CFG005": ((config(train_batch_size="8"),), (config(train_batch_size=8),)),
    "CFG006": ((config(**zero(4)),), (config(**zero(3)),)),
    "CFG007": ((config(**zero(2, offload_param=CPU)),), (config(**zero(3, offload_param=CPU)),)),
    "CFG008": ((config(**zero(offload_param={"device": "nvme", "nvme_path": "auto"})),), (config(**zero(offload_param=NVME)),)),
    "CFG009": ((config(fp16={"enabled": True}, bf16={"enabled": True}),), (config(bf16={"enabled": True}),)),
    "CFG010": ((config(train_batch_size=9, gradient_accumulation_steps=1), EIGHT), (config(train_batch_size=8, gradient_accumulation_steps=1), EIGHT)),
    "CFG011": ((config(steps_per_print="auto"),), (config(pipeline={"stages": "auto"}),)),
    "CFG012": ((config(bf16={"enabled": True}), T4), (config(fp16={"enabled": True}), T4)),
    "CFG013": ((config(elasticity={}), NOW), (config(elasticity={}), OLD)),
    "CFG014": ((config(optimizer={"type": "AdmaW"}),), (config(optimizer=ADAM),)),
    "CFG015": ((config(disable_python_gc=True), OLD), (config(disable_python_gc=True), NOW)),
    "CFG016": ((text("{train_batch_size: 8}"),), (config(),)),
    "CFG017": ((config(aio={"queue_depth": 1}),), (config(),)),
    "CFG018": ((ODD, H200S), (EIGHT, H200S)),
    "CFG019": ((config(bf16={"bf16_master_weights_and_grads": True}, **zero(0)),), (config(bf16={"bf16_master_weights_and_grads": True}, **zero(2, offload_optimizer=CPU)),)),
    "CFG020": ((config(**zero(3, compute_grad_norm=False)),), (config(gradient_clipping=0, **zero(2, compute_grad_norm=False)),)),
    "CFG021": ((config(gradient_allreduce_op="sum", **zero(3)),), (config(gradient_allreduce_op="sum", **zero(2)),)),
    "CFG022": ((config(**zero(2, cpu_offload=True, offload_optimizer=CPU)),), (config(**zero(2, cpu_offload=True)),)),
    "CFG023": ((config(**zero(2, offload_optimizer={"device": "cpu", "ratio": 0.5})),), (config(**zero(3, offload_optimizer={"device": "cpu", "ratio": 0.5})),)),
    "CFG024": ((config(optimizer={"type": "SGD"}, **zero(1)),), (config(optimizer={"type": "SGD"}, **zero(0)),)),
    "CFG025": ((config(optimizer={"type": "Adam", "params": {"max_grad_norm": 1}}),), (config(optimizer=ADAM, gradient_clipping=1),)),
    "CFG026": ((config(**zero(2, offload_optimizer=CPU)),), (config(optimizer=ADAM, **zero(2, offload_optimizer=CPU)),)),
    "CFG027": ((config(data_types={"param_dtype": "fp16"}, bf16={"enabled": True}),), (config(data_types={"param_dtype": "bf16"}, bf16={"enabled": True}),)),
    "CFG028": ((config(scheduler={"type": "OneCycle", "params": {"cycle_min_lr": 0}}),), (config(scheduler={"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1}}),)),
    "CFG029": ((config(data_efficiency={"data_routing": {"random_ltd": {"enabled": True}}}),), (config(data_efficiency={"data_routing": {"random_ltd": LTD}}),)),
    "CFG030": ((config(activation_checkpointing={"contiguous_memory_optimization": True}),), (config(activation_checkpointing={"contiguous_memory_optimization": True, "partition_activations": True, "number_checkpoints": 2}),)),
    "CFG031": ((config(pipeline={"stages": 2}, **zero(2)),), (config(pipeline={"stages": 2}, **zero(1)),)),
    "CFG032": ((config(managed_gradient_accumulation=False, **zero(1, overlap_comm=True)),), (config(managed_gradient_accumulation=False, **zero(2, overlap_comm=True)),)),
    "CFG033": ((config(**EXPERTS, **zero(3, zero_quantized_gradients=True)),), (config(**EXPERTS, **zero(2)),)),
    "CFG034": ((config(**zero(2, zero_quantized_weights=True)),), (config(**zero(3, zero_quantized_weights=True)),)),
    "CFG035": ((config(hybrid_engine=GRAPHS, **zero(3)),), (config(hybrid_engine=GRAPHS, **zero(2)),)),
    "CFG036": ((config(compile={"deepcompile": True, "passes": ["z3", "autotp"]}),), (config(compile={"deepcompile": True, "passes": ["autotp"]}),)),
    "CFG037": ((config(tensor_parallel={"autotp_size": 4, "tp": {"tp_size": 2}}),), (config(tensor_parallel={"autotp_size": 4, "tp": {"tp_size": 4}}),)),
    "CFG038": ((config(autotuning={"enabled": True}), RunPlan(framework="hf")), (config(autotuning={"enabled": True}), RunPlan(framework="none"))),
    "CFG039": ((config(aio={"use_gds": True}), ON_CPU), (config(aio={"use_gds": True}), CUDA)),
    "CFG040": ((config(torch_autocast={"enabled": True, "dtype": "bf16"}), T4), (config(torch_autocast={"enabled": True, "dtype": "bf16"}), H200S)),
    "CFG041": ((yaml(mixed_precision="fp8"), T4), (yaml(mixed_precision="fp8"), H200S)),
    "CFG042": ((config(**zero(2, offload_optimizer=CPU)), OpBuilds(cache="private", builds=(OpBuild(name="cpu_adam", outcome="failed"),))), (config(**zero(2, offload_optimizer=CPU)), OpBuilds(cache="private", builds=(OpBuild(name="cpu_adam", outcome="ok"),)))),
    "CFG043": ((config(**zero(2)), T4), (config(**zero(2)), H200S)),
    "CFG044": ((config(tensor_parallel={"autotp_size": 4}), ODD), (config(tensor_parallel={"autotp_size": 4}), EIGHT)),
    "CFG045": ((config(dump_state=False),), (config(dump_state=True, fp16={"enabled": False}, flops_profiler={"enabled": False, "top_modules": 2}),)),
    "CFG046": ((yaml(deepspeed_config_file="ds.json", zero_stage=2),), (yaml(deepspeed_config_file="ds.json"),)),
    "CFG047": ((yaml(offload_param_device="nvme"),), (yaml(offload_param_device="cpu"),)),
    "CFG048": ((yaml(mixed_precision="bf16"), config(fp16={"enabled": True})), (yaml(mixed_precision="bf16"), config(bf16={"enabled": True}))),
    "CFG049": ((yaml(num_processes=3, num_machines=2),), (yaml(num_processes=8, num_machines=1), H200S)),
    "CFG050": ((config(data_types={"keep_in_fp32_modules": "auto"}, **zero()), RunPlan(framework="hf")), (config(gradient_clipping="auto", **zero()), RunPlan(framework="hf"))),
    "CFG051": ((config(gradient_clipping=0.5), arguments(max_grad_norm=1.0)), (config(gradient_clipping="auto"), arguments(per_device_train_batch_size=1))),
    "CFG052": ((arguments(learning_rate="1e-4"),), (arguments(learning_rate=1e-4),)),
    "CFG053": ((config(train_batch_size=9), arguments(per_device_train_batch_size=1), EIGHT), (config(train_batch_size=8), arguments(per_device_train_batch_size=1), EIGHT)),
    "CFG055": ((config(gradient_accumulation_steps=2), RunPlan(framework="lightning")), (config(), RunPlan(framework="lightning"))),
    "CFG056": ((config(aio={"block_size": 1000}, **zero(offload_param=NVME)),), (config(aio={"block_size": 2**20}, **zero(offload_param=NVME)),)),
    "CFG057": ((config(**zero(offload_optimizer={**NVME, "buffer_count": 2})),), (config(**zero(offload_optimizer={**NVME, "buffer_count": 5})),)),
    "CFG058": ((TWO_PATHS, places(second=False)), (TWO_PATHS, places(second=True))),
    "CFG059": ((AccelerateConfig(path="acc.yaml", problem="there is no such file"),), (yaml(),)),
    "CFG060": ((config(**zero(1, legacy_stage1=True)),), (config(**zero(1, legacy_stage1=False)),)),
    "CFG061": ((config(**zero(3)), words(ConfigWord(key="zero_optimization.stage", kind="less_than", said="no"))), (config(**zero(3)), words())),
    "CFG062": ((ModelConfig(path="m", problem="there is no such file"),), (MODEL,)),
    "CFG066": ((config(sequence_parallel_size=5), MODEL), (config(sequence_parallel_size=8), MODEL)),
}  # fmt: skip
# notes on what will be done, which have no bad side: told, or not; and one whose good side is another precision
NOTES: dict[str, tuple[Facts, Facts]] = {
    "CFG054": ((config(gradient_clipping="auto"), arguments()), (config(gradient_clipping=1.0), arguments())),
    "CFG063": ((config(**zero(3, reduce_bucket_size="auto")), ModelConfig(path="m")), (config(**zero(3)), MODEL)),
    "CFG064": ((config(**zero(3)), MODEL), (config(**zero(2)), MODEL)),
    "CFG065": ((config(fp16={"enabled": True}), MODEL), (config(bf16={"enabled": True}), MODEL)),
}


def test_every_check_has_its_examples() -> None:
    assert set(EXAMPLES) | set(NOTES) == set(CHECKS)


@pytest.mark.parametrize("code", sorted(set(EXAMPLES) - set(NOTES)))
def test_the_bad_one_is_found_and_the_good_one_passes(code: str) -> None:
    bad, good = EXAMPLES[code]
    sick = judged(code, *bad)
    assert sick.status is Status.FAILED
    assert {f.cause for f in sick.findings} <= set(CHECKS[code].causes)
    assert all(f.remedy is not None and f.evidence for f in sick.findings)
    assert judged(code, *good).status is Status.PASSED


@pytest.mark.parametrize("code", NOTES)
def test_a_note_is_told_where_it_applies_only(code: str) -> None:
    told, silent = NOTES[code]
    assert judged(code, *told).status is Status.FAILED
    assert judged(code, *silent).status is Status.NOT_APPLICABLE
