"""`dsdoctor config`: judge, mend, begin."""

import base64
import json
import os
import shlex
import stat
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dsdoctor.cli import root
from dsdoctor.cli.replacing import replace
from dsdoctor.facts import Unavailable
from dsdoctor.healthy import healthy
from dsdoctor.readers import opened
from dsdoctor.request import ExaminationError
from tests.cli.program import ROOT, dsdoctor, record

CONFIGS = ROOT / "fixtures" / "configs"
MISTAKES = CONFIGS / "many_mistakes.json"
GOOD = CONFIGS / "zero2_fp16.json"
SICK = '{\n  // ours\n  "train_batch_size": "8",\n  "zero_optimisation": {"stage": 3}\n}\n'
POSIX = pytest.mark.skipif(os.name != "posix", reason="links, pipes and rights of POSIX")


def config(*args: object, stdin: str | bytes = "", **variables: str) -> Result:
    return CliRunner(env={"COLUMNS": "", **variables}).invoke(root, ["config", *map(str, args)], input=stdin)


def told(*args: object, stdin: str | bytes = "") -> list[str]:
    """The lines of the screen that name a finding."""
    lines = config(*args, stdin=stdin).stdout.splitlines()
    return [line for line in lines if any(f": {word} CFG" in line for word in ("error", "warning", "info"))]


def findings(report: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(v["code"], f["cause"], f["message"]) for v in report["verdicts"] for f in v["findings"]}


def test_a_good_file_is_0_and_a_bad_one_1_with_its_places() -> None:
    good = config(GOOD, "--gpus", 8, "--deepspeed", "0.19.8")
    assert good.exit_code == 0, good.output
    assert f"{GOOD}: nothing is wrong (" in good.stdout
    assert "udged for DeepSpeed 0.19.8 (--deepspeed), 8 ranks." in good.stdout
    bad = config(MISTAKES, "--deepspeed", "0.19.8")
    assert bad.exit_code == 1
    assert f"{MISTAKES}:10:5: error CFG006 zero_optimization.stage is 4; allowed is one of 0, 1, 2, 3\n" in bad.stdout
    assert config(MISTAKES, "--fail-on", "never").exit_code == 0


def test_the_worst_of_several_files_counts_and_all_are_summed_up() -> None:
    both = config(GOOD, MISTAKES)
    assert both.exit_code == 1
    alone = json.loads(config(MISTAKES, "--json").stdout)["counts"]
    assert f"{alone['errors']} errors and {alone['warnings']} warnings in 1 of 2 files." in both.stdout
    assert f"{GOOD}: nothing is wrong" in both.stdout


def test_the_number_of_gpus_decides() -> None:
    assert config(GOOD, "--gpus", 8).exit_code == 0
    assert config(GOOD, "--gpus", 3).exit_code == 1


def test_what_was_not_given_is_asked_for_once(tmp_path: Path) -> None:
    screen = config(GOOD, CONFIGS / "zero3_nvme.json", "--deepspeed", "0.19.8").stdout
    for option in ("--gpus N", "--snapshot FILE"):
        assert screen.count(option) == 1
    more = config(GOOD, "--gpus", 8, "--deepspeed", "0.19.8").stdout
    assert "--gpus N" not in more
    assert "--deepspeed VERSION" not in more
    machine = record(tmp_path, healthy(deepspeed=Unavailable(kind="failed", detail="DeepSpeed is not installed")))
    assert config(GOOD, "--snapshot", machine).stdout.count("--deepspeed VERSION") == 1


def test_files_of_frameworks_are_judged_with_it(tmp_path: Path) -> None:
    arguments = tmp_path / "args.yaml"
    arguments.write_text("output_dir: out\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 2\n")
    report = json.loads(config(GOOD, "--training-args", arguments, "--json").stdout)
    assert "hf-ds-mismatch" in {cause for _, cause, _ in findings(report)}


