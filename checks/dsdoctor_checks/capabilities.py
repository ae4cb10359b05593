"""What a DeepSpeed user may want to run here, and which abilities each of these needs.

Abilities are guarded by checks: "import" (torch and DeepSpeed can be imported), "gpu" (torch can use a CUDA GPU),
"cpp-build" and "cuda-build" (JIT-building ops), "aio" (async_io and a place for NVMe swap), "fp16", "bf16", "fp8",
"many-gpus", "many-nodes", "accelerate", "trainer", "host-memory", "config", "run".
"""

from collections.abc import Callable

from dsdoctor.api import CapabilitySpec, DeepSpeedLive, Gpus, Snapshot, Torch

Decide = Callable[[Snapshot], str | None]


def accelerator(snapshot: Snapshot) -> str | None:
    """The accelerator that DeepSpeed takes here: its own word, else what the facts suggest; None when nobody can say."""
    live = snapshot.deepspeed_live
    if isinstance(live, DeepSpeedLive) and live.accelerator:
        return live.accelerator
    torch, gpus = snapshot.torch, snapshot.gpus
    if not isinstance(torch, Torch) or not isinstance(gpus, Gpus):
        return snapshot.ds_report.accelerator if snapshot.ds_report else None
    return "cuda" if torch.cuda and gpus.devices else "cpu"


def _wants_cuda(snapshot: Snapshot) -> bool:
    """True when training here is meant to use a CUDA GPU: judged so even while the GPU is broken."""
    purpose = snapshot.purpose
    return accelerator(snapshot) == "cuda" or bool(purpose and purpose.wants_gpu)


def _training(*more: str) -> Callable[[Snapshot], tuple[str, ...]]:
    """Importing, and what the accelerator needs: a GPU, or the ops that the CPU accelerator always builds."""

    def requires(snapshot: Snapshot) -> tuple[str, ...]:
        device = ("gpu",) if _wants_cuda(snapshot) else ("cpp-build",)
        return tuple(dict.fromkeys(("import", *device, "host-memory", *more)))

    return requires


def _always(snapshot: Snapshot) -> str | None:
    return None


def _fused_adam(snapshot: Snapshot) -> tuple[str, ...]:
    return ("import", "gpu", "cuda-build") if _wants_cuda(snapshot) else ("import", "cpp-build")


def _capability(snapshot: Snapshot) -> float | None:
    """The lowest compute capability of the GPUs here."""
    found = [
        float(g.compute_capability) for g in (snapshot.gpus.devices if snapshot.gpus else ()) if g.compute_capability
    ]
    return min(found, default=None)


def _precision(name: str, least: float, *, on_cpu: str | None) -> Decide:
    """Hardware support by compute capability; ``on_cpu`` is the reason why a CPU does not have it, None if it does."""

    def applies(snapshot: Snapshot) -> str | None:
        if not _wants_cuda(snapshot):
            return on_cpu
        capability = _capability(snapshot)
        if capability is not None and capability < least:
            return f"{name} needs compute capability {least} or newer, the GPU here has {capability}"
        return None

    return applies


def _several_gpus(snapshot: Snapshot) -> str | None:
    count = len(snapshot.gpus.devices) if snapshot.gpus else 0
    if count > 1:
        return None
    return "there is one GPU" if count else "there is no GPU"


def _several_nodes(snapshot: Snapshot) -> str | None:
    hosts = snapshot.programs.hostfile.hosts if snapshot.programs and snapshot.programs.hostfile else {}
    purpose = snapshot.purpose
    if len(hosts) > 1 or (purpose and purpose.name == "multi-node"):
        return None
    return "no second node is named (hostfile, or --purpose multi-node)"


def _package(name: str) -> Decide:
    def applies(snapshot: Snapshot) -> str | None:
        if snapshot.packages is not None and snapshot.packages.version(name) is None:
            return f"{name} is not installed"
        return None

    return applies


def _ran_zero(*stages: int) -> Callable[[Snapshot], bool]:
    """A smoke run at one of these stages came to its end with a falling loss."""

    def ran(snapshot: Snapshot) -> bool:
        smoke = snapshot.smoke
        if smoke is None or smoke.outcome != "ok" or smoke.stage not in stages or len(smoke.losses) < 2:
            return False
        return smoke.losses[-1] < smoke.losses[0]

    return ran


def _ran_dtype(dtype: str) -> Callable[[Snapshot], bool]:
    zero = _ran_zero(0, 1, 2, 3)
    return lambda snapshot: zero(snapshot) and snapshot.smoke is not None and snapshot.smoke.dtype == dtype


def _never(snapshot: Snapshot) -> bool:
    return False


def _spec(
    name: str,
    title: str,
    requires: Callable[[Snapshot], tuple[str, ...]],
    applies: Decide = _always,
    ran: Callable[[Snapshot], bool] = _never,
) -> CapabilitySpec:
    return CapabilitySpec(name=name, title=title, requires=requires, applies=applies, ran=ran)


_FP16_ON_CPU = "fp16 on a CPU needs AMX or AVX512-FP16 in oneDNN; use bf16"

CAPABILITIES = (
    _spec("zero1", "ZeRO-1", _training()),
    _spec("zero2", "ZeRO-2", _training(), ran=_ran_zero(2)),
    _spec("zero3", "ZeRO-3", _training()),
    _spec("optimizer-offload-cpu", "optimizer offload to CPU", _training("cpp-build")),
    _spec("param-offload-cpu", "parameter offload to CPU", _training("cpp-build")),
    _spec("nvme-offload", "NVMe offload (ZeRO-Infinity)", _training("cpp-build", "aio")),
    _spec("fp16", "fp16", _training("fp16"), _precision("fp16", 7.0, on_cpu=_FP16_ON_CPU), _ran_dtype("fp16")),
    _spec("bf16", "bf16", _training("bf16"), _precision("bf16", 8.0, on_cpu=None), _ran_dtype("bf16")),
    _spec("fp8", "fp8", _training("fp8"), _precision("fp8", 8.9, on_cpu="fp8 needs a CUDA GPU")),
    _spec("fused-adam", "fused Adam", _fused_adam),
    _spec("cpu-adam", "CPU Adam", lambda snapshot: ("import", "cpp-build")),
    _spec("pipeline-3d", "pipeline and 3D parallelism", _training("many-gpus"), _several_gpus),
    _spec("moe", "mixture of experts", _training()),
    _spec("accelerate", "Hugging Face Accelerate", _training("accelerate"), _package("accelerate")),
    _spec("hf-trainer", "Hugging Face Trainer", _training("accelerate", "trainer"), _package("transformers")),
    _spec("several-gpus", "several GPUs", _training("many-gpus"), _several_gpus),
    _spec("several-nodes", "several nodes", _training("many-nodes"), _several_nodes),
)
