"""What a real, tiny training run did."""

from typing import Literal

from dsdoctor.facts.base import Fact


class SmokePhase(Fact, frozen=True, kw_only=True):
    name: str  # "import torch", "import deepspeed", "initialize", "compile deepspeed_shm_comm", "first step", "steps"
    seconds: float


class Smoke(Fact, frozen=True, kw_only=True):
    recipe: str  # "zero2"
    outcome: Literal["ok", "failed", "signal", "timed-out", "exited", "not-reached"]
    accelerator: str | None = None
    device: str | None = None  # "NVIDIA H200", "cpu"
    world_size: int = 1
    stage: int | None = None
    dtype: str | None = None
    steps: int = 0
    losses: tuple[float, ...] = ()
    step_ms: tuple[float, ...] = ()
    peak_bytes: int | None = None  # torch's allocator on the GPU
    peak_host_bytes: int | None = None  # max RSS
    phases: tuple[SmokePhase, ...] = ()
    last_phase: str | None = None  # where it stopped
    error_type: str | None = None
    error: str | None = None
    output_tail: str | None = None  # last lines of stdout and stderr together
    signal: str | None = None
    exit_code: int | None = None
    seconds: float | None = None