def test_check_finds_the_same(tmp_path: Path) -> None:
    machine = record(tmp_path)
    for file in (MISTAKES, CONFIGS / "zero3_nvme.json", CONFIGS / "huggingface_auto.json"):
        here = json.loads(config(file, "--snapshot", machine, "--json").stdout)
        arguments = ["check", "--config", str(file), "--snapshot", str(machine), "--only", "CFG", "--json"]
        there = json.loads(CliRunner().invoke(root, arguments).stdout)
        assert findings(here) == findings(there) != set()
        assert [v["status"] for v in here["verdicts"]] == [v["status"] for v in there["verdicts"]]


def test_the_command_that_proves_a_mend_can_be_typed(tmp_path: Path) -> None:
    file = tmp_path / "my ds.json"
    file.write_text(SICK)
    model = tmp_path / "config.json"
    model.write_text('{"model_type": "llama", "hidden_size": 64, "torch_dtype": "bfloat16"}')
    given = ("--gpus", 3, "--nodes", 2, "--model", model, "--framework", "none", "--deepspeed", "0.19.8")
    first = json.loads(config(file, *given, "--json").stdout)
    (verify,) = {f["remedy"]["verify"] for v in first["verdicts"] for f in v["findings"]}
    again = CliRunner().invoke(root, [*shlex.split(verify)[1:], "--json"])
    assert findings(json.loads(again.stdout)) == findings(first)
    assert all(str(word) in shlex.split(verify) for word in given)


