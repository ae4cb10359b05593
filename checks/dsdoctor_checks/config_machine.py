"""The config against this machine: accelerator, ops, memory. Of the family CFG (see config.py).

Source of the rules: deepspeed 0.19.8, runtime/swap_tensor/aio_config.py and runtime/engine.py, read and run on 2026-11-30;
compute capabilities: the CUDA C++ programming guide (fp8: 8.9), accelerate 1.15.0 state.py.
"""

from collections.abc import Iterator

from dsdoctor.api import (  # fmt: skip
    AccelerateConfig,
    ConfigWord,
    ConfigWords,
    DeepSpeedLive,
    DsConfig,
    Evidence,
    Finding,
    Gpus,
    OpBuilds,
    Remedy,
    Severity,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.config_keys import (
    GONE,
    Clash,
    children,
    on,
    parsed,
    plain,
    release,
    row,
    shown,
    stage,
    told,
    truthy,
    whole,
)
from dsdoctor_checks.config_types import range_problem, type_problem
from dsdoctor_checks.op_specs import config_wants

_BF16 = ("bf16", "bfloat16", "torch.bfloat16")
_ZERO = "zero_optimization"
_DEFAULT_BUCKET = 500_000_000  # elements
_SHARE = 0.2  # of a GPU's memory: buckets above it crowd out what they serve


@check("CFG039", "GPUDirect Storage is asked for on CUDA", causes=["config-conflict"], guards=["config"])
def gds_has_cuda(config: DsConfig, live: DeepSpeedLive | None) -> Iterator[Finding]:
    """aio.use_gds stops the parsing on any other accelerator: "GDS currently only supported for CUDA accelerator"."""
    if not truthy(parsed(config).get("aio.use_gds")):
        not_applicable("GPUDirect Storage is not asked for")
    if live is None or live.accelerator is None:
        unknown("DeepSpeed's accelerator is not known")
    if live.accelerator != "cuda":
        what = f"aio.use_gds is on, and DeepSpeed's accelerator here is {live.accelerator}"
        yield told(config, Clash(("aio.use_gds",), what, "Set aio.use_gds to false"))


@check("CFG040", "torch_autocast has a type that the GPUs compute in", causes=["bf16-unsupported-gpu"], severity=Severity.WARNING)  # fmt: skip
def autocast_fits_the_gpus(config: DsConfig, gpus: Gpus | None) -> Iterator[Finding]:
    """torch_autocast in bf16 needs compute capability 8.0, as bf16 does; below it torch emulates it slowly.

    Without a dtype torch takes its own default, which is fp16 on CUDA.
    """
    name = "torch_autocast"
    if not truthy(parsed(config).get(f"{name}.enabled")) or str(config.get(f"{name}.dtype")) not in _BF16:
        not_applicable("torch_autocast is not used with bf16")
    if gpus is None:
        unknown("the GPUs were not examined")
    for gpu in gpus.devices:
        if release(gpu.compute_capability) and release(gpu.compute_capability) < (8, 0):
            what = f"{name} uses bf16, and GPU {gpu.index} ({gpu.name}) has compute capability {gpu.compute_capability}"
            order = f"Set {name}.dtype to fp16"
            yield told(config, Clash((f"{name}.dtype", f"{name}.enabled"), what, order, "bf16-unsupported-gpu"))


@check("CFG041", "The GPUs have fp8 where it is asked for", causes=["fp8-unsupported-gpu"], severity=Severity.WARNING)
def fp8_fits_the_gpus(accelerate: AccelerateConfig | None, gpus: Gpus | None) -> Iterator[Finding]:
    """fp8 comes through Accelerate's mixed_precision and needs compute capability 8.9 (Ada, Hopper)."""
    if accelerate is None or str(accelerate.get("mixed_precision")).lower() != "fp8":
        not_applicable("fp8 is not asked for")
    if gpus is None:
        unknown("the GPUs were not examined")
    for gpu in gpus.devices:
        if release(gpu.compute_capability) and release(gpu.compute_capability) < (8, 9):
            where = accelerate.where("mixed_precision")
            yield Finding(
                message=f"{where}: mixed_precision is fp8, and GPU {gpu.index} ({gpu.name}) has compute capability {gpu.compute_capability}",
                cause="fp8-unsupported-gpu",
                subject="mixed_precision",
                evidence=(Evidence(where=where, text="mixed_precision: fp8"),),
                remedy=Remedy(order="Set mixed_precision to bf16", safety="manual"),
            )


@check(
    "CFG042",
    "The ops that the config asks for were built",
    causes=["config-op-not-built"],
    severity=Severity.WARNING,
)
def wanted_ops_build(config: DsConfig, builds: OpBuilds | None) -> Iterator[Finding]:
    """Each optimizer and each kind of offload loads an op of DeepSpeed; a build that failed here fails in the run, too."""
    wanted = config_wants(parsed(config))
    if not wanted:
        not_applicable("the config asks for no op")
    if builds is None:
        not_applicable("no op was built here (dsdoctor ops --build)")
    for name, why in wanted.items():
        build = builds.get(name)
        if build is not None and build.outcome not in ("ok", "not-reached"):
            yield Finding(
                message=f"{why} needs the op {name}, whose build here {build.outcome.replace('-', ' ')}",
                cause="config-op-not-built",
                subject=name,
                evidence=(Evidence(where=why, text=build.first_error or build.error or build.outcome),),
                remedy=Remedy(order=f"Mend the build of {name}", commands=(), safety="manual", verify=f"dsdoctor ops --build {name}"),
            )  # fmt: skip


@check("CFG043", "The gradient bucket leaves room on the GPU", causes=["vram-feature-cost"], severity=Severity.WARNING)
def bucket_leaves_room(config: DsConfig, gpus: Gpus | None) -> Iterator[Finding]:
    """reduce_bucket_size counts elements: two bytes each in half precision, at stages 1 and 2 twice with overlap_comm.

    The default of 5e8 takes 1 GB on every GPU, however small, and 2 GB in fp32. Without contiguous_gradients there is no such buffer.
    """
    level, name = stage(parsed(config)), f"{_ZERO}.reduce_bucket_size"
    if level not in (1, 2, 3) or not on(config.get(f"{_ZERO}.contiguous_gradients", True)):
        not_applicable("ZeRO is off, or its gradients have no buffer")
    if config.get(name) == "auto":
        not_applicable(f"{name} is auto: Hugging Face sizes it by the model")
    totals = [gpu.total_bytes for gpu in gpus.devices if gpu.total_bytes] if gpus else []
    if not totals:
        unknown("the memory of the GPUs is not known")
    half = any(on(config.get(f"{key}.enabled")) for key in ("fp16", "bf16", "bfloat16"))
    copies = 2 if level < 3 and on(config.get(f"{_ZERO}.overlap_comm")) else 1
    elements = whole(config.get(name, _DEFAULT_BUCKET)) or 0
    needed = elements * (2 if half else 4) * copies
    if needed > _SHARE * min(totals):
        what = (
            f"{name} is {shown(elements)} elements: {needed / 2**30:.1f} GiB of the GPU's {min(totals) / 2**30:.0f} GiB"
        )
        order = f"Set {name} to {int(_SHARE * elements * min(totals) / needed / 4 // 10**6 * 10**6) or 10**6}"
        yield told(config, Clash((name, f"{_ZERO}.overlap_comm"), what, order, "vram-feature-cost"))


def _cause(kind: str) -> str:
    """pydantic's type of a mistake as a cause."""
    if kind == "extra_forbidden":
        return "config-unknown-zero-key"
    if kind == "deprecated":
        return "config-deprecated-key"
    return "config-wrong-type" if kind.endswith(("_type", "_parsing", "_from_float")) else "config-value-range"


def _said_by_the_table(config: DsConfig, word: ConfigWord) -> bool:
    """True when the checks of single keys have said it already."""
    house, _, name = word.key.rpartition(".")
    entry, value = row(word.key) or {}, config.get(word.key)
    old = [key for key in config.places if key == word.key or key.startswith(f"{word.key}.")]
    if word.kind == "deprecated" or word.key in GONE:
        return any(key in GONE or (row(key) or {}).get("old") for key in old)
    if word.kind == "extra_forbidden":
        return name not in children(house)
    return bool(entry and (type_problem(word.key, value, entry) or range_problem(word.key, value, entry)))


_BATCHES = "batch related parameters", "train_micro_batch_size_per_gpu needs to be provided"  # CFG010 solves these


@check(
    "CFG061",
    "The DeepSpeed here takes the config",
    causes=["config-unknown-zero-key", "config-wrong-type", "config-value-range", "config-deprecated-key", "config-conflict"],
    guards=["config"],
)  # fmt: skip
def deepspeed_here_takes_it(config: DsConfig, words: ConfigWords) -> Iterator[Finding]:
    """The config class of the patient's own DeepSpeed is run on each section and on the whole, so a release is judged by itself.

    Told is what the table of keys does not know. Without a number of ranks it is asked about one at which the batch sizes agree.
    """
    who = f"DeepSpeed {words.version or ''} here"
    for word in (word for word in words.words if not _said_by_the_table(parsed(config), word)):
        key, old = word.key, word.kind == "deprecated"
        what = f"{who} {'warns of' if old else 'refuses'} {plain(key)} ({plain(word.kind)}): {plain(word.said)}"
        order = f"Change {plain(key)} as it says"
        yield told(config, Clash((key,), what, order, _cause(word.kind), Severity.WARNING if old else None))
    if words.whole and not any(text in words.whole for text in _BATCHES):
        what = f"{who} takes each section and refuses them together: {plain(words.whole)}"
        yield told(config, Clash(tuple(config.values), what, "Change one of the settings that it names", "config-conflict"))  # fmt: skip
