"""`dsdoctor config`: judge, mend, begin."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsdoctor.cli import root
from tests.cli.program import ROOT, dsdoctor

CONFIGS = ROOT / "fixtures" / "configs"
SICK = '{\n  // ours\n  "train_batch_size": "8",\n  "zero_optimisation": {"stage": 3}\n}\n'


def config(*args: object) -> Result:
    return CliRunner().invoke(root, ["config", *map(str, args)])


def test_a_good_file_is_0_and_a_bad_one_1_with_its_places() -> None:
    good = config(CONFIGS / "zero2_fp16.json", "--gpus", 8, "--deepspeed", "0.19.8")
    assert good.exit_code == 0, good.output
    bad = config(CONFIGS / "many_mistakes.json", "--deepspeed", "0.19.8")
    assert bad.exit_code == 1
    assert "many_mistakes.json:10:5: zero_optimization.stage is 4" in " ".join(bad.stdout.split())
    assert config(CONFIGS / "many_mistakes.json", "--fail-on", "never").exit_code == 0


def test_the_worst_of_several_files_counts() -> None:
    both = config(CONFIGS / "zero2_fp16.json", CONFIGS / "many_mistakes.json")
    assert both.exit_code == 1
    assert "train_batch_size 32 is no multiple" in " ".join(both.stdout.split())


def test_the_number_of_gpus_decides() -> None:
    assert config(CONFIGS / "zero2_fp16.json", "--gpus", 8).exit_code == 0
    assert config(CONFIGS / "zero2_fp16.json", "--gpus", 3).exit_code == 1


def test_files_of_frameworks_are_judged_with_it(tmp_path: Path) -> None:
    arguments = tmp_path / "args.yaml"
    arguments.write_text("output_dir: out\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 2\n")
    report = json.loads(config(CONFIGS / "zero2_fp16.json", "--training-args", arguments, "--json").stdout)
    found = {finding["cause"] for verdict in report["verdicts"] for finding in verdict["findings"]}
    assert "hf-ds-mismatch" in found


def test_a_patch_is_shown_and_only_written_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(SICK)
    shown = config(file, "--fix")
    assert '\n-  "train_batch_size": "8",\n' in shown.stdout
    assert '\n+  "train_batch_size": 8,\n' in shown.stdout
    assert file.read_text() == SICK
    assert config(file, "--fix", "--write").exit_code == 0
    assert file.read_text() == SICK.replace('"8"', "8").replace("optimisation", "optimization")
    assert config(file, "--fix").stdout == ""


def test_a_new_config_is_judged_sound(tmp_path: Path) -> None:
    made = config("--new", "--stage", 3, "--offload-param", "cpu", "--framework", "hf")
    file = tmp_path / "new.json"
    file.write_text(made.stdout)
    assert config(file, "--framework", "hf", "--fail-on", "warning").exit_code == 0
    assert json.loads(made.stdout)["zero_optimization"]["offload_param"] == {"device": "cpu"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "name a ds_config"),
        (("x.json", "--write"), "--write belongs to --fix"),
        (("x.json", "y.json", "--json"), "--json is for one file"),
        (("--new", "--stage", "2", "--offload-param", "cpu"), "at stage 3 only"),
        (("none.json", "--fix"), "there is no such file"),
    ],
)
def test_wrong_usage_is_2_with_a_sentence(args: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = dsdoctor("config", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_escapes_of_a_file_reach_no_screen(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{"\\u001b[2Jzero": 1, "train_batch_size": "8" /* \x1b[31m */}')
    assert "\x1b" not in config(file).stdout
    assert "\x1b" not in config(file, "--fix").stdout
