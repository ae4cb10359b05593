"""Features that the config switches on, and what each of them needs or excludes. Of the family CFG (see config.py).

Source of the rules: deepspeed 0.19.8, runtime/data_pipeline/config.py, runtime/activation_checkpointing/checkpointing.py,
runtime/pipe/engine.py, runtime/engine.py, runtime/hybrid_engine_graph.py, compile/init_z3.py, runtime/torch_autocast.py,
module_inject/auto_ep_config.py and auto_ep_folding.py, read on 2026-11-30; those of data_efficiency and checkpoint were run too.
"""

from collections.abc import Iterator

from dsdoctor.api import DsConfig, Finding, RunPlan, Severity, check, not_applicable
from dsdoctor_checks.config_keys import Clash, block, device, on, parsed, shown, stage, told, truthy, whole

_ZERO = "zero_optimization"
_STAGE = f"{_ZERO}.stage"
_SAMPLING = "data_efficiency.data_sampling"
_LTD = "data_efficiency.data_routing.random_ltd"
_LTD_NEEDS = "total_layer_num", "random_ltd_layer_num", "random_ltd_layer_id", "random_ltd_schedule"
_NEEDS = (  # a switch, and the keys that are read without a default once it is on
    (f"{_SAMPLING}.curriculum_learning", ("curriculum_metrics",)),
    (f"{_SAMPLING}.dynamic_batching", ("max_tokens",)),
    (_LTD, _LTD_NEEDS),
)


@check(
    "CFG029",
    "Data efficiency has the keys that it needs",
    causes=["config-incomplete", "config-conflict"],
    guards=["config"],
)
def data_efficiency_is_complete(config: DsConfig) -> Iterator[Finding]:
    """Curriculum learning needs curriculum_metrics, dynamic batching max_tokens, random-LTD its layers and schedule: AssertionError or KeyError.

    DeepSpeed asks for them whenever the inner section is on, even when data_efficiency.enabled is false.
    """
    for name, keys in _NEEDS:
        if not truthy(block(parsed(config), name).get("enabled")):
            continue
        for key in keys:
            if key not in block(config, name):
                what = f"{name} is on, and {name}.{key} is not given"
                order = f"Give {name}.{key}, or set {name}.enabled to false"
                yield told(config, Clash((f"{name}.enabled", f"{name}.{key}"), what, order, "config-incomplete"))
    layered = f"{_LTD}.layer_token_lr_schedule.enabled"
    if truthy(config.get(f"{_LTD}.enabled")) and truthy(config.get(layered)):
        what = f"{layered} is on, and DeepSpeed has not written it yet (NotImplementedError)"
        yield told(config, Clash((layered,), what, f"Set {layered} to false", "config-conflict"))


@check(
    "CFG030",
    "Activation checkpointing has what it needs",
    causes=["config-incomplete"],
    severity=Severity.WARNING,
)
def activation_checkpointing_is_complete(config: DsConfig) -> Iterator[Finding]:
    """Contiguous checkpointing needs partition_activations and number_checkpoints: an AssertionError in checkpointing.configure."""
    name = "activation_checkpointing"
    contiguous = f"{name}.contiguous_memory_optimization"
    if not truthy(parsed(config).get(contiguous)):
        not_applicable("activations are not checkpointed into contiguous memory")
    for key in ("partition_activations", "number_checkpoints"):
        if not config.get(f"{name}.{key}"):
            what = f"{contiguous} is on, and {name}.{key} is {shown(config.get(f'{name}.{key}'))}"
            order = f"Give {name}.{key}, or remove {contiguous}"
            yield told(config, Clash((contiguous, f"{name}.{key}"), what, order, "config-incomplete"))


