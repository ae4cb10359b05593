"""A snapshot: every fact section of one machine at one moment, and its JSON form."""

import datetime
from typing import Any, TypeVar

import msgspec

from dsdoctor.facts.accelerate_config import AccelerateConfig
from dsdoctor.facts.base import Fact, Unavailable
from dsdoctor.facts.caches import Caches
from dsdoctor.facts.compilers import Compilers
from dsdoctor.facts.config_words import ConfigWords
from dsdoctor.facts.cpu import Cpu
from dsdoctor.facts.deepspeed import DeepSpeed, DeepSpeedLive, DsReport
from dsdoctor.facts.ds_config import DsConfig
from dsdoctor.facts.environment import Environment
from dsdoctor.facts.gpu import Gpus
from dsdoctor.facts.host import Host
from dsdoctor.facts.limits import Limits
from dsdoctor.facts.log import Log
from dsdoctor.facts.memory import Memory
from dsdoctor.facts.model_config import ModelConfig
from dsdoctor.facts.network import Network
from dsdoctor.facts.ops import OpBuilders, OpBuilds, Trials
from dsdoctor.facts.packages import Packages
from dsdoctor.facts.programs import Programs
from dsdoctor.facts.purpose import Purpose
from dsdoctor.facts.python import Python
from dsdoctor.facts.run_plan import RunPlan
from dsdoctor.facts.smoke import Smoke
from dsdoctor.facts.storage import Storage
from dsdoctor.facts.toolkit import Toolkits
from dsdoctor.facts.torch import Torch, TorchLive
from dsdoctor.facts.training_args import TrainingArgs

SCHEMA_VERSION = 1
F = TypeVar("F", bound=Fact)


class SnapshotError(ValueError):
    """A snapshot file that cannot be used; the message is one sentence for the user."""


class Snapshot(Fact, frozen=True, kw_only=True):
    """Sections that are None and not named in ``unavailable`` were simply not examined."""

    schema_version: int = SCHEMA_VERSION
    tool_version: str
    taken_at: str = ""  # UTC, ISO 8601
    origin: str = "this machine"  # or a file name, "pasted text"
    purpose: Purpose | None = None
    host: Host | None = None
    cpu: Cpu | None = None
    memory: Memory | None = None
    limits: Limits | None = None
    gpus: Gpus | None = None
    toolkits: Toolkits | None = None
    compilers: Compilers | None = None
    python: Python | None = None
    packages: Packages | None = None
    torch: Torch | None = None
    torch_live: TorchLive | None = None
    deepspeed: DeepSpeed | None = None
    deepspeed_live: DeepSpeedLive | None = None
    ds_report: DsReport | None = None
    op_builders: OpBuilders | None = None
    trials: Trials | None = None
    op_builds: OpBuilds | None = None
    environment: Environment | None = None
    caches: Caches | None = None
    storage: Storage | None = None
    network: Network | None = None
    programs: Programs | None = None
    ds_config: DsConfig | None = None
    config_words: ConfigWords | None = None
    accelerate_config: AccelerateConfig | None = None
    training_args: TrainingArgs | None = None
    model_config: ModelConfig | None = None
    run_plan: RunPlan | None = None
    smoke: Smoke | None = None
    log: Log | None = None
    unavailable: dict[str, Unavailable] = {}  # section name -> why

    def section(self, kind: type[F]) -> F | Unavailable:
        """The section of type ``kind``, or why it is missing."""
        name = SECTIONS[kind]
        value = getattr(self, name)
        if value is not None:
            return value  # type: ignore[no-any-return]
        if name in _NOT_OF_A_MACHINE and name not in self.unavailable:
            return Unavailable(kind="not-asked", detail=_NOT_OF_A_MACHINE[name])
        return self.unavailable.get(name, Unavailable(kind="not-examined", detail=f"{name} was not examined"))

    def replace(self, **changes: Any) -> "Snapshot":
        return msgspec.structs.replace(self, **changes)


SECTIONS: dict[type[Fact], str] = {
    Purpose: "purpose", Host: "host", Cpu: "cpu", Memory: "memory", Limits: "limits", Gpus: "gpus",
    Toolkits: "toolkits", Compilers: "compilers", Python: "python", Packages: "packages", Torch: "torch",
    TorchLive: "torch_live", DeepSpeed: "deepspeed", DeepSpeedLive: "deepspeed_live", DsReport: "ds_report",
    Environment: "environment", Caches: "caches", Storage: "storage", Network: "network", Programs: "programs",
    DsConfig: "ds_config", ConfigWords: "config_words", AccelerateConfig: "accelerate_config", TrainingArgs: "training_args", ModelConfig: "model_config", RunPlan: "run_plan", Smoke: "smoke", Log: "log",
    OpBuilders: "op_builders", Trials: "trials", OpBuilds: "op_builds",
}  # fmt: skip
_NOT_OF_A_MACHINE = {
    "log": "no log was given (dsdoctor triage)",
    "model_config": "no model was named (dsdoctor config --model)",
    "config_words": "no DeepSpeed was asked about a config (dsdoctor check --config)",
}
LIVE_SECTIONS = frozenset(
    {"torch_live", "deepspeed_live", "ds_report", "op_builders", "config_words", "trials", "op_builds", "smoke"}
)


def now() -> str:
    """The present moment in UTC, whole seconds."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def encode(snapshot: Snapshot) -> bytes:
    """JSON, indented, stable order."""
    return msgspec.json.format(msgspec.json.encode(snapshot), indent=1) + b"\n"


def decode(data: bytes, origin: str) -> Snapshot:
    """Read a snapshot file. Raises SnapshotError with one sentence when it is none, is cut off, or is of another version."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SnapshotError(f"{origin} is not a snapshot: it is not valid JSON ({error})") from None
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise SnapshotError(f"{origin} is not a snapshot: it has no schema_version")
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise SnapshotError(
            f"{origin} has snapshot schema {raw.get('schema_version')!r}; this dsdoctor reads schema {SCHEMA_VERSION}"
        )
    if isinstance(raw.get("facts"), dict):  # a report written by `check --json` carries its snapshot
        raw = raw["facts"]
    try:
        return msgspec.convert(raw, Snapshot)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"{origin} is not a usable snapshot: {error}") from None