def test_standard_input_and_base64_are_read_as_the_file_is(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(SICK)
    want = [line.removeprefix(str(file)) for line in told(file)]
    assert [line.removeprefix("<stdin>") for line in told("-", stdin=SICK)] == want
    coded = base64.urlsafe_b64encode(SICK.encode()).decode()
    assert [line.removeprefix("<base64>") for line in told(coded)] == want
    assert "base64" in config(coded).stdout.splitlines()[-2]
    assert "there is no such file" in told("bm8gY29uZmln")[0], "base64 of what is no config"


def test_formats_for_ci_point_into_the_files() -> None:
    lines = config(MISTAKES, GOOD, "--gpus", 3, "--format", "github").stdout.splitlines()
    assert any(line.startswith(f"::error file={MISTAKES},line=10,col=5,title=CFG006") for line in lines)
    assert any(line.startswith(f"::error file={GOOD},line=2,col=3,title=CFG010") for line in lines)
    sarif = json.loads(config(MISTAKES, GOOD, "--gpus", 3, "--format", "sarif").stdout)["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in sarif]
    assert {place["artifactLocation"]["uri"].rpartition("/")[2] for place in places} == {MISTAKES.name, GOOD.name}
    assert all(place["region"]["startLine"] for place in places)
    marks = [result["partialFingerprints"]["dsdoctor/v1"] for result in sarif]
    assert len(set(marks)) == len(marks), "two files with one mistake are two alerts"
    junit = ElementTree.fromstring(config(MISTAKES, "--format", "junit").stdout)
    assert [case.get("name") for case in junit.iter("testcase") if case.find("failure") is not None]


def test_json_is_a_report_or_a_list_of_them(tmp_path: Path) -> None:
    one, two = json.loads(config(GOOD, "--json").stdout), json.loads(config(GOOD, MISTAKES, "--json").stdout)
    assert [r["facts"]["ds_config"]["path"] for r in two] == [str(GOOD), str(MISTAKES)]
    assert two[0]["counts"] == one["counts"]
    config(GOOD, "--json", "-o", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["counts"] == one["counts"]


def test_a_patch_is_shown_and_only_written_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(SICK)
    shown = config(file, "--fix")
    assert '\n-  "train_batch_size": "8",\n' in shown.stdout
    assert '\n+  "train_batch_size": 8,\n' in shown.stdout
    assert "not written" in shown.stderr
    assert (file.read_text(), shown.exit_code) == (SICK, 1), "the file is as bad as it was"
    written = config(file, "--fix", "--write")
    assert "no error and no warning is left" in written.stderr
    assert written.exit_code == 0
    assert file.read_text() == SICK.replace('"8"', "8").replace("optimisation", "optimization")
    again = config(file, "--fix", "--write")
    assert (again.stdout, again.exit_code) == ("", 0)
    assert "nothing that can safely be mended" in again.stderr


def test_what_a_mend_leaves_decides_and_is_told(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(MISTAKES.read_text())
    promised = sum("[--fix does it]" in line for line in config(file).stdout.splitlines())
    before = json.loads(config(file, "--json").stdout)["counts"]
    done = config(file, "--fix", "--write")
    after = json.loads(config(file, "--json").stdout)["counts"]
    assert done.exit_code == 1
    assert f"{after['errors']} errors and {after['warnings']} warning to mend by hand" in done.stderr
    fewer = before["errors"] + before["warnings"] - after["errors"] - after["warnings"]
    assert 0 < fewer == promised


@POSIX
def test_a_written_file_keeps_its_rights_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "ds.json"
    real.write_text(SICK)
    real.chmod(0o640)
    link.symlink_to(real)
    assert config(link, "--fix", "--write").exit_code == 0
    assert link.is_symlink()
    assert "optimization" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ds.json", "real.json"], "nothing is left beside it"


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text("{}")
    with pytest.raises(ExaminationError, match="changed while"):
        replace(str(file), SICK, "{ }")
    assert file.read_text() == "{}"
    with pytest.raises(ExaminationError, match="no file that can be written"):
        replace("<stdin>", SICK, "{ }")


def test_lean_prints_the_file_without_what_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(
        '{\n  "train_micro_batch_size_per_gpu": 4,\n  "bf16": {"enabled": true},\n  "zero_optimization": {\n'
        '    "stage": 2, // ours\n    "overlap_comm": true,\n    "stage3_max_live_parameters": 1e9,\n'
        '    "reduce_scatter": true\n  }\n}\n'
    )
    said = config(file, "--deepspeed", "0.19.8").stdout
    assert "lines 7-8 has no effect or says the default" in said
    lean = config(file, "--lean", "--deepspeed", "0.19.8")
    assert lean.exit_code == 0
    assert lean.stdout == "".join(
        line
        for line in file.read_text().replace("true,\n", "true\n", 2).splitlines(True)
        if "stage3" not in line and "scatter" not in line
    ).replace('"enabled": true}\n', '"enabled": true},\n')
    assert "stage3_max_live_parameters" in told(file, "-v", "--deepspeed", "0.19.8")[1]


def test_a_new_config_is_judged_sound(tmp_path: Path) -> None:
    made = config("--new", "--stage", 3, "--offload-param", "cpu", "--framework", "hf")
    file = tmp_path / "new.json"
    file.write_text(made.stdout)
    assert config(file, "--framework", "hf", "--fail-on", "warning").exit_code == 0
    assert json.loads(made.stdout)["zero_optimization"]["offload_param"] == {"device": "cpu"}


def test_a_new_config_says_what_was_wished(tmp_path: Path) -> None:
    wish = ("--new", "--stage", 3, "--offload-param", "nvme", "--nvme-path", "/mnt/fast", "--micro-batch", 6)
    config(*wish, "-o", tmp_path / "new.json")
    values = json.loads(config(tmp_path / "new.json", "--json").stdout)["facts"]["ds_config"]["values"]
    assert values["zero_optimization"]["offload_param"]["nvme_path"] == "/mnt/fast"
    assert values["train_micro_batch_size_per_gpu"] == 6


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "name a ds_config"),
        (("x.json", "--write"), "--write belongs to --fix"),
        (("x.json", "y.json", "--lean"), "--lean prints one FILE"),
        (("x.json", "--json", "--format", "sarif"), "contradict each other"),
        (("x.json", "--json", "--fix"), "leave --json and --format out"),
        (("-", "-"), "can be read once"),
        (("x.json", "--stage", "2"), "--stage belongs to --new"),
        (("--new", "x.json"), "leave x.json out"),
        (("--new", "--nvme-path", "/mnt"), "belongs to an offload to nvme"),
        (("--new", "--framework", "hf", "--micro-batch", "2"), "the script says it"),
        (("--new", "--stage", "2", "--offload-param", "cpu"), "at stage 3 only"),
        (("none.json", "--fix"), "there is no such file"),
        (("none.json", "--snapshot", "gone.json"), "gone.json cannot be read: No such file"),
    ],
)
def test_wrong_usage_is_2_with_a_sentence(args: tuple[str, ...], says: str) -> None:
    done = config(*args)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "there is no such file"),
        (b"", "it is empty"),
        (b"hello\n", "it holds a text"),
        (b"[1]", "it holds a list"),
        (b'{"a": 1,, "b": 2}', ':1:9: error CFG001 a key is expected here, not ","'),
        (b'{\n"a": NaN}', ":2:6: error CFG001"),
        (b'{"a": 1e999}', "the number is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "the number is too long"),
        (b'{"a":' * 10_000, "deeper than 100 levels"),
        (b" " * 50_000_000, "larger than 4 MiB"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "UTF-16"),
        (bytes(range(256)), "not UTF-8"),
        (b"zero_optimization:\n  stage: 2\n", "looks like YAML"),
        (b'{"a": "\x00"}', "a control character"),
    ],
)
def test_a_file_that_is_no_config_is_one_finding(tmp_path: Path, data: bytes | None, says: str) -> None:
    file = tmp_path / "ds.json"
    if data is not None:
        file.write_bytes(data)
    done = config(file)
    assert done.exit_code == 1
    assert len([line for line in done.stdout.splitlines() if "CFG" in line]) == 1
    assert says in done.stdout.splitlines()[0]
    assert max(map(len, done.stdout.splitlines())) < 300
    assert done.stderr == ""


