"""The model against the DeepSpeed config: what follows from its config.json. Of the family CFG (see config.py).

Whether it fits into memory is told by `dsdoctor fit`. Source of the rules: transformers 5.24.0 integrations/deepspeed.py and
accelerate 1.15.0 accelerator.py (run: tests/config_truth/test_frameworks.py); deepspeed 0.19.8 runtime/zero/leaf_module_config.py,
module_inject/tp_shard.py and runtime/sequence_parallel/ulysses_sp.py; read on 2026-11-30.
"""

from collections.abc import Iterator

from dsdoctor.api import (  # fmt: skip
    AccelerateConfig,
    DeepSpeed,
    DsConfig,
    Evidence,
    Finding,
    ModelConfig,
    Packages,
    Remedy,
    RunPlan,
    Severity,
    TrainingArgs,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.config_keys import Clash, on, parsed, release, shown, stage, told, whole

_ZERO = "zero_optimization"
_BUCKET, _PREFETCH, _THRESHOLD = (f"{_ZERO}.{name}" for name in ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold"))  # fmt: skip
_SIZED = _BUCKET, _PREFETCH, _THRESHOLD
_LEAVES = frozenset({"mixtral", "qwen2_moe", "qwen3_moe"})  # DEFAULT_LEAF_MODULE_CLASSES
_LEAVES_SINCE = (0, 18, 0, 0)
_ONE_MODULE_SINCE = (5, 0, 0, 0)  # no modeling file of transformers 5.24 has a ModuleList of experts


def sizes(hidden: int) -> dict[str, int]:
    """What Hugging Face makes of "auto"."""
    return {_BUCKET: hidden * hidden, _PREFETCH: int(0.9 * hidden * hidden), _THRESHOLD: 10 * hidden}


def _read(model: ModelConfig) -> ModelConfig:
    if model.problem:
        unknown(f"{model.path} could not be read (CFG062)")
    return model


@check(
    "CFG062",
    "The model's config.json can be read",
    causes=["config-syntax", "config-path-not-found"],
    severity=Severity.WARNING,
)
def model_is_readable(model: ModelConfig) -> Iterator[Finding]:
    """--model names a config.json as Hugging Face writes it, or the folder that holds one; nothing is downloaded."""
    if model.problem:
        yield Finding(
            message=f"{model.path}: {model.problem}",
            cause="config-path-not-found" if model.missing else "config-syntax",
            evidence=(Evidence(where=model.path, text=model.problem),),
            remedy=Remedy(order="Name the model's config.json, or the folder that holds it", safety="manual"),
        )


@check("CFG063", "Hugging Face can size the buckets by this model", causes=["config-incomplete", "auto-without-hf"], guards=["config"])  # fmt: skip
def buckets_are_sized(
    config: DsConfig, model: ModelConfig, accelerate: AccelerateConfig | None, arguments: TrainingArgs | None, plan: RunPlan | None
) -> Iterator[Finding]:  # fmt: skip
    """reduce_bucket_size "auto" becomes h x h, prefetch 0.9 x h x h, the persistence threshold 10 x h, of the hidden size h.

    A model without one stops the run. The Trainer looks into text_config too, Accelerate alone does not.
    """
    autos = tuple(key for key in _SIZED if parsed(config).get(key) == "auto")
    if not autos or (plan is not None and plan.framework in ("none", "lightning")):
        not_applicable("no bucket is auto, or nobody would fill it in")
    named = plan.framework if plan is not None and plan.framework else None
    alone = named == "accelerate" or (named is None and accelerate is not None and arguments is None)
    hidden = _read(model).hidden or (None if alone else model.text_hidden)
    if hidden:
        values = ", ".join(f"{key} = {sizes(hidden)[key]}" for key in autos)
        what = f"with the hidden size {hidden} of {model.path} auto becomes {values}"
        yield told(config, Clash(autos, what, "Nothing to do, if these values are meant", "auto-without-hf", Severity.INFO))  # fmt: skip
        return
    where = " (its text_config has one, where only the Trainer looks)" if model.text_hidden else ""
    what = f"{', '.join(autos)} is auto, and {model.path} has neither hidden_size nor hidden_sizes{where}"
    yield told(config, Clash(autos, what, "Give these keys a number", "config-incomplete"))


@check("CFG064", "A mixture of experts is fetched as a whole", causes=["zero3-moe"], severity=Severity.WARNING)
def experts_are_a_leaf(
    config: DsConfig, model: ModelConfig, accelerate: AccelerateConfig | None, packages: Packages | None, deepspeed: DeepSpeed | None
) -> Iterator[Finding]:  # fmt: skip
    """At stage 3 ranks that choose different experts wait for each other, unless the whole MoE block is one leaf module.

    DeepSpeed marks those of Mixtral and Qwen by itself since 0.18.0; transformers 5 keeps all experts of a layer in one module.
    """
    if not _read(model).experts or stage(parsed(config)) != 3:
        not_applicable("the model has no experts, or the ZeRO stage is not 3")
    names = "deepspeed_config.deepspeed_moe_layer_cls_names"
    if config.get(f"{_ZERO}.leaf_module") or (accelerate is not None and accelerate.get(names)):
        not_applicable("the config names leaf modules")
    here = release(deepspeed.version) if deepspeed else _LEAVES_SINCE
    if model.family in _LEAVES and here >= _LEAVES_SINCE:
        not_applicable("DeepSpeed marks the experts of this family by itself")
    found = packages.distributions.get("transformers") if packages else None
    if found and release(found.version) >= _ONE_MODULE_SINCE:
        not_applicable(f"transformers {found.version} keeps all experts of a layer in one module")
    what = f"the stage is 3, and {model.path} ({model.family}) has {model.experts} experts that no leaf module holds together"
    order = f"Name the class of the MoE block in {_ZERO}.leaf_module.classes, or call set_z3_leaf_modules"
    yield told(config, Clash((f"{_ZERO}.stage",), what, order, "zero3-moe", None if found else Severity.INFO))


@check(
    "CFG065", "The precision fits the weights of the model", causes=["loss-scale-minimum"], severity=Severity.WARNING
)
def precision_fits_the_weights(config: DsConfig, model: ModelConfig) -> Iterator[Finding]:
    """Weights that were trained in bf16 make values beyond the 65504 of fp16: the loss scale falls until training stops."""
    if _read(model).dtype != "bfloat16" or not on(parsed(config).get("fp16.enabled")):
        not_applicable("the weights are not bf16, or fp16 is not on")
    what = f"fp16.enabled is {shown(config.get('fp16.enabled'))}, and the weights of {model.path} are bfloat16"
    order = "Use bf16 instead of fp16 where the GPUs have it"
    yield told(config, Clash(("fp16.enabled",), what, order, "loss-scale-minimum"))


@check("CFG066", "The model's heads can be shared out", causes=["config-conflict"], guards=["config"])
def heads_divide(config: DsConfig, model: ModelConfig) -> Iterator[Finding]:
    """Ulysses sequence parallelism stops when heads do not divide evenly; AutoTP then gives some ranks fewer heads, or none."""
    heads, size = _read(model).heads, whole(parsed(config).get("sequence_parallel_size"))
    tensor = whole(config.get("tensor_parallel.autotp_size"))
    if not heads:
        not_applicable("the model says nothing of heads")
    few = model.kv_heads or heads
    if size and size > 0 and (heads % size or (few % size and size % few)):
        what = f"sequence_parallel_size is {size}, and {model.path} has {heads} heads, {few} of keys and values"
        order = f"Set it to one of {_divisors(heads)}"
        yield told(config, Clash(("sequence_parallel_size",), what, order))
    if tensor and tensor > 1 and few % tensor:
        less = "some ranks have none" if tensor > few else "ranks have unequal shares"
        what = f"tensor_parallel.autotp_size is {tensor}, and {model.path} has {few} heads of keys and values: {less}"
        order = f"Set it to one of {_divisors(few)}"
        yield told(config, Clash(("tensor_parallel.autotp_size",), what, order, severity=Severity.WARNING))


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, min(number, 128) + 1) if number % n == 0)
