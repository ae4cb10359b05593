"""What is known of DeepSpeed's ops there."""

from typing import Any

from dsdoctor.facts import DsOp, DsReport, OpBuild, OpBuilder, OpBuilders, OpBuilds, Trial, Trials
from dsdoctor.facts.ops import TRIALS
from dsdoctor.healthy.base import GIB, OPS, SITE, bent


def ds_report(**changes: Any) -> DsReport:
    fact = DsReport(
        source="ran in the patient",
        ninja=True,
        ops=tuple(DsOp(name=name, installed=False, compatible=True) for name in OPS),
        torch_path=f"{SITE}/torch",
        torch_version="2.11.0+cu130",
        torch_cuda="13.0",
        nvcc_version="13.0",
        deepspeed_path=f"{SITE}/deepspeed",
        deepspeed_version="0.19.8",
        deepspeed_info="0.19.8, unknown, unknown",
        wheel_torch="0.0",
        wheel_cuda="0.0",
        shm_bytes=64 * GIB,
        accelerator="cuda",
        seconds=0.9,
    )
    return bent(fact, changes)


def op_builders(**changes: Any) -> OpBuilders:
    """Every op of the report, asked and answering; ``errors`` maps an op to what asking it raised."""
    errors = changes.pop("errors", {})
    found = tuple(
        OpBuilder(
            name=name,
            builder=f"{name.title().replace('_', '')}Builder",
            cuda=not name.startswith(("cpu_", "pin_", "utils")),
            architectures=None if name.startswith(("cpu_", "pin_", "utils")) else ("9.0",),
            error=errors.get(name),
        )
        for name in OPS
    )
    return bent(OpBuilders(accelerator="cuda", builders=found), changes)


def trials(**failed: str) -> Trials:
    """All tiny programs worked, but for those named with their error line: ``trials(link_curand="cannot find -lcurand")``."""
    broken = {name.replace("_", "-"): error for name, error in failed.items()}
    return Trials(
        tried=tuple(
            Trial(
                name=name,
                outcome="failed",
                command=f"c++ {name}.cpp",
                error=broken[name],
                output=broken[name],
                seconds=0.2,
            )
            if name in broken
            else Trial(name=name, outcome="ok", command=f"c++ {name}.cpp", seconds=0.2)
            for name in TRIALS
        )
    )


def op_builds(*builds: OpBuild, **changes: Any) -> OpBuilds:
    return bent(OpBuilds(cache="private", builds=builds, jobs=8), changes)
