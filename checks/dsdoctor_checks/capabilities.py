"""What a DeepSpeed user may want to run here, and which abilities each of these needs.

Abilities are guarded by checks: "import" (torch and DeepSpeed can be imported), "gpu" (torch can use a CUDA GPU),
"cpp-build" and "cuda-build" (JIT-building ops), "libaio", "libcuda", "curand", "cufile", "openmp", "cuda-headers", "nccl-headers" (what single ops
need beside these), "op" (only the op that a finding names), "aio" (a place for NVMe swap), "fp16", "bf16", "fp8",
"many-gpus", "many-nodes", "accelerate", "trainer", "host-memory", "config". "op:NAME" is the verdict of an op, and "run:RECIPE"
what the checks of smoke runs (they guard "run") leave of that recipe: a run that fell or computed wrongly blocks what it tried.
"""

from collections.abc import Callable

from dsdoctor.api import CapabilitySpec, Proof, SmokeRun, Snapshot
from dsdoctor_checks.op_specs import accelerator
from dsdoctor_checks.run_results import good

Decide = Callable[[Snapshot], str | None]


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


def _precision_needs(ability: str) -> Callable[[Snapshot], tuple[str, ...]]:
    """On a GPU the precision is an ability of its own; the CPU accelerator takes bf16 as it is."""

    def requires(snapshot: Snapshot) -> tuple[str, ...]:
        return _training(*((ability,) if _wants_cuda(snapshot) else ()))(snapshot)

    return requires


def _fused_adam(snapshot: Snapshot) -> tuple[str, ...]:
    return ("import", *(("gpu",) if _wants_cuda(snapshot) else ()), "op:fused_adam")


def _capability(snapshot: Snapshot) -> float | None:
    """The lowest compute capability of the GPUs here."""
    found = [
        float(g.compute_capability) for g in (snapshot.gpus.devices if snapshot.gpus else ()) if g.compute_capability
    ]
    return min(found, default=None)


def _fp16(snapshot: Snapshot) -> str | None:
    """DeepSpeed 0.19.8 wants 7.0 or newer, and 6.x with DS_ALLOW_DEPRECATED_FP16 (accelerator/cuda_accelerator.py)."""
    allowed = snapshot.environment is not None and snapshot.environment.on("DS_ALLOW_DEPRECATED_FP16")
    return _precision("fp16", 6.0 if allowed else 7.0, on_cpu=_FP16_ON_CPU)(snapshot)


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


def _pipeline(snapshot: Snapshot) -> str | None:
    """Meant for several GPUs; where a run with several CPU ranks did it, there is nothing to say against it."""
    return None if _runs(snapshot, *_PIPELINES) else _several_gpus(snapshot)


def _several_nodes(snapshot: Snapshot) -> str | None:
    hosts = snapshot.programs.hostfile.hosts if snapshot.programs and snapshot.programs.hostfile else {}
    purpose = snapshot.purpose
    if len(hosts) > 1 or (purpose and purpose.name == "multi-node"):
        return None
    return "no second node is named (hostfile, or --purpose multi-node)"


def _nvme(snapshot: Snapshot) -> str | None:
    """DeepSpeed's async_io is written for Linux's io_submit."""
    return None if snapshot.host is None or snapshot.host.system == "linux" else "async_io exists on Linux only"


def _package(name: str) -> Decide:
    def applies(snapshot: Snapshot) -> str | None:
        if snapshot.packages is not None and snapshot.packages.lacks(name):
            return f"{name} is not installed"
        return None

    return applies


def _runs(snapshot: Snapshot, *recipes: str) -> tuple[SmokeRun, ...]:
    """Smoke runs that came to their end with right numbers: of these recipes, or all."""
    runs = snapshot.smoke.runs if snapshot.smoke else ()
    return tuple(run for run in runs if (not recipes or run.recipe in recipes) and good(run))


def _proving(snapshot: Snapshot, *recipes: str) -> tuple[str, ...]:
    """The abilities of a capability's own recipes, and of any run that fell while it imported: that is everyone's fault."""
    runs = snapshot.smoke.runs if snapshot.smoke else ()
    importing = [
        r.recipe for r in runs if r.outcome != "ok" and r.culprit and (r.culprit.last_phase or "").startswith("import ")
    ]
    return tuple(f"run:{name}" for name in dict.fromkeys((*recipes, *importing)))


def _zero2(snapshot: Snapshot) -> tuple[str, ...]:
    """The checkpoint recipe trains ZeRO-2, too: where it fell and no other run shows that training works, that is in doubt."""
    return _training(*(() if _runs(snapshot, "zero2") else ("run:checkpoint",)))(snapshot)


def _device_tried(snapshot: Snapshot) -> bool:
    """DeepSpeed was imported, and on a GPU a kernel ran. The CPU accelerator builds an op first: an import proves too little."""
    live, torch = snapshot.deepspeed_live, snapshot.torch_live
    imported = live is not None and live.imported.outcome == "ok"
    return imported and torch is not None and torch.kernel is not None and torch.kernel.outcome == "ok"