@check(
    "CFG031",
    "Pipeline parallelism is used with ZeRO 0 or 1",
    causes=["zero-pipeline-incompatible", "config-conflict"],
    severity=Severity.WARNING,
)
def pipeline_fits(config: DsConfig) -> Iterator[Finding]:
    """A PipelineModule stops at ZeRO 2 and 3: "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism"."""
    stages = block(parsed(config), "pipeline").get("stages", "auto")
    if "pipeline" not in config.values or stages in (0, 1):
        not_applicable("the config has no pipeline section")
    if stage(config) in (2, 3):
        what = f"there is a pipeline section and the ZeRO stage is {stage(config)}"
        order = f"Set {_STAGE} to 1 or 0, or remove the pipeline section when the model is no PipelineModule"
        yield told(config, Clash((_STAGE, "pipeline"), what, order, "zero-pipeline-incompatible"))
    managed = "managed_gradient_accumulation"
    if config.get(managed) is False:
        what = f"{managed} false does not go with pipeline parallelism"
        yield told(config, Clash((managed, "pipeline"), what, f"Remove {managed}"))


def _accumulation(config: DsConfig) -> Iterator[Clash]:
    managed, overlap = "managed_gradient_accumulation", f"{_ZERO}.overlap_comm"
    level = stage(config)
    overlaps = on(config.get(overlap)) or (level == 3 and config.get(overlap) is None)
    if level is not None and level < 2 and overlaps:
        what = f"{managed} is false and {overlap} is on at stage {level}: that works with partitioned gradients only"
        yield Clash((managed, overlap), what, f"Set {overlap} to false, or {_STAGE} to 2")
    if on(config.get("compile.deepcompile")):
        what = f"{managed} false does not go with compile.deepcompile"
        yield Clash((managed, "compile.deepcompile"), what, f"Remove {managed}")


@check("CFG032", "Gradient accumulation by hand fits the rest", causes=["config-conflict"], guards=["config"])
def accumulation_by_hand_fits(config: DsConfig) -> Iterator[Finding]:
    """managed_gradient_accumulation false excludes DeepCompile and, below stage 2, overlap_comm: an AssertionError at the start."""
    if parsed(config).get("managed_gradient_accumulation") is not False:
        not_applicable("DeepSpeed counts the accumulation steps itself")
    for clash in _accumulation(config):
        yield told(config, clash)


def _experts(config: DsConfig) -> Iterator[Clash]:
    level, name = stage(config), "expert_parallel"
    tensor = whole(config.get("tensor_parallel.autotp_size")) or 1
    if (whole(config.get(f"{name}.expert_tensor_parallel_size")) or 1) != 1:
        key = f"{name}.expert_tensor_parallel_size"
        yield Clash((key,), f"{key} is {shown(config.get(key))}; only 1 is supported", f"Set {key} to 1")
    for key, bad in ((f"{_ZERO}.zero_quantized_gradients", on(config.get(f"{_ZERO}.zero_quantized_gradients"))),
                     (f"{_ZERO}.zero_hpz_partition_size", (whole(config.get(f"{_ZERO}.zero_hpz_partition_size")) or 1) > 1),
                     ("sequence_parallel_size", (whole(config.get("sequence_parallel_size")) or 1) > 1)):  # fmt: skip
        if level == 3 and bad:
            yield Clash((key, f"{name}.enabled"), f"{name} at ZeRO stage 3 does not go with {key}", f"Remove {key}")
    backend, tokens = f"{name}.comm_backend", f"{name}.comm_max_tokens_per_rank"
    if config.get(backend) == "deepep" and not whole(config.get(tokens)):
        what = f"{backend} is deepep, and {tokens} is not given"
        yield Clash((backend, tokens), what, f"Set {tokens} to micro batch x longest sequence", "config-incomplete")
    yield from _fused_experts(config, name)
    offloads = [f"{_ZERO}.{part}" for part in ("offload_optimizer", "offload_param")]
    for key in (key for key in offloads if tensor > 1 and device(config, key) in ("cpu", "nvme")):
        what = f"{name} with tensor parallelism does not go with {key}"
        yield Clash((f"{key}.device", "tensor_parallel.autotp_size"), what, f"Remove {key}")
    if tensor > 1 and (whole(config.get(f"{name}.autoep_size")) or 1) == 1:
        keys = ("tensor_parallel.autotp_size", f"{name}.autoep_size")
        yield Clash(keys, f"{name} with tensor parallelism needs autoep_size above 1", f"Set {keys[1]}")


