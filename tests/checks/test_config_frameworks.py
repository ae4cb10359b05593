"""Accelerate's YAML and the Trainer's arguments against the DeepSpeed config."""

from typing import Any

import pytest

from dsdoctor.facts import AccelerateConfig, RunPlan, TrainingArgs
from dsdoctor.model import Severity, Status
from dsdoctor.readers import accelerate_config, ds_config, training_args
from tests.checks.config_cases import H200S, config, found, judged, one

ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
mixed_precision: {mixed}
num_machines: {machines}
num_processes: {processes}
deepspeed_config:
{rows}
"""
FILE = ("deepspeed_config_file: ds.json",)


def accelerate(*rows: str, mixed: str = "bf16", machines: int = 1, processes: int = 8) -> AccelerateConfig:
    lines = "\n".join(f"  {row}" for row in rows) or "  zero_stage: 2"
    text = ACCELERATE.format(mixed=mixed, machines=machines, processes=processes, rows=lines)
    made = accelerate_config.parse(text, "acc.yaml")
    assert made is not None
    assert made.problem is None
    return made


def trainer(**values: Any) -> TrainingArgs:
    rows = [f"{key}: {value}" for key, value in values.items()]
    return training_args.parse("\n".join(["output_dir: out", *rows]), "args.yaml")


def test_accelerate_and_a_deepspeed_file_both_say_the_stage() -> None:
    both = accelerate(*FILE, "zero_stage: 3")
    findings = found("CFG046", both)
    assert [f.subject for f in findings] == ["deepspeed_config.zero_stage", "mixed_precision"]
    assert findings[0].message.startswith("acc.yaml:8:3: ")
    assert not found("CFG046", accelerate("zero_stage: 3"))
    assert not found(
        "CFG046", AccelerateConfig(path="acc.yaml", values={"deepspeed_config": {"deepspeed_config_file": "ds.json"}})
    )


def test_accelerate_loses_an_nvme_path() -> None:
    lost = accelerate("offload_param_device: nvme", "offload_param_nvme_path: /mnt/nvme")
    assert '"/mnt/nvme" does not reach DeepSpeed' in one("CFG047", lost).message
    assert not found("CFG047", accelerate("offload_param_device: cpu"))


def test_precision_in_two_places() -> None:
    clash = one("CFG048", accelerate(*FILE, mixed="bf16"), config(fp16={"enabled": True}))
    assert clash.severity is Severity.ERROR
    assert "ds.json:4:3" in clash.message
    assert not found("CFG048", accelerate(*FILE, mixed="bf16"), config(bf16={"enabled": True}))
    assert not found("CFG048", accelerate(*FILE, mixed="fp16"), config(fp16={"enabled": "auto"}))


def test_auto_that_waits_for_a_precision() -> None:
    silent = AccelerateConfig(path="acc.yaml", values={"deepspeed_config": {"deepspeed_config_file": "ds.json"}})
    waiting = config(bf16={"enabled": "auto"}, zero_optimization={"stage": 2})
    assert one("CFG048", silent, waiting).severity is Severity.INFO
    assert not found("CFG048", silent, waiting, trainer(bf16="true"))
    assert not found("CFG048", silent, config(bf16={"enabled": True}))


def test_processes_and_machines() -> None:
    assert "cannot be shared out" in found("CFG049", accelerate(machines=3, processes=8))[0].message
    assert "16 processes on each machine" in one("CFG049", accelerate(processes=16), H200S).message
    assert "deepspeed_hostfile" in one("CFG049", accelerate(machines=2, processes=16), H200S).message
    standard = accelerate("deepspeed_multinode_launcher: standard", machines=2, processes=16)
    assert not found("CFG049", standard, H200S)


def test_accelerate_alone_refuses_betas_auto() -> None:
    betas = config(
        optimizer={"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}}, zero_optimization={"stage": 2}
    )
    finding = one("CFG050", betas, RunPlan(framework="accelerate"))
    assert finding.subject == "optimizer.params.betas"
    assert judged("CFG050", betas, RunPlan(framework="accelerate")).severity is Severity.ERROR
    assert not found("CFG050", betas, RunPlan(framework="hf"))
    assert judged("CFG050", betas, accelerate(*FILE)).severity is Severity.WARNING  # a Trainer may fill them
    assert not found("CFG050", betas, accelerate(*FILE), trainer())
    assert "no zero_optimization section" in one("CFG050", config(), RunPlan(framework="accelerate")).message


def test_no_framework_passes_an_auto_on_that_it_does_not_know() -> None:
    for values in (
        {"zero_optimization": {"sub_group_size": "auto"}},
        {"zero_optimization": {}, "pipeline": {"stages": "auto"}},
    ):
        for framework in ("hf", "accelerate"):
            finding = one("CFG050", config(**values), RunPlan(framework=framework))
            assert "no value for it" in finding.message
            assert not found("CFG011", config(**values), RunPlan(framework=framework))  # said once
    usual = config(zero_optimization={}, bf16={"enabled": "auto"})
    assert found("CFG011", usual)
    assert not found("CFG011", usual, trainer())  # its arguments fill it in: CFG054 tells with what
    assert not found("CFG011", usual, accelerate(*FILE))
    assert "train_batch_size is auto" in one("CFG050", ds_config.parse('{"train_batch_size": "auto", "zero_optimization": {}}', "ds.json"), RunPlan(framework="accelerate")).message  # fmt: skip


@pytest.mark.parametrize(
    ("values", "arguments", "key"),
    [
        ({"train_micro_batch_size_per_gpu": 4}, {"per_device_train_batch_size": 8}, "train_micro_batch_size_per_gpu"),
        ({"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 4}, "gradient_accumulation_steps"),
        ({"gradient_clipping": 0.5}, {"max_grad_norm": 1.0}, "gradient_clipping"),
        ({"optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}, {"learning_rate": "2.0e-4"}, "optimizer.params.lr"),
        ({"optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.95]}}}, {"adam_beta2": 0.98}, "optimizer.params.betas"),
        ({"bf16": {"enabled": True}}, {"bf16": "false"}, "bf16.enabled"),
        ({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 50}}}, {"warmup_steps": 100}, "scheduler.params.warmup_num_steps"),
        ({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 50}}}, {"max_steps": 100}, "scheduler.params.total_num_steps"),
    ],
)  # fmt: skip
def test_what_the_trainer_compares(values: dict[str, Any], arguments: dict[str, Any], key: str) -> None:
    same_batch = {"per_device_train_batch_size": 1} if key != "train_micro_batch_size_per_gpu" else {}
    finding = one("CFG051", config(**values), trainer(**same_batch, **arguments))
    assert finding.subject == key
    assert finding.severity is Severity.ERROR
    assert "args.yaml:" in finding.message


def test_defaults_of_the_trainer_count_with_less_certainty() -> None:
    finding = one("CFG051", config(train_micro_batch_size_per_gpu="auto", gradient_clipping=0.3), trainer())
    assert finding.severity is Severity.WARNING
    assert "max_grad_norm is 1.0 by default" in finding.message


def test_the_trainer_fills_auto() -> None:
    auto = config(train_micro_batch_size_per_gpu="auto", gradient_accumulation_steps="auto", bf16={"enabled": "auto"})
    arguments = trainer(per_device_train_batch_size=4, bf16="true")
    assert not found("CFG051", auto, arguments)
    filled = one("CFG054", auto, arguments).message
    assert "train_micro_batch_size_per_gpu = 4" in filled
    assert "gradient_accumulation_steps = 1" in filled
    assert "bf16.enabled = true" in filled


def test_yaml_reads_1e_4_as_a_text() -> None:
    assert one("CFG052", trainer(learning_rate="1e-4")).subject == "learning_rate"
    assert not found("CFG052", trainer(learning_rate="1.0e-4"))


def test_the_global_batch_of_the_arguments() -> None:
    plan = RunPlan(gpus_per_node=4, named_by="--gpus 4")
    arguments = trainer(per_device_train_batch_size=2, gradient_accumulation_steps=2)
    assert "are 16" in one("CFG053", config(train_batch_size=32), arguments, plan).message
    assert not found("CFG053", config(train_batch_size=16), arguments, plan)


def test_lightning_sets_the_accumulation() -> None:
    lightning = RunPlan(framework="lightning")
    stopped = judged("CFG055", config(gradient_accumulation_steps=4), lightning)
    assert stopped.findings[0].cause == "lightning-config-conflict"
    assert stopped.severity is Severity.ERROR
    assert judged("CFG055", config(train_batch_size=8), lightning).severity is Severity.WARNING
    assert not found("CFG055", config(gradient_clipping=1.0), lightning)  # Lightning takes it
    assert not found("CFG055", config(gradient_accumulation_steps=4), RunPlan(framework="hf"))


def test_an_unreadable_accelerate_file_is_told_once() -> None:
    broken = AccelerateConfig(path="acc.yaml", problem="there is no such file")
    assert "no such file" in one("CFG059", broken).message
    assert judged("CFG046", broken).status is Status.UNKNOWN
    assert not found("CFG059", accelerate())