def test_infinity_as_a_word_is_told_as_text_as_deepspeed_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{\n"train_batch_size": 8,\n"gradient_clipping": Infinity\n}\n')
    assert ':3:1: error CFG005 gradient_clipping is "Infinity"' in told(file)[0]


def test_a_folder_and_bad_files_beside_it_are_told(tmp_path: Path) -> None:
    assert "it is a folder" in told(tmp_path)[0]
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [1\n  b: {")
    for option in ("--accelerate", "--training-args"):
        done = config(GOOD, option, bad)
        assert done.exit_code in (0, 1)
        assert str(bad) in done.stdout
    assert config(GOOD, "--snapshot", bad).exit_code == 2


@POSIX
def test_a_pipe_is_read_and_a_silent_one_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "ds.json"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(GOOD.read_text()))
    writer.start()
    assert config(pipe).exit_code == 0
    writer.join()
    monkeypatch.setattr(opened, "PATIENCE_S", 0.1)
    assert "nothing came through it" in told(pipe)[0]


def test_escapes_of_a_file_reach_no_screen(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{"\\u001b[2Jzero": 1, "train_batch_size": "8" /* \x1b[31m \u202e */}')
    for arguments in ((), ("-v",), ("--fix",), ("--lean",), ("--format", "github")):
        said = config(file, *arguments).stdout
        assert not {"\x1b", "\u202e"} & set(said)


def test_it_is_coloured_and_wrapped_for_a_terminal_only(tmp_path: Path) -> None:
    piped = config(MISTAKES).stdout
    assert "\x1b" not in piped
    assert "\x1b[31;1merror CFG006\x1b[0m" in config(MISTAKES, FORCE_COLOR="1").stdout
    assert "\x1b" not in config(MISTAKES, FORCE_COLOR="1", NO_COLOR="1").stdout
    for columns in (60, 80, 120):
        narrow = config(MISTAKES, COLUMNS=str(columns)).stdout
        paths = [line for line in narrow.splitlines() if len(line) > columns]
        assert [line for line in paths if str(MISTAKES) not in line] == []
        assert _sentences(narrow) == _sentences(piped), "nothing is lost"


def _sentences(screen: str) -> list[str]:
    """The words of a screen without the lines of the file."""
    return " ".join(line for line in screen.splitlines() if " | " not in f"{line} ").split()


def test_the_program_itself_tells_it(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(SICK)
    done = dsdoctor("config", "ds.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith('ds.json:3:3: error CFG005 train_batch_size is "8"')