def _fused_experts(config: DsConfig, name: str) -> Iterator[Clash]:
    """What the fused paths of the experts want."""
    backend, alone = f"{name}.comm_backend", (whole(config.get(f"{name}.autoep_size")) or 1) == 1
    gate, rows, combine = f"{name}.gate_up_impl", f"{name}.row_weighting_impl", f"{name}.combine_impl"
    if config.get(gate) == "fused" and config.get(f"{name}.use_grouped_mm") is False:
        what = f"{gate} is fused and use_grouped_mm false, which is the loop that it replaces"
        yield Clash((gate, f"{name}.use_grouped_mm"), what, f"Remove {name}.use_grouped_mm, or {gate}")
    if config.get(rows) == "fused" and (config.get(backend) != "deepep" or alone):
        what = f"{rows} is fused, which needs comm_backend deepep and autoep_size above 1"
        yield Clash((rows, backend), what, f"Remove {rows}")
    tensor = (whole(config.get("tensor_parallel.autotp_size")) or 1) > 1
    if config.get(combine) == "fused_weighted_sum" and (tensor or (config.get(backend) == "deepep" and not alone)):
        other = "tensor_parallel.autotp_size" if tensor else backend
        yield Clash((combine, other), f"{combine} fused_weighted_sum does not go with {other}", f"Remove {combine}")


@check("CFG033", "Expert parallelism fits the rest", causes=["config-conflict", "config-incomplete"], guards=["config"])
def experts_fit(config: DsConfig) -> Iterator[Finding]:
    """AutoEP excludes quantised gradients, hpZ and sequence parallelism at ZeRO 3, and wants sizes that fold: ValueErrors at the start."""
    if not on(parsed(config).get("expert_parallel.enabled")):
        not_applicable("expert parallelism is off")
    for clash in _experts(config):
        yield told(config, clash)


@check("CFG034", "Quantised communication is used where it exists", causes=["config-conflict", "config-no-effect"], guards=["config"])  # fmt: skip
def quantisation_fits(config: DsConfig) -> Iterator[Finding]:
    """ZeRO++ quantises at stage 3 only; quantised weights stop torch_autocast ("Cannot enable both")."""
    level = stage(parsed(config))
    weights = f"{_ZERO}.zero_quantized_weights"
    if on(config.get(weights)) and truthy(config.get("torch_autocast.enabled")):
        what = f"{weights} and torch_autocast.enabled are both on"
        yield told(config, Clash((weights, "torch_autocast.enabled"), what, f"Remove {weights}, or use bf16 instead"))
    for key in (weights, f"{_ZERO}.zero_quantized_gradients", f"{_ZERO}.zero_quantized_nontrainable_weights"):
        if on(config.get(key)) and level is not None and level < 3:
            what = f"{key} has no effect at ZeRO stage {level}"
            order = f"Set {_STAGE} to 3, or remove {key}"
            yield told(config, Clash((key, _STAGE), what, order, "config-no-effect", Severity.WARNING))
    initial = "weight_quantization.quantized_initialization"
    if config.get(initial) and level is not None and level < 3:
        what = f"{initial} works inside zero.Init of stage 3 only, and the stage is {level}"
        order = f"Set {_STAGE} to 3, or remove weight_quantization"
        yield told(config, Clash((initial, _STAGE), what, order, "config-no-effect", Severity.WARNING))


