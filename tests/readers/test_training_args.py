"""TrainingArguments from JSON and YAML, and files that are none."""

from pathlib import Path

from dsdoctor.readers.framework_files import read_accelerate, read_training_args
from dsdoctor.readers.training_args import parse


def test_json_and_yaml_say_the_same() -> None:
    json = parse('{\n "learning_rate": 0.0003,\n "bf16": true\n}', "args.json")
    yaml = parse("# ours\nlearning_rate: 0.0003\nbf16: true\n", "args.yaml")
    assert json.values == yaml.values == {"learning_rate": 0.0003, "bf16": True}
    assert json.where("bf16") == "args.json:3:2"
    assert yaml.where("bf16") == "args.yaml:3:1"
    assert json.problem is yaml.problem is None


def test_values_follow_yaml_1_1() -> None:
    read = parse("learning_rate: 1e-4\nfp16: no\nrun_name: 'x: y'\nseed: 42\n", "args.yaml")
    assert read.values == {"learning_rate": "1e-4", "fp16": False, "run_name": "x: y", "seed": 42}


def test_what_is_no_file_of_arguments_says_why(tmp_path: Path) -> None:
    assert "folder" in (read_training_args(str(tmp_path)).problem or "")
    assert "no such file" in (read_training_args(str(tmp_path / "none.yaml")).problem or "")
    assert parse("", "args.yaml").problem == "it is empty"
    assert parse("{'a': 1}", "args.json").problem == "it is no plain JSON"
    assert parse('{"a": [', "args.json").problem is not None
    (tmp_path / "large.yaml").write_text("a: 1\n" * 300_000)
    assert "larger" in (read_training_args(str(tmp_path / "large.yaml")).problem or "")


def test_an_accelerate_config_from_disk(tmp_path: Path) -> None:
    file = tmp_path / "default_config.yaml"
    file.write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: bf16\n"
    )
    assert read_accelerate(str(file)).get("num_processes") == 2
    file.write_text("learning_rate: 1\n")
    assert "no Accelerate config" in (read_accelerate(str(file)).problem or "")
    assert "no such file" in (read_accelerate(str(tmp_path / "none.yaml")).problem or "")
