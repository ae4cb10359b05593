"""Whatever a run told, or did not: no check of runs crashes on it, and no message is empty."""

import math
from typing import Any

import pytest
from dsdoctor_checks import capabilities, run, run_load, run_numbers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsdoctor import healthy as h
from dsdoctor.facts import (
    Collective,
    Smoke,
    SmokeAftermath,
    SmokeLoad,
    SmokeProof,
    SmokeRank,
    SmokeRun,
    SmokeStep,
    SmokeSwap,
)
from dsdoctor.model import Check, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

CHECKS = [*checks_of(run), *checks_of(run_numbers), *checks_of(run_load)]
words = st.sampled_from(["", "x", "Connection reset by peer", "CUDA error: out of memory", "1 validation error for DeepSpeedZeroConfig",
                         "Error building extension 'cpu_adam'", "Last error:\n", "File \"a.py\", line 3 in all_reduce"])  # fmt: skip
counts = st.sampled_from([0, 1, 4096, 1 << 40])
numbers = st.sampled_from([0.0, 1.0, -1.0, float("nan"), float("inf"), 1e-30])
phases = st.sampled_from(["import torch", "rendezvous", "compile cpu_adam", "first step", "steps"])
signals = st.sampled_from(["SIGKILL", "SIGBUS", "SIGSEGV", "SIGABRT", "SIGTERM", "SIGUSR2"])


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def several(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=3).map(tuple)


ranks = st.builds(
    SmokeRank, rank=st.integers(0, 3), exit_code=maybe(st.just(7)), signal=maybe(signals), error_type=maybe(words),
    ending=st.sampled_from(["ok", "failed", "signal", "exited", "hung", "timed-out", "torn-down", "not-started"]),
    error=maybe(words), last_phase=maybe(phases), silent_s=maybe(numbers.filter(lambda n: abs(n) < 9)), stack=maybe(words),
    loss=maybe(numbers), parameter_elements=maybe(counts), held_parameter_elements=maybe(counts), held_state_elements=maybe(counts),
)  # fmt: skip
aftermaths = st.builds(
    SmokeAftermath, oom_kills=maybe(counts), memory_limit_bytes=maybe(counts), least_available_bytes=maybe(counts),
    shm_total_bytes=maybe(counts), shm_least_free_bytes=maybe(counts), kernel_log=maybe(words), nccl_words=maybe(words),
    left_behind=several(words),
)  # fmt: skip
swaps = st.builds(
    SmokeSwap, path=words, direct=maybe(st.booleans()), plain_write_bytes_per_s=maybe(st.just(0.0) | st.just(1e9)), files=maybe(counts),
    plain_read_bytes_per_s=maybe(st.just(1e9)), swapped_bytes=maybe(counts), written_bytes=maybe(counts), read_bytes=maybe(counts),
    step_seconds=maybe(st.just(0.0) | st.just(9.0)),
)  # fmt: skip
steps = st.builds(
    SmokeStep,
    number=st.integers(1, 9),
    loss=maybe(numbers.filter(math.isfinite)),
    ms=st.just(1.0),
    loss_scale=maybe(numbers),
)
runs = st.builds(
    SmokeRun, recipe=st.sampled_from(["zero1", "zero2", "zero3", "zero3-nvme", "comm"]), world_size=st.integers(1, 3),
    outcome=st.sampled_from(["ok", "failed", "signal", "exited", "hung", "timed-out", "not-started", "not-applicable"]),
    because=maybe(words), config=maybe(st.just("a b.json")), accelerator=maybe(st.sampled_from(["cuda", "cpu"])),
    stage=maybe(st.integers(0, 3)), dtype=maybe(st.sampled_from(["fp32", "fp16"])), offload=maybe(st.just("optimizer to cpu")),
    steps=several(steps), ranks=several(ranks), fell_first=maybe(st.integers(0, 3)), swap=maybe(swaps), output_tail=maybe(words),
    proofs=several(st.builds(SmokeProof, name=st.just("a"), ok=st.booleans(), detail=words)),
    collectives=several(st.builds(Collective, name=words, message_bytes=counts, bytes_per_s=st.just(()), correct=st.booleans())),
    load=maybe(st.builds(SmokeLoad, samples=counts, cpu_percent=maybe(numbers), gpu_percent=maybe(numbers))),
    aftermath=maybe(aftermaths), seconds=maybe(numbers.filter(lambda n: abs(n) < 9)), limit_s=maybe(st.just(60.0)),
)  # fmt: skip


TWICE = h.smoke_run(ranks=(h.smoke_rank(0), h.smoke_rank(0)))  # a launcher that numbers its ranks wrongly


@settings(max_examples=60, deadline=None)
@example((TWICE,))
@given(several(runs))
def test_no_check_crashes_on_an_odd_run(told: tuple[SmokeRun, ...]) -> None:
    snapshot = h.healthy(Smoke(runs=told))
    for check in CHECKS:
        found = verdict(check, snapshot)
        assert found.status is not Status.CRASHED, (check.code, found.reason)
        assert all(finding.message and finding.remedy for finding in found.findings)
    for spec in capabilities.CAPABILITIES:
        spec.applies(snapshot)
        spec.requires(snapshot)
        spec.proof(snapshot)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_no_run_at_all_is_nothing_to_judge(check: Check) -> None:
    assert verdict(check, h.healthy(Smoke())).status is Status.NOT_APPLICABLE
