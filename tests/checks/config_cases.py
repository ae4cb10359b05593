"""Configs for the tests of the family CFG, and one line to judge them."""

import json
from typing import Any

from dsdoctor_checks import (
    config as by_itself,
)
from dsdoctor_checks import (
    config_accelerate,
    config_batch,
    config_conflicts,
    config_features,
    config_lean,
    config_machine,
    config_model,
    config_offload,
    config_optimizer,
    config_rules,
    config_trainer,
)

from dsdoctor.facts import DeepSpeed, DsConfig, Fact, Gpu, Gpus
from dsdoctor.model import Check, Finding, Status, Verdict
from dsdoctor.readers import ds_config
from dsdoctor.registry import checks_of
from dsdoctor.testing import machine, verdict

MODULES = (by_itself, config_accelerate, config_trainer, config_batch, config_conflicts, config_features, config_lean, config_machine, config_model, config_offload, config_optimizer, config_rules)  # fmt: skip
CHECKS: dict[str, Check] = {check.code: check for module in MODULES for check in checks_of(module)}
NOW = DeepSpeed(version="0.19.8", path="/opt/venv/lib/python3.11/site-packages/deepspeed")
OLD = DeepSpeed(version="0.16.9", path="/opt/venv/lib/python3.11/site-packages/deepspeed")
H200S = Gpus(
    nvml="ok",
    devices=tuple(
        Gpu(index=n, name="NVIDIA H200", compute_capability="9.0", total_bytes=141 * 10**9) for n in range(8)
    ),
)


def config(**values: Any) -> DsConfig:
    """A config with these values beside a micro batch of 1."""
    base: dict[str, Any] = {"train_micro_batch_size_per_gpu": 1}
    return ds_config.parse(json.dumps({**base, **values}, indent=1), "ds.json")


def judged(code: str, *facts: Fact) -> Verdict:
    return verdict(CHECKS[code], machine(*facts))


def found(code: str, *facts: Fact) -> list[Finding]:
    """The findings; a check that crashed or does not know fails the test."""
    result = judged(code, *facts)
    assert result.status in (Status.PASSED, Status.FAILED, Status.NOT_APPLICABLE), result.reason
    return list(result.findings)


def one(code: str, *facts: Fact) -> Finding:
    findings = found(code, *facts)
    assert len(findings) == 1, [f.message for f in findings]
    assert findings[0].remedy is not None
    assert findings[0].evidence
    return findings[0]