@check("CFG035", "The hybrid engine can use CUDA graphs where they are asked for", causes=["config-no-effect"], severity=Severity.WARNING)  # fmt: skip
def hybrid_engine_fits(config: DsConfig) -> Iterator[Finding]:
    """CUDA graphs of the hybrid engine exclude ZeRO 3, release_inference_cache and tensor parallel inference; it goes on without them."""
    name = "hybrid_engine"
    graphs = f"{name}.enable_cuda_graph"
    if not (on(parsed(config).get(f"{name}.enabled")) and on(config.get(graphs))):
        not_applicable("the hybrid engine uses no CUDA graphs")
    tensor = (whole(config.get(f"{name}.inference_tp_size")) or 1) > 1
    for key, bad in ((_STAGE, stage(config) == 3), (f"{name}.release_inference_cache", on(config.get(f"{name}.release_inference_cache"))),
                     (f"{name}.inference_tp_size", tensor)):  # fmt: skip
        if bad:
            what = f"{graphs} has no effect with {key} {shown(config.get(key))}"
            yield told(config, Clash((graphs, key), what, f"Remove {graphs}, or change {key}", "config-no-effect"))


def _compiling(config: DsConfig) -> Iterator[Clash]:
    name = "compile"
    states, parameters, activation = (f"{name}.offload_{part}" for part in ("opt_states", "parameters", "activation"))
    for first, second in ((states, parameters), (activation, parameters), (activation, states)):
        if stage(config) == 3 and on(config.get(first)) and on(config.get(second)):
            yield Clash(
                (first, second), f"{first} and {second} exclude each other", f"Keep one of {first} and {second}"
            )
    if (
        stage(config) == 3
        and on(config.get(states))
        and device(config, f"{_ZERO}.offload_optimizer") in ("cpu", "nvme")
    ):
        other = f"{_ZERO}.offload_optimizer.device"
        what = f"{states} cannot be combined with ZeRO's own optimizer offload"
        yield Clash((states, other), what, f"Remove {states}, or {_ZERO}.offload_optimizer")
    passes = config.get(f"{name}.passes")
    if isinstance(passes, list) and "autotp" in passes and {"autosp", "z1", "z3"} & {str(p) for p in passes}:
        what = f"{name}.passes has autotp beside other passes, which cannot be combined yet"
        yield Clash((f"{name}.passes",), what, 'Run "autotp" alone')


@check("CFG036", "DeepCompile's settings go together", causes=["config-conflict"], guards=["config"])
def compiling_fits(config: DsConfig) -> Iterator[Finding]:
    """DeepCompile offloads one kind of thing at stage 3, not beside ZeRO's own offload, and its AutoTP pass runs alone."""
    if not on(parsed(config).get("compile.deepcompile")):
        not_applicable("DeepCompile is off")
    for clash in _compiling(config):
        yield told(config, clash)


@check("CFG037", "Tensor parallel sizes agree", causes=["config-conflict"], guards=["config"])
def tensor_parallel_agrees(config: DsConfig) -> Iterator[Finding]:
    """tensor_parallel.tp.tp_size and autotp_size are the same thing: two numbers are a ValueError."""
    one, two = "tensor_parallel.autotp_size", "tensor_parallel.tp.tp_size"
    first, second = whole(parsed(config).get(one)), whole(config.get(two))
    if first and second and second not in (1, first):
        what = f"{one} is {first} and {two} is {second}"
        yield told(config, Clash((two, one), what, f"Remove {two}"))


@check(
    "CFG038", "The autotuner can pass its batch sizes on", causes=["autotuning-hf-mismatch"], severity=Severity.WARNING
)
def autotuner_reaches_the_script(config: DsConfig, plan: RunPlan | None) -> Iterator[Finding]:
    """The autotuner changes the config of each trial; a Hugging Face script compares it with its arguments and stops."""
    if not truthy(parsed(config).get("autotuning.enabled")):
        not_applicable("autotuning is off")
    if plan is not None and plan.framework == "hf" and not config.get("autotuning.arg_mappings"):
        key = "autotuning.arg_mappings"
        what = f"autotuning is on and {key} does not say which arguments the batch sizes belong to"
        order = 'Give arg_mappings: {"train_micro_batch_size_per_gpu": "--per_device_train_batch_size"}'
        yield told(config, Clash((key, "autotuning.enabled"), what, order, "autotuning-hf-mismatch"))
