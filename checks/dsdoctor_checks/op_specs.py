"""Which ops this machine's DeepSpeed has, what a build of each needs, and what here asks for it."""

from typing import Any

from dsdoctor.api import DsConfig, OpBuilder, OpSpec, Snapshot
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before

_TABLE = "ops"
_OPTIMIZERS = {"adam": "adam", "adamw": "adam", "lion": "lion", "adagrad": "adagrad", "lamb": "lamb"}
_OFFLOAD = "zero_optimization.offload_optimizer.device"
_SWITCHES = {  # a key of the config that, when on, loads an op
    "zero_optimization.zero_quantized_weights": "quantizer",
    "zero_optimization.zero_quantized_gradients": "quantizer",
    "aio.use_gds": "gds",
    "compile.deepcompile": "dc",
    "data_efficiency.data_routing.random_ltd.enabled": "random_ltd",
    "hybrid_engine.enabled": "transformer_inference",
}


def specs(snapshot: Snapshot) -> tuple[OpSpec, ...]:
    """The ops of this machine: as its builders say, else those that ds_report lists (it may be cut off) or the table has."""
    kind = accelerator(snapshot)
    version = snapshot.deepspeed.version if snapshot.deepspeed else None
    asked = {b.name: b for b in snapshot.op_builders.builders} if snapshot.op_builders else {}
    names = set(asked) or {*_reported(snapshot), *_listed(kind, version)}
    wanted = wants(snapshot)
    real = sorted(names - table(_TABLE)["stand_in"].keys())
    return tuple(_spec(name, asked.get(name), kind, version, wanted.get(name)) for name in real)


def needing(ability: str) -> list[str]:
    """The ops of the table that need an ability on a CUDA machine."""
    rows = table(_TABLE)["op"].items()
    return [name for name, row in rows if ability in row.get("cuda", row["needs"]) and "until" not in row]


def accelerator(snapshot: Snapshot) -> str | None:
    """What DeepSpeed takes here ("cuda", "cpu"): what the live probe saw, else what torch and the GPUs lead to."""
    live = snapshot.deepspeed_live
    if live is not None and live.accelerator:
        return live.accelerator
    forced = snapshot.environment.get("DS_ACCELERATOR") if snapshot.environment else ""
    if forced:
        return forced
    torch, gpus = snapshot.torch, snapshot.gpus
    if torch is None or gpus is None:
        return snapshot.ds_report.accelerator if snapshot.ds_report else None
    return "cuda" if torch.cuda and gpus.devices else "cpu"


def wants(snapshot: Snapshot) -> dict[str, str]:
    """Op -> what asks for it: the ds_config when there is one, else what everybody's first training run loads."""
    config, kind = snapshot.ds_config, accelerator(snapshot)
    found: dict[str, str] = {}
    if kind == "cpu":
        found["deepspeed_shm_comm"] = "DeepSpeed's CPU accelerator"
    if config is not None and config.readable:
        return found | config_wants(config)
    found["fused_adam"] = "training with optimizer Adam"
    found["cpu_adam"] = "optimizer offload to CPU"
    if snapshot.storage is not None and snapshot.storage.place("nvme"):
        found |= dict.fromkeys(("async_io", "pin_memory"), "NVMe offload (a place is named)")
    return found


def config_wants(config: DsConfig) -> dict[str, str]:
    found: dict[str, str] = {}
    named = config.get("optimizer.type")
    optimizer = _OPTIMIZERS.get(
        str(named).lower(), "adam" if named is None else "other"
    )  # None: the code's, mostly Adam
    offload = config.get(_OFFLOAD)
    torch_adam = config.get("optimizer.params.torch_adam") is True
    if offload in ("cpu", "nvme") and optimizer in ("adam", "adagrad", "lion") and not torch_adam:
        found[f"cpu_{optimizer}"] = f"{_OFFLOAD} = {offload} ({config.where(_OFFLOAD)})"
    elif named is not None and optimizer in ("adam", "lion", "lamb") and not torch_adam:
        found[f"fused_{optimizer}"] = f"optimizer.type = {named} ({config.where('optimizer.type')})"
    for key in (_OFFLOAD, "zero_optimization.offload_param.device"):
        if config.get(key) == "nvme":
            found |= dict.fromkeys(("async_io", "pin_memory"), f"{key} = nvme ({config.where(key)})")
    for key, op in _SWITCHES.items():
        if config.get(key) is True:
            found[op] = f"{key} ({config.where(key)})"
    return found


def _reported(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(op.name for op in snapshot.ds_report.ops) if snapshot.ds_report else ()


def _listed(kind: str | None, version: str | None) -> tuple[str, ...]:
    rows = table(_TABLE)["op"].items() if kind and version else ()
    return tuple(name for name, row in rows if kind in row["accelerators"] and _has(row, str(kind), str(version)))


def _has(row: dict[str, Any], kind: str, version: str) -> bool:
    """True when this release has the op for this accelerator."""
    since = row.get(f"since_{kind}", row.get("since"))
    if (since and before(version, since)) or ("until" in row and before(row["until"], version)):
        return False
    gone, back = row.get("absent", (version, version))
    return before(version, gone) or not before(version, back)


def _spec(name: str, builder: OpBuilder | None, kind: str | None, version: str | None, wanted: str | None) -> OpSpec:
    row = table(_TABLE)["op"].get(name)
    newest = table(_TABLE)["meta"]["deepspeed"]
    newer = version is not None and before(newest, version)
    if row is None or (newer and builder is not None):
        why = f"DeepSpeed {version} is newer than dsdoctor's table ({newest})" if newer else "not in dsdoctor's table"
        known = tuple(row["features"]) if row else ()
        note = f"{why}: judged by what its builder says"
        return OpSpec(name=name, needs=_own_needs(builder), features=known, wanted=wanted, note=note)
    aged = f"DeepSpeed {version} is newer than dsdoctor's table: judged by what {newest} needed" if newer else None
    needs = _table_needs(row, kind, version)
    return OpSpec(name=name, needs=needs, features=tuple(row["features"]), wanted=wanted, note=aged)


def _table_needs(row: dict[str, Any], kind: str | None, version: str | None) -> tuple[str, ...]:
    older = row.get("before", {})
    if version is not None and older and before(version, older["release"]) and not before(version, older["since"]):
        return ("op", *older.get(kind or "", row["needs"]))
    return ("op", *row.get(kind or "", row["needs"]))


def _own_needs(builder: OpBuilder | None) -> tuple[str, ...]:
    """What the builder's own words ask for."""
    if builder is None:
        return ("op", "cpp-build", "cuda-build")
    libraries = table(_TABLE)["library"]
    linked = [libraries[name] for name in builder.libraries if name in libraries]
    return ("op", "cuda-build" if builder.cuda else "cpp-build", *linked)
