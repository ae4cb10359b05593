"""Accelerate's config: a file that Accelerate wrote, what `accelerate env` shows of it, and PyYAML's word on single values."""

from pathlib import Path

from dsdoctor.readers import accelerate_config

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
WRITTEN = (TRANSCRIPTS / "accelerate-config__1.15.yaml").read_text()


def test_a_written_file() -> None:
    config = accelerate_config.parse(WRITTEN, "default_config.yaml")
    assert config is not None
    assert config.problem is None
    assert config.get("deepspeed_config.zero_stage") == 3
    assert config.get("deepspeed_config.gradient_clipping") == 1.0
    assert config.get("deepspeed_config.zero3_init_flag") is True
    assert (config.get("num_processes"), config.get("downcast_bf16"), config.get("use_cpu")) == (8, "no", False)
    assert config.get("deepspeed_config.nothing", "absent") == "absent"
    assert config.where("deepspeed_config.zero_stage") == "default_config.yaml:10:3"
    assert config.where("distributed_type") == "default_config.yaml:11:1"


def test_values_as_pyyaml_reads_them() -> None:
    """The values on the right are those of PyYAML 6.0.4's safe_load."""
    values = {
        "a: 1e-5": "1e-5", "b: 1.0e-05": 1e-05, "c: yes": True, "d: 'it''s'": "it's", 'e: "two\\twords"': "two\twords", "f: ~": None,
        "g: {}": {}, "h: []": [], "i: -3": -3, "j: +1.5": 1.5, "k: 012x": "012x", "l: 0.0.0.0": "0.0.0.0", "o: null": None,
        "m: plain words  # a comment": "plain words", "n: http://host:29500": "http://host:29500",
    }  # fmt: skip
    config = accelerate_config.parse(WRITTEN + "\n".join(values), "x.yaml")
    assert config is not None
    assert config.problem is None
    assert {line: config.get(line[0], "absent") for line in values} == values


def test_lists_and_margins() -> None:
    text = "see\n```yaml\n  compute_environment: LOCAL_MACHINE\n  tpu_env:\n  - A=1\n  - B\n  distributed_type: NO\n  gpu_ids: all\n```\n"
    config = accelerate_config.parse(text, "pasted")
    assert config is not None
    assert config.values == {
        "compute_environment": "LOCAL_MACHINE",
        "tpu_env": ["A=1", "B"],
        "distributed_type": False,
        "gpu_ids": "all",
    }
    assert config.where("gpu_ids") == "pasted:8:3", "fences are lines too"


def test_what_accelerate_env_shows() -> None:
    config = accelerate_config.parse((TRANSCRIPTS / "accelerate-env__1.15.txt").read_text(), "pasted")
    assert config is not None
    assert config.get("deepspeed_config.offload_optimizer_device") == "cpu"
    assert (config.get("mixed_precision"), config.get("num_processes"), config.get("debug")) == ("bf16", 8, False)


def test_what_is_not_taken_is_said() -> None:
    config = accelerate_config.parse(
        "distributed_type: DEEPSPEED\nnum_machines: 1\nmachine_rank: 0\ndeepspeed_config: {zero_stage: 3}\ndebug: false\n",
        "x",
    )
    assert config is not None
    assert config.problem == "line 4: a value that begins with { is not read here"
    assert config.values == {"distributed_type": "DEEPSPEED", "num_machines": 1, "machine_rank": 0}


def test_other_texts_are_none() -> None:
    assert accelerate_config.parse("version: 3\nservices:\n  web:\n    debug: true\n", "x") is None
    assert accelerate_config.parse('{"zero_optimization": {"stage": 3}}', "x") is None
