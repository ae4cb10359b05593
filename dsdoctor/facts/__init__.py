"""What can be known about a machine: frozen values, no behaviour beyond reading themselves."""

from dsdoctor.facts.accelerate_config import AccelerateConfig
from dsdoctor.facts.base import Fact, Unavailable, UnavailableKind
from dsdoctor.facts.caches import CachedOp, CacheFolder, Caches
from dsdoctor.facts.compilers import Compiler, Compilers, Ninja, StandardLibrary
from dsdoctor.facts.config_words import ConfigWord, ConfigWords
from dsdoctor.facts.cpu import Cpu
from dsdoctor.facts.deepspeed import DeepSpeed, DeepSpeedLive, DsOp, DsReport
from dsdoctor.facts.ds_config import DsConfig
from dsdoctor.facts.environment import Environment
from dsdoctor.facts.gpu import Gpu, GpuLink, GpuProcess, Gpus
from dsdoctor.facts.host import Host
from dsdoctor.facts.limits import UNLIMITED, Limit, Limits
from dsdoctor.facts.log import Log, LogException, LogExit, LogFile, LogMatch, LogPlace, Role, TextKind
from dsdoctor.facts.memory import Memory
from dsdoctor.facts.model_config import ModelConfig
from dsdoctor.facts.network import Interface, Network
from dsdoctor.facts.ops import OpBuild, OpBuilder, OpBuilders, OpBuilds, Trial, Trials
from dsdoctor.facts.packages import Damage, Distribution, Packages, Shadow
from dsdoctor.facts.programs import Hostfile, Programs
from dsdoctor.facts.purpose import Purpose
from dsdoctor.facts.python import Python
from dsdoctor.facts.run_plan import FrameworkName, RunPlan
from dsdoctor.facts.smoke import (
    Collective,
    Smoke,
    SmokeAftermath,
    SmokeCurves,
    SmokeLoad,
    SmokePhase,
    SmokeProof,
    SmokeRank,
    SmokeRun,
    SmokeStep,
    SmokeSwap,
)
from dsdoctor.facts.snapshot import Snapshot, SnapshotError
from dsdoctor.facts.storage import Place, Storage
from dsdoctor.facts.toolkit import Toolkit, Toolkits
from dsdoctor.facts.torch import Import, Torch, TorchLive
from dsdoctor.facts.training_args import TrainingArgs

__all__ = [
    "UNLIMITED", "AccelerateConfig", "CacheFolder", "CachedOp", "Caches", "Collective", "Compiler", "Compilers", "ConfigWord", "ConfigWords", "Cpu", "Damage", "DeepSpeed",
    "DeepSpeedLive", "Distribution", "DsConfig", "DsOp", "DsReport", "Environment", "Fact", "FrameworkName", "Gpu", "GpuLink",
    "GpuProcess", "Gpus", "Host", "Hostfile", "Import", "Interface", "Limit", "Limits", "Log", "LogException", "LogExit", "LogFile", "LogMatch", "LogPlace", "Memory", "ModelConfig", "Network", "Ninja", "OpBuild",
    "OpBuilder", "OpBuilders", "OpBuilds",
    "Packages", "Place", "Programs", "Purpose", "Python", "Role", "RunPlan", "Shadow", "Smoke",
    "SmokeAftermath", "SmokeCurves", "SmokeLoad", "SmokePhase", "SmokeProof", "SmokeRank", "SmokeRun", "SmokeStep", "SmokeSwap", "Snapshot", "SnapshotError",
    "StandardLibrary", "Storage", "TextKind", "Toolkit", "Toolkits", "Torch", "TorchLive", "TrainingArgs", "Trial", "Trials", "Unavailable", "UnavailableKind",
]  # fmt: skip
