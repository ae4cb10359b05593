"""`dsdoctor fit`: the question, its exit code, the file that it writes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from dsdoctor.cli import root
from dsdoctor.cli.fit_options import OPTIMIZERS, STRATEGIES
from dsdoctor.fit import strategies, training
from tests.cli.program import ROOT, dsdoctor

MACHINES = ROOT / "fixtures" / "machines"
H200, T4S, RTX = MACHINES / "h200", MACHINES / "kaggle-2xt4", MACHINES / "wsl2-rtx4090"
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "vocab_size": 32000, "max_position_embeddings": 4096,
}  # fmt: skip


def fit(*args: object) -> Result:
    return CliRunner(env={"COLUMNS": ""}).invoke(root, ["fit", *map(str, args)])


def answer(*args: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(fit(*args, "--json").stdout)
    return found


def model(folder: Path, **changed: object) -> Path:
    (folder / "config.json").write_text(json.dumps({**LLAMA, **changed}))
    return folder


def test_0_when_something_fits_1_when_nothing_does(tmp_path: Path) -> None:
    good = fit("--model", model(tmp_path), "--snapshot", H200)
    assert good.exit_code == 0, good.output
    assert "6.74 billion parameters (exact)" in " ".join(good.stdout.split())
    bad = fit("--model", tmp_path, "--snapshot", RTX)
    assert bad.exit_code == 1
    assert "Nothing fits here" in bad.stdout


def test_a_named_strategy_has_its_own_exit_code() -> None:
    asked = ("--params", "7B", "--activation-checkpointing", "--snapshot", H200)
    assert fit(*asked, "--strategy", "zero2-cpu", "--ram", "300G").exit_code == 0
    refused = fit(*asked, "--strategy", "ddp")
    assert refused.exit_code == 1
    assert "does not fit here" in refused.stdout


def test_a_machine_without_a_gpu_is_unknown_and_0() -> None:
    done = fit("--params", "1B", "--snapshot", MACHINES / "cpu-only-container")
    assert done.exit_code == 0
    assert "Whether it fits is not known" in done.stdout


def test_sizes_ask_about_a_machine_that_is_not_here() -> None:
    asked = ("--params", "1B", "--seq", 1024, "--snapshot", MACHINES / "cpu-only-container")
    assert answer(*asked, "--vram", "80G")["word"] == "fits"
    assert answer(*asked, "--vram", "2G")["word"] == "no"
    assert answer(*asked, "--vram", "80G", "--ram", "1G")["word"] == "no"


def test_the_cards_that_are_fewer_than_asked_are_said() -> None:
    done = fit("--params", "1B", "--snapshot", H200, "--gpus", 8)
    assert "8 GPUs are asked for, 1 are here" in " ".join(done.stdout.split())


def test_old_cards_train_in_fp16_unless_told(tmp_path: Path) -> None:
    made = answer("--params", "300M", "--snapshot", T4S)
    assert made["training"]["dtype"] == "fp16"  # type: ignore[index]
    assert "bf16 needs compute capability 8.0" in fit("--params", "300M", "--snapshot", T4S, "--dtype", "bf16").stdout


def test_a_short_model_is_asked_with_its_own_length(tmp_path: Path) -> None:
    made = answer("--model", model(tmp_path, max_position_embeddings=512), "--snapshot", H200)
    assert made["training"]["sequence"] == 512  # type: ignore[index]
    longer = fit("--model", tmp_path, "--snapshot", H200, "--seq", 1024)
    assert "512 positions" in longer.stdout


def test_an_unknown_architecture_is_counted_and_said(tmp_path: Path) -> None:
    done = fit("--model", model(tmp_path, model_type="zebra"), "--snapshot", H200)
    words = " ".join(done.stdout.split())
    assert done.exit_code == 0
    assert "zebra is not known here: counted like Llama" in words
    assert "parameters (estimated)" in words


def test_json_validates_against_the_schema(tmp_path: Path) -> None:
    schema = json.loads(CliRunner().invoke(root, ["schema", "fit"]).stdout)
    for machine in (H200, RTX, MACHINES / "mac-m2"):
        made = answer("--model", model(tmp_path), "--snapshot", machine)
        assert [error.message for error in Draft202012Validator(schema).iter_errors(made)] == []
        assert made["schema_version"] == 1
        assert len(made["fits"]) == len(strategies.STRATEGIES)  # type: ignore[arg-type]


def test_the_config_is_written_once_and_config_passes_it(tmp_path: Path) -> None:
    out = tmp_path / "ds config.json"
    asked = ("--params", "1B", "--snapshot", H200, "--write", out)
    done = fit(*asked)
    assert done.exit_code == 0, done.output
    assert "dsdoctor smoke --config '" in done.stdout
    judged = CliRunner().invoke(
        root, ["config", str(out), "--gpus", "1", "--fail-on", "warning", "--snapshot", str(H200)]
    )
    assert judged.exit_code == 0, judged.output
    out.write_text("mine")
    again = fit(*asked)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "without --force" in again.stderr
    assert out.read_text() == "mine"
    assert fit(*asked, "--force").exit_code == 0
    assert "zero_optimization" in out.read_text()


def test_nothing_is_written_when_nothing_fits(tmp_path: Path) -> None:
    out = tmp_path / "ds.json"
    done = fit("--params", "70B", "--snapshot", RTX, "--write", out)
    assert done.exit_code == 1
    assert "is not written: nothing fits" in done.stderr
    assert not out.exists()


def test_nothing_is_written_when_nothing_is_known_and_that_is_a_failure(tmp_path: Path) -> None:
    asked = ("--params", "1B", "--snapshot", MACHINES / "cpu-only-container", "--write", tmp_path / "ds.json")
    done = fit(*asked)
    assert done.exit_code == 1
    assert "not known" in done.stderr
    assert fit(*asked, "--strategy", "zero2").exit_code == 0
    assert "zero_optimization" in (tmp_path / "ds.json").read_text()


def test_a_config_for_a_trainer_goes_to_stdout_alone() -> None:
    done = fit("--params", "1B", "--snapshot", H200, "--strategy", "zero2", "--write", "-", "--framework", "hf")
    assert json.loads(done.stdout)["train_micro_batch_size_per_gpu"] == "auto"


def test_the_next_command_asks_the_same_question(tmp_path: Path) -> None:
    asked = ["--params", "1B", "--seq", "1024", "--activation-checkpointing", "--gpus", "2", "--snapshot", str(H200)]
    first = fit(*asked)
    line = next(line for line in first.stdout.splitlines() if line.startswith("  dsdoctor fit"))
    words = line.split()[2:]
    assert words[-2:] == ["--write", "ds_config.json"]
    assert fit(*words[:-2]).stdout == first.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "name the model"),
        (("--model", "m", "--params", "7B"), "name the model"),
        (("--params", "seven"), "is no size"),
        (("--params", "-7B"), "is no size"),
        (("--params", "7B", "--hidden", -1), "-1 hidden are no model"),
        (("--model", ".", "--layers", 3), "--layers: only with --params"),
        (("--model", "gone.json"), "there is no such file"),
        (("--params", "7B", "--vram", "much"), "--vram 'much' is no size"),
        (("--params", "7B", "--ram", "nan"), "is no size"),
        (("--params", "7B", "--snapshot", "gone.json"), "cannot be read"),
        (("--params", "7B", "--force"), "belong to --write"),
        (("--params", "7B", "--seq", -1), "--seq"),
        (("--params", "7B", "--strategy", "zero4"), "--strategy"),
    ],
)
def test_a_mistake_is_one_sentence_and_2(args: tuple[object, ...], says: str) -> None:
    done = fit(*args)
    assert done.exit_code == 2, done.output
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-4096", '"4096"', "1e999", "4096.5", "null", "[1]"])
def test_sizes_that_are_none_are_one_sentence(value: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA).replace('"hidden_size": 4096', f'"hidden_size": {value}'))
    done = fit("--model", file, "--snapshot", H200)
    assert done.exit_code == 2, done.output
    assert "hidden_size" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_options_know_every_strategy_and_optimizer() -> None:
    assert [plan.name for plan in strategies.STRATEGIES] == STRATEGIES
    assert tuple(OPTIMIZERS) == training.OPTIMIZERS


def test_this_machine_is_looked_at_when_no_other_is_named(tmp_path: Path) -> None:
    done = dsdoctor("fit", "--params", "100M", "--seq", "128", "--json", cwd=tmp_path)
    assert done.returncode in (0, 1)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["machine"]["origin"] == "this machine"
    assert found["machine"]["room"]["host"] > 0
