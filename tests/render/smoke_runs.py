"""Smoke runs for the tests of the views: as they look on real machines, built by hand."""

import math
from typing import Any

import msgspec

from dsdoctor.facts import (
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

MIB, GIB = 1 << 20, 1 << 30
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b5m[red]x[/red] <script>alert(1)</script>\n::error::fake \u202e|`"


def phases(*named: tuple[str, float | None], rank: int = 0) -> tuple[SmokePhase, ...]:
    """One after the other; the last one may have no end."""
    made, start = [], 0.0
    for name, seconds in named:
        made.append(SmokePhase(name=name, seconds=seconds, start_s=start, rank=rank))
        start += seconds or 0.0
    return tuple(made)


def steps(losses: tuple[float, ...], first_ms: float, *ms: float) -> tuple[SmokeStep, ...]:
    times = (first_ms, *ms)
    return tuple(
        SmokeStep(number=n, loss=loss, ms=times[min(n, len(times)) - 1], grad_norm=1.0 / n)
        for n, loss in enumerate(losses, 1)
    )


def curves(seconds: float, *, gpu: bool = True, samples: int = 40) -> SmokeCurves:
    """Memory that rises and stays, a processor that is busy in the middle; the first GPU sample is missing."""
    share = [n / (samples - 1) for n in range(samples)]
    return SmokeCurves(
        seconds=tuple(round(s * seconds, 2) for s in share),
        gpu_bytes=(None, *(int(900 * MIB * min(s * 2, 1)) for s in share[1:])) if gpu else (),
        torch_bytes=(None, *(int(41 * MIB * min(s * 2, 1)) for s in share[1:])) if gpu else (),
        gpu_percent=tuple(30.0 if s > 0.8 else 0.0 for s in share) if gpu else (),
        rss_bytes=tuple(int(1.5 * GIB * min(s * 3, 1)) for s in share),
        cpu_percent=tuple(20.0 + 70.0 * math.sin(s * math.pi) for s in share),
        busiest_core_percent=tuple(60.0 + 40.0 * s for s in share),
        read_bytes_per_s=tuple(2e8 if s < 0.2 else 0.0 for s in share),
        write_bytes_per_s=tuple(0.0 for _ in share),
    )


LOSSES = (1.0912, 1.01, 0.95, 0.9, 0.86, 0.82, 0.79, 0.77, 0.74, 0.7204)
STARTED = (("import torch", 2.1), ("import deepspeed", 3.4), ("rendezvous", 0.2), ("initialize", 1.1))


def zero2(**changes: Any) -> SmokeRun:
    """ZeRO-2 on one H200, as it should be."""
    run = SmokeRun(
        recipe="zero2",
        outcome="ok",
        accelerator="cuda",
        device="NVIDIA H200",
        stage=2,
        dtype="bf16",
        phases=phases(*STARTED, ("first step", 1.8), ("steps", 0.09)),
        steps=steps(LOSSES, 1800.0, 9.1, 8.9, 9.6),
        ranks=(
            SmokeRank(rank=0, ending="ok", exit_code=0, last_phase="steps", device="NVIDIA H200", loss=0.72, peak_bytes=41 * MIB,
                      parameter_elements=4203520, held_parameter_elements=4203520, held_state_elements=4203520, state_bytes=50442240,
                      peak_reserved_bytes=60 * MIB, peak_phase="first step", peak_host_bytes=1500 * MIB),
        ),
        proofs=(
            SmokeProof(name="partitioned", ok=True, detail="the rank keeps all 4203520 of 4203520 state elements"),
            SmokeProof(name="falls", ok=True, detail="the loss fell from 1.0912 to 0.7204"),
        ),
        curves=curves(9.0),
        load=SmokeLoad(samples=9, core_percent=(12.0, 98.0), cpu_percent=55.0, gpu_percent=30.0),
        seconds=9.0,
        limit_s=600.0,
    )  # fmt: skip
    return msgspec.structs.replace(run, **changes)


def nvme(**changes: Any) -> SmokeRun:
    """ZeRO-Infinity: swaps, and keeps the processor busy."""
    return zero2(
        recipe="zero3-nvme", stage=3, offload="optimizer and parameters to nvme",
        phases=phases(*STARTED, ("compile async_io", 21.0), ("first step", 2.5), ("steps", 1.1)),
        steps=steps(LOSSES, 2500.0, 120.0, 118.0, 140.0),
        swap=SmokeSwap(path="/local/nvme", filesystem="xfs", direct=True, plain_write_bytes_per_s=1.4e9,
                       plain_read_bytes_per_s=2.0e9, swapped_bytes=134_266_880, files=14, written_bytes=610_000_000,
                       read_bytes=600_000_000, step_seconds=1.1),
        load=SmokeLoad(samples=11, core_percent=(91.0, 93.0), cpu_percent=92.0, gpu_percent=30.0),
        curves=curves(31.0), seconds=31.4, **changes,
    )  # fmt: skip


def comm(**changes: Any) -> SmokeRun:
    """Collectives between two ranks: no step, no loss."""
    names = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "point_to_point")
    run = SmokeRun(
        recipe="comm", outcome="ok", accelerator="cuda", device="NVIDIA H200", world_size=2, dtype="bf16",
        phases=phases(*STARTED[:3], ("collectives", 1.4)),
        ranks=tuple(SmokeRank(rank=n, ending="ok", exit_code=0, peak_bytes=96 * MIB, peak_phase="collectives") for n in (0, 1)),
        proofs=tuple(SmokeProof(name=f"collective {name}", ok=True, detail="each element is 3 as it should be") for name in names),
        collectives=tuple(Collective(name=name, message_bytes=32 * MIB, bytes_per_s=(180e9, 201e9 + n * 1e9, 214e9), correct=True)
                          for n, name in enumerate(names)),
        curves=curves(7.0), seconds=7.1,
    )  # fmt: skip
    return msgspec.structs.replace(run, **changes)


def not_applicable(**changes: Any) -> SmokeRun:
    because = "experts are spread over ranks: it needs 2 GPUs, and 1 is here"
    return msgspec.structs.replace(SmokeRun(recipe="moe", outcome="not-applicable", because=because), **changes)


def killed(**changes: Any) -> SmokeRun:
    """Rank 1 of 2 got SIGKILL in its first step; rank 0 was torn down."""
    run = SmokeRun(
        recipe="zero3", outcome="signal", accelerator="cpu", device="cpu", world_size=2, stage=3, dtype="bf16",
        phases=(*phases(*STARTED, ("first step", None)), *phases(*STARTED, ("first step", None), rank=1)),
        ranks=(
            SmokeRank(rank=0, ending="torn-down", exit_code=-15, signal="SIGTERM", last_phase="first step"),
            SmokeRank(rank=1, ending="signal", exit_code=-9, signal="SIGKILL", last_phase="first step", peak_host_bytes=3 * GIB),
        ),
        fell_first=1,
        curves=curves(8.0, gpu=False),
        aftermath=SmokeAftermath(oom_kills=1, memory_limit_bytes=4 * GIB, least_available_bytes=12 * MIB,
                                 shm_total_bytes=64 * MIB, shm_least_free_bytes=60 * MIB,
                                 kernel_log="Memory cgroup out of memory: Killed process 4711 (python)"),
        output_tail="[rank0] waiting for rank 1\nTerminated", seconds=8.2, limit_s=600.0,
    )  # fmt: skip
    return msgspec.structs.replace(run, **changes)


def hung(**changes: Any) -> SmokeRun:
    """Nobody met anybody: both ranks waited in the rendezvous until the watchdog came."""
    stack = 'Thread 0x7f (most recent call first):\n  File "rendezvous.py", line 189 in _create_store'
    run = SmokeRun(
        recipe="zero1", outcome="hung", accelerator="cuda", device="NVIDIA H200", world_size=2, stage=1,
        phases=phases(("import torch", 2.1), ("import deepspeed", 3.4), ("rendezvous", None)),
        ranks=(
            SmokeRank(rank=0, ending="hung", signal="SIGKILL", last_phase="rendezvous", silent_s=60.0, stack=stack),
            SmokeRank(rank=1, ending="torn-down", signal="SIGKILL", last_phase="rendezvous", silent_s=59.8, stack=stack),
        ),
        fell_first=0,
        aftermath=SmokeAftermath(nccl_words="rank 0: NCCL WARN connect timed out"),
        seconds=66.0, limit_s=60.0,
    )  # fmt: skip
    return msgspec.structs.replace(run, **changes)


def smoke(*runs: SmokeRun) -> Smoke:
    return Smoke(runs=runs or (zero2(), nvme(), comm(), not_applicable(), killed(), hung()))


def hostile() -> SmokeRun:
    """Every text says HOSTILE, every number is odd."""
    nan = math.nan
    rank = SmokeRank(rank=0, ending="failed", error_type=HOSTILE, error=HOSTILE, last_phase=HOSTILE, stack=HOSTILE, signal=HOSTILE,
                     device=HOSTILE, peak_bytes=1, peak_phase=HOSTILE, loss=nan, silent_s=nan)  # fmt: skip
    return SmokeRun(
        recipe=HOSTILE, outcome="failed", because=HOSTILE, launcher=HOSTILE, config=HOSTILE, notes=(HOSTILE,), accelerator=HOSTILE, device=HOSTILE,
        dtype=HOSTILE, offload=HOSTILE, parallel=HOSTILE,
        phases=(SmokePhase(name=HOSTILE, seconds=nan, start_s=nan), SmokePhase(name=HOSTILE, seconds=2.0, start_s=1.0),
                SmokePhase(name=HOSTILE, seconds=None, start_s=3.0)),
        steps=(SmokeStep(number=1, loss=nan, ms=nan), SmokeStep(number=2, loss=math.inf, ms=-1.0), SmokeStep(number=2, loss=0.5, ms=1.0)),
        ranks=(rank,), fell_first=0,
        proofs=(SmokeProof(name=HOSTILE, ok=False, detail=HOSTILE), SmokeProof(name=HOSTILE, ok=True, detail=HOSTILE)),
        collectives=(Collective(name=HOSTILE, message_bytes=0, bytes_per_s=(nan, math.inf), correct=False),
                     Collective(name="none", message_bytes=1, bytes_per_s=(), correct=True)),
        swap=SmokeSwap(path=HOSTILE, filesystem=HOSTILE, written_bytes=5, step_seconds=0.0, plain_read_bytes_per_s=nan),
        curves=SmokeCurves(seconds=(0.0, 1.0, nan, 3.0), gpu_bytes=(None, 5), cpu_percent=(nan, math.inf, 3.0, 900.0), rss_bytes=(7,)),
        load=SmokeLoad(samples=1, core_percent=(nan,), cpu_percent=nan, gpu_percent=None),
        aftermath=SmokeAftermath(kernel_log=HOSTILE, nccl_words=HOSTILE, left_behind=(HOSTILE,), least_available_bytes=-1),
        output_tail=HOSTILE, seconds=4.0,
    )  # fmt: skip


def empty(**changes: Any) -> SmokeRun:
    """Nothing but a name and an outcome is known."""
    return msgspec.structs.replace(SmokeRun(recipe="zero2", outcome="ok"), **changes)