def _trained(*recipes: str) -> Callable[[Snapshot], Proof]:
    """RAN by a smoke run of one of these recipes. Else nothing was run for it; its ops lend it PROBED when they were tried."""

    def proof(snapshot: Snapshot) -> Proof:
        return Proof.RAN if _runs(snapshot, *recipes) else Proof.DECLARED

    return proof


def _shown(*, stage: int | None = None, dtype: str | None = None) -> Callable[[Snapshot], Proof]:
    """RAN by any smoke run of this stage (without offload) or dtype; PROBED when the device was tried."""

    def proof(snapshot: Snapshot) -> Proof:
        runs = _runs(snapshot)
        if any(run.stage == stage and not run.offload if stage is not None else run.dtype == dtype for run in runs):
            return Proof.RAN
        return Proof.PROBED if _device_tried(snapshot) else Proof.DECLARED

    return proof


def _communicated(snapshot: Snapshot) -> Proof:
    """RAN by any smoke run over several GPUs."""
    over = any(run.world_size > 1 and run.accelerator == "cuda" for run in _runs(snapshot))
    return Proof.RAN if over else Proof.DECLARED


def _declared(snapshot: Snapshot) -> Proof:
    """No recipe runs it."""
    return Proof.DECLARED


def _built(op: str) -> Callable[[Snapshot], Proof]:
    """RAN when this op was really built and loaded: then nothing more is asked of the capability."""

    def proof(snapshot: Snapshot) -> Proof:
        build = snapshot.op_builds.get(op) if snapshot.op_builds else None
        return Proof.RAN if build is not None and build.outcome == "ok" else Proof.DECLARED

    return proof


def _spec(
    name: str,
    title: str,
    requires: Callable[[Snapshot], tuple[str, ...]],
    applies: Decide = _always,
    proof: Callable[[Snapshot], Proof] = _declared,
    runs: tuple[str, ...] = (),
) -> CapabilitySpec:
    """``runs`` are the recipes that try it: one that fell blocks it."""

    def needed(snapshot: Snapshot) -> tuple[str, ...]:
        return (*requires(snapshot), *_proving(snapshot, *runs))

    return CapabilitySpec(name=name, title=title, requires=needed, applies=applies, proof=proof)


def _recipe(
    name: str,
    title: str,
    requires: Callable[[Snapshot], tuple[str, ...]],
    *recipes: str,
    applies: Decide = _always,
) -> CapabilitySpec:
    """A capability that these recipes try and prove."""
    return _spec(name, title, requires, applies, _trained(*recipes), recipes)


_FP16_ON_CPU = "fp16 on a CPU needs AMX or AVX512-FP16 in oneDNN; use bf16"
_BF16 = _precision("bf16", 8.0, on_cpu=None)
_FP8 = _precision("fp8", 8.9, on_cpu="fp8 needs a CUDA GPU")

_PIPELINES = ("pipeline", "3d")

CAPABILITIES = (
    _spec("zero1", "ZeRO-1", _training(), proof=_shown(stage=1), runs=("zero1",)),
    _spec("zero2", "ZeRO-2", _zero2, proof=_shown(stage=2), runs=("zero2",)),
    _spec("zero3", "ZeRO-3", _training(), proof=_shown(stage=3), runs=("zero3",)),
    _recipe("optimizer-offload-cpu", "optimizer offload to CPU", _training("op:cpu_adam"), "zero2-offload"),
    _recipe("param-offload-cpu", "parameter offload to CPU", _training("op:cpu_adam"), "zero3-offload"),
    _recipe(
        "nvme-offload",
        "NVMe offload (ZeRO-Infinity)",
        _training("op:cpu_adam", "op:async_io", "op:pin_memory", "aio"),
        "zero3-nvme",
        applies=_nvme,
    ),
    _spec("fp16", "fp16", _precision_needs("fp16"), _fp16, _shown(dtype="fp16")),
    _spec("bf16", "bf16", _precision_needs("bf16"), _BF16, _shown(dtype="bf16")),
    _spec("fp8", "fp8 (hardware)", _precision_needs("bf16"), _FP8),
    _spec("fused-adam", "fused Adam", _fused_adam, proof=_built("fused_adam")),
    _spec("cpu-adam", "CPU Adam", lambda snapshot: ("import", "op:cpu_adam"), proof=_built("cpu_adam")),
    _recipe("pipeline-3d", "pipeline and 3D parallelism", _training("many-gpus"), *_PIPELINES, applies=_pipeline),
    _recipe("moe", "mixture of experts", _training(), "moe"),
    _recipe(
        "accelerate", "Hugging Face Accelerate", _training("accelerate"), "accelerate", applies=_package("accelerate")
    ),
    _recipe(
        "hf-trainer",
        "Hugging Face Trainer",
        _training("accelerate", "trainer"),
        "trainer",
        applies=_package("transformers"),
    ),
    _spec("several-gpus", "several GPUs", _training("many-gpus"), _several_gpus, _communicated, ("comm",)),
    _spec("several-nodes", "several nodes", _training("many-nodes"), _several_nodes),
)
