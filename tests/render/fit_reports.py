"""Reports of `dsdoctor fit` for the tests of what shows them: judged by the real engine, on machines that are written here."""

from functools import cache
from typing import Any

from dsdoctor.facts import Gpu, Gpus, Memory, Place, Snapshot, Storage
from dsdoctor.fit.report import FitReport
from dsdoctor.fit.training import Training
from dsdoctor.fit_examination import Question, judge_fit
from dsdoctor.testing import machine

GIB = 1 << 30


def cards(count: int, free: int, ram: int, nvme: int | None = None, name: str = "NVIDIA A100-SXM4-80GB") -> Snapshot:
    gpus = tuple(Gpu(index=n, name=name, total_bytes=(free + 1) * GIB, free_bytes=free * GIB, compute_capability="8.0") for n in range(count))  # fmt: skip
    sections = [Gpus(nvml="ok", devices=gpus), Memory(total_bytes=ram * GIB, available_bytes=ram * GIB)]
    drive = (
        Storage(places=(Place(path="/nvme", role="nvme", named_by="--nvme", free_bytes=nvme * GIB),)) if nvme else None
    )
    return machine(*sections, drive) if drive else machine(*sections)


def report(
    snapshot: Snapshot | None = None, *, params: str = "7B", strategy: str | None = None, **training: Any
) -> FitReport:
    asked = {"sequence": 2048, "checkpointing": True, **training}
    question = Question(
        params=params, strategy=strategy, training=Training(**asked), command=f"dsdoctor fit --params {params}"
    )
    return judge_fit(question, snapshot or cards(8, 79, 500))


@cache
def fits() -> FitReport:
    return report()


@cache
def tight() -> FitReport:
    return report(cards(2, 14, 23), params="1B", checkpointing=False)


@cache
def nothing() -> FitReport:
    return report(cards(1, 8, 16, nvme=20))


@cache
def unknown() -> FitReport:
    return report(machine(Memory(total_bytes=500 * GIB, available_bytes=500 * GIB)))


@cache
def needs_a_drive() -> FitReport:
    return report(cards(1, 23, 60))
