"""What transformers and Accelerate make of a config, run for real up to deepspeed.initialize, against what the checks say."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.facts import Fact
from dsdoctor.facts.run_plan import FrameworkName
from dsdoctor.model import Severity, Status
from dsdoctor.readers import accelerate_config, model_words, training_args
from tests.config_truth.judging import errors, verdicts
from tests.config_truth.oracle import Oracle

_MISSING = [name for name in ("deepspeed", "accelerate", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(_MISSING), reason=f"needs {', '.join(_MISSING)}")

SIZES = dict.fromkeys(
    ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size", "gradient_clipping"), "auto"
)
ADAM = {"type": "AdamW", "params": dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")}
PLAIN_ADAM = {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}
DECAY = {"type": "WarmupDecayLR", "params": dict.fromkeys(("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "total_num_steps"), "auto")}  # fmt: skip
BUCKETS = dict.fromkeys(("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold"), "auto")  # fmt: skip
HALVES = {"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}}
TWO: dict[str, Any] = {"stage": 2}

TAKEN: list[tuple[FrameworkName, dict[str, Any], dict[str, Any]]] = [
    ("hf", {**SIZES, **HALVES, "zero_optimization": {"stage": 3, **BUCKETS}, "optimizer": ADAM, "scheduler": DECAY}, {}),
    ("hf", {**SIZES, "zero_optimization": {**TWO, **BUCKETS}}, {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}),
    ("hf", {**SIZES, "zero_optimization": {"stage": "auto", "offload_param": {"device": "auto"}}, "steps_per_print": "auto"}, {}),
    ("hf", {**SIZES, "zero_optimization": TWO, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}}}, {"learning_rate": 3e-4}),
    ("hf", {**SIZES, "train_batch_size": 16, "zero_optimization": TWO}, {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4}),
    ("hf", {**SIZES, "zero_optimization": TWO, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}}}, {"warmup_steps": 5}),
    ("accelerate", {**SIZES, **HALVES, "zero_optimization": {"stage": 3, **BUCKETS}, "optimizer": PLAIN_ADAM, "scheduler": DECAY}, {}),
    ("accelerate", {**SIZES, "zero_optimization": {"stage": "auto", "offload_param": {"device": "auto", "nvme_path": "auto"}}}, {}),
    ("accelerate", {**SIZES, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": "auto"}}, {}),
]  # fmt: skip
REFUSED: list[tuple[FrameworkName, dict[str, Any], dict[str, Any], str]] = [
    ("hf", {**SIZES, "zero_optimization": {**TWO, "sub_group_size": "auto"}}, {}, "CFG050"),
    ("hf", {**SIZES, "zero_optimization": TWO, "pipeline": {"stages": "auto"}}, {}, "CFG050"),
    ("hf", {**SIZES, "zero_optimization": TWO, "optimizer": {"type": "AdamW", "params": {"bias_correction": "auto"}}}, {}, "CFG050"),
    ("hf", {**SIZES}, {}, "CFG050"),
    ("hf", {**SIZES, "train_micro_batch_size_per_gpu": 4, "zero_optimization": TWO}, {"per_device_train_batch_size": 8}, "CFG051"),
    ("hf", {**SIZES, "train_batch_size": 32, "zero_optimization": TWO}, {"per_device_train_batch_size": 8}, "CFG053"),
    ("hf", {**SIZES, "zero_optimization": TWO, "gradient_clipping": 0.5}, {"max_grad_norm": 1.0}, "CFG051"),
    ("hf", {**SIZES, "zero_optimization": TWO, "bf16": {"enabled": True}}, {"bf16": False}, "CFG051"),
    ("hf", {**SIZES, "zero_optimization": TWO, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}, {"warmup_steps": 5}, "CFG051"),
    ("hf", {**SIZES, "zero_optimization": TWO, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": "auto", "total_num_steps": 77}}}, {"max_steps": 10}, "CFG051"),
    ("accelerate", {**SIZES, "zero_optimization": TWO, "optimizer": ADAM}, {}, "CFG050"),
    ("accelerate", {**SIZES, "zero_optimization": {**TWO, "sub_group_size": "auto"}}, {}, "CFG050"),
    ("accelerate", {**SIZES, "zero_optimization": TWO, "data_types": {"keep_in_fp32_modules": "auto"}}, {}, "CFG050"),
    ("accelerate", {"train_batch_size": "auto", "zero_optimization": TWO}, {}, "CFG050"),
    ("accelerate", {**SIZES, "gradient_accumulation_steps": "4", "zero_optimization": TWO}, {}, "CFG005"),
    ("accelerate", {**SIZES}, {}, "CFG050"),
]  # fmt: skip


def beside(arguments: dict[str, Any]) -> tuple[Fact, ...]:
    return (training_args.parse(json.dumps({"output_dir": "out", **arguments}, indent=1), "args.json"),)


@pytest.mark.parametrize(("framework", "config", "arguments"), TAKEN)
def test_what_a_framework_takes_is_no_error(
    deepspeed: Oracle, framework: FrameworkName, config: dict[str, Any], arguments: dict[str, Any]
) -> None:
    came = deepspeed.through(framework, config=config, args=arguments)
    assert '"auto"' not in json.dumps(came["config"])
    told = errors(json.dumps(config), 1, *(beside(arguments) if framework == "hf" else ()), framework=framework)
    assert told == []


@pytest.mark.parametrize(("framework", "config", "arguments", "code"), REFUSED)
def test_what_a_framework_refuses_is_an_error(
    deepspeed: Oracle, framework: FrameworkName, config: dict[str, Any], arguments: dict[str, Any], code: str
) -> None:
    assert "Error" in deepspeed.through(framework, config=config, args=arguments)["error"]
    told = errors(json.dumps(config), 1, *(beside(arguments) if framework == "hf" else ()), framework=framework)
    assert {one[0] for one in told} == {code}


def test_the_values_that_the_trainer_fills_in_are_those_that_are_told(deepspeed: Oracle) -> None:
    defaults = {
        "stage": "auto",
        "offload_param": {"device": "auto"},
        "stage3_gather_16bit_weights_on_model_save": "auto",
    }
    config = {**TAKEN[0][1], "zero_optimization": defaults}
    arguments = {"per_device_train_batch_size": 4, "learning_rate": 2e-4, "max_steps": 30, "warmup_steps": 7}
    came = deepspeed.through("hf", config=config, args=arguments)["config"]
    (verdict,) = [v for v in verdicts(json.dumps(config), 1, *beside(arguments), framework="hf") if v.code == "CFG054"]
    told = verdict.findings[0].message.partition("fills in ")[2]
    said = re.findall(r"([\w.]+) = (\[.*?\]|[^,]+)", told)
    assert len(said) > 10
    for key, value in said:
        here = came
        for name in key.split("."):
            here = here[name]
        if key != "scheduler.params.total_num_steps":  # the child says 10, the Trainer max_steps
            assert here == json.loads(value), key


MODELS: list[dict[str, Any]] = [
    {"hidden_size": 64},
    {"hidden_sizes": [8, 96, 32]},
    {"text_config": {"hidden_size": 48}},
    {"vision_config": {"hidden_size": 48}},
    {},
]


@pytest.mark.parametrize("framework", ["hf", "accelerate"])
@pytest.mark.parametrize("values", MODELS)
def test_buckets_are_sized_by_the_model(deepspeed: Oracle, framework: FrameworkName, values: dict[str, Any]) -> None:
    config = {**SIZES, "zero_optimization": {"stage": 3, **BUCKETS}}
    came = deepspeed.through(framework, config=config, model=values)
    model = model_words.told(values, "config.json")
    (verdict,) = [v for v in verdicts(json.dumps(config), 1, model, framework=framework) if v.code == "CFG063"]
    if "error" in came:
        assert verdict.severity is Severity.ERROR
    else:
        zero = came["config"]["zero_optimization"]
        told = verdict.findings[0].message.partition("auto becomes ")[2]
        assert told == ", ".join(f"zero_optimization.{key} = {zero[key]}" for key in BUCKETS)


YAML = """compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
{mixed}num_machines: 1
num_processes: 1
machine_rank: 0
main_process_port: 0
deepspeed_config:
  zero3_init_flag: false
{rows}"""


def launched(deepspeed: Oracle, *rows: str, mixed: str = "") -> tuple[dict[str, Any], list[str]]:
    """What reaches DeepSpeed through ``accelerate launch``, and the codes that fail on the YAML."""
    text = YAML.format(mixed=f"mixed_precision: {mixed}\n" if mixed else "", rows="".join(f"  {row}\n" for row in rows))
    told = accelerate_config.parse(text, "acc.yaml")
    assert told is not None
    failed = [v.code for v in verdicts("{}", 1, told, framework="accelerate") if v.status is Status.FAILED]
    return deepspeed.through("accelerate", yaml=text), [c for c in failed if c in ("CFG046", "CFG047", "CFG048")]


def test_accelerate_drops_the_nvme_paths_of_its_yaml(deepspeed: Oracle) -> None:
    rows = "zero_stage: 3", "offload_param_device: nvme", "offload_param_nvme_path: /mnt/nvme"
    came, failed = launched(deepspeed, *rows)
    assert came["config"]["zero_optimization"]["offload_param"] == {"device": "nvme", "nvme_path": "none"}
    assert failed == ["CFG047"]


def test_accelerate_hands_the_rest_of_its_yaml_over(deepspeed: Oracle) -> None:
    rows = "zero_stage: 3", "gradient_clipping: 0.5", "gradient_accumulation_steps: 4", "offload_param_device: cpu"
    came, failed = launched(deepspeed, *rows, mixed="bf16")
    config = came["config"]
    assert config["zero_optimization"]["stage"] == 3
    assert config["zero_optimization"]["offload_param"]["device"] == "cpu"
    assert (config["gradient_clipping"], config["gradient_accumulation_steps"]) == (0.5, 4)
    assert config["bf16"]["enabled"] is True
    assert failed == []


@pytest.mark.parametrize(("row", "mixed"), [("zero_stage: 2", ""), ("", "bf16"), ("", "'no'")])
def test_accelerate_stops_where_its_yaml_and_a_file_both_speak(
    deepspeed: Oracle, tmp_path: Path, row: str, mixed: str
) -> None:
    file = tmp_path / "ds.json"
    file.write_text(json.dumps({**SIZES, "zero_optimization": TWO}))
    came, failed = launched(deepspeed, f"deepspeed_config_file: {file}", *([row] if row else []), mixed=mixed)
    assert "will be ignored" in came["error"]
    assert failed == ["CFG046"]
