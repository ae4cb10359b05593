"""`dsdoctor ops` as its user meets it: the table, the JSON, exit codes, contradictions, terminals."""

import json
from pathlib import Path

import jsonschema
import pytest

from dsdoctor.facts import OpBuild, Snapshot
from dsdoctor.healthy import ds_config, environment, healthy, op_builds, trials
from tests.cli.program import ROOT, broken, dsdoctor, record

SICK = ROOT / "fixtures/ops/h200-arch-list-9.0a/facts.json"
FINE = ROOT / "fixtures/ops/h200-libaio/facts.json"


def test_the_table_of_a_recorded_machine(tmp_path: Path) -> None:
    done = dsdoctor("ops", "--snapshot", SICK, cwd=tmp_path, COLUMNS="80")
    assert done.stderr == ""
    rows = {line[2:].split()[0]: line for line in done.stdout.splitlines() if "[OKAY]" in line}
    assert rows["fused_adam"].startswith("* ")
    assert rows["cpu_adam"].startswith("  ")
    assert "(cause: arch-list-suffix-crash)" in " ".join(done.stdout.split())
    assert "\x1b" not in done.stdout


def test_json_is_the_whole_report_and_keeps_to_the_schema(tmp_path: Path) -> None:
    done = dsdoctor("ops", "--snapshot", SICK, "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    schema = json.loads(dsdoctor("schema", cwd=tmp_path).stdout)
    jsonschema.Draft202012Validator(schema).validate(document)
    by_name = {op["name"]: op for op in document["ops"]}
    assert by_name["fused_adam"]["state"] == "fails"
    assert by_name["fused_adam"]["cause"] == "arch-list-suffix-crash"
    assert by_name["fused_adam"]["proof"] == "ran"
    assert by_name["fused_adam"]["differs"]
    assert by_name["cpu_adam"]["state"] == "builds"
    assert done.stderr == ""


def test_names_narrow_the_table_and_not_the_json(tmp_path: Path) -> None:
    shown = dsdoctor("ops", "dc", "utils", "--snapshot", SICK, cwd=tmp_path)
    assert "fused_adam" not in shown.stdout
    assert "2 ops: 1 builds, 1 fails" in shown.stdout
    assert shown.returncode == 1
    document = json.loads(dsdoctor("ops", "utils", "--snapshot", SICK, "--json", cwd=tmp_path).stdout)
    assert len(document["ops"]) > 2


@pytest.mark.parametrize(("typed", "meant"), [("fused_adm", "fused_adam"), ("FusedAdam", "fused_adam")])
def test_an_unknown_op_is_2_with_the_nearest(tmp_path: Path, typed: str, meant: str) -> None:
    done = dsdoctor("ops", typed, "--snapshot", SICK, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dsdoctor: no op is called {typed}; did you mean {meant}?\n"


def test_a_name_that_is_near_nothing_lists_what_there_is(tmp_path: Path) -> None:
    done = dsdoctor("ops", "xxxxxx\x1b[31m", "--snapshot", SICK, cwd=tmp_path)
    assert done.returncode == 2
    assert "cpu_adam" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("other", [("--static",), ("--snapshot", str(SICK))])
def test_a_build_is_done_here_and_now(tmp_path: Path, other: tuple[str, ...]) -> None:
    done = dsdoctor("ops", "--build", *other, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert other[0] in done.stderr
    assert done.stderr.count("\n") == 1


def exit_code(tmp_path: Path, snapshot: Snapshot, *names: str) -> int:
    return dsdoctor("ops", *names, "--snapshot", record(tmp_path, snapshot), cwd=tmp_path).returncode


def test_exit_0_when_what_is_needed_here_builds_whatever_else_fails(tmp_path: Path) -> None:
    done = dsdoctor("ops", "--snapshot", FINE, cwd=tmp_path)
    assert (done.returncode, " 4 fail" in done.stdout) == (0, True)
    assert exit_code(tmp_path, healthy(trials())) == 0


def test_exit_1_when_an_op_that_is_needed_or_named_fails(tmp_path: Path) -> None:
    letter = environment(TORCH_CUDA_ARCH_LIST="9.0a")
    assert exit_code(tmp_path, healthy(letter)) == 1
    assert exit_code(tmp_path, healthy(letter), "cpu_adam") == 0
    assert dsdoctor("ops", "fp_quantizer", "--snapshot", FINE, cwd=tmp_path).returncode == 1
    built = op_builds(OpBuild(name="cpu_adam", outcome="failed", first_error="error: no moon"))
    assert exit_code(tmp_path, healthy(trials(), built)) == 1


def test_the_config_says_what_is_needed(tmp_path: Path) -> None:
    letter = environment(TORCH_CUDA_ARCH_LIST="9.0a")
    offload = {"optimizer": {"type": "Adam"}, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    assert exit_code(tmp_path, healthy(letter, ds_config(offload))) == 0
    assert exit_code(tmp_path, healthy(letter, ds_config())) == 1
    file = tmp_path / "ds.json"
    file.write_text(json.dumps(offload), "utf-8")
    machine = record(tmp_path, healthy(letter))
    done = dsdoctor("ops", "--snapshot", machine, "--config", file, cwd=tmp_path, COLUMNS="100")
    assert done.returncode == 0
    assert "ds.json:" in done.stdout


def test_a_machine_without_deepspeed_is_one_sentence(tmp_path: Path) -> None:
    empty = healthy().replace(
        deepspeed=None, deepspeed_live=None, ds_report=None, op_builders=None, torch=None, torch_live=None
    )
    done = dsdoctor("ops", "--snapshot", record(tmp_path, empty), cwd=tmp_path)
    assert done.stdout.startswith("No op is known here")
    assert done.returncode == 3, "nothing was judged"


def test_colour_only_when_it_is_forced_and_never_against_no_color(tmp_path: Path) -> None:
    assert "\x1b" not in dsdoctor("ops", "--snapshot", SICK, cwd=tmp_path).stdout
    assert "\x1b[31mfails" in dsdoctor("ops", "--snapshot", SICK, cwd=tmp_path, FORCE_COLOR="1").stdout
    plain = dsdoctor("ops", "--snapshot", SICK, cwd=tmp_path, FORCE_COLOR="1", NO_COLOR="1").stdout
    assert "\x1b" not in plain


def test_a_terminal_that_knows_no_unicode_gets_ascii(tmp_path: Path) -> None:
    assert dsdoctor("ops", "--snapshot", SICK, cwd=tmp_path, PYTHONIOENCODING="ascii").stdout.isascii()


def test_escapes_in_facts_stay_out_of_the_table(tmp_path: Path) -> None:
    hostile = op_builds(OpBuild(name="fused_adam", outcome="failed", first_error="\x1b]0;owned\x07 error: no moon"))
    done = dsdoctor("ops", "--snapshot", record(tmp_path, broken().replace(op_builds=hostile)), cwd=tmp_path)
    assert "error: no moon" in done.stdout
    assert "\x1b" not in done.stdout


def test_help_says_what_a_build_takes(tmp_path: Path) -> None:
    shown = dsdoctor("ops", "--help", cwd=tmp_path).stdout
    for word in ("--build", "--all", "--jobs", "--clean", "Exit code"):
        assert word in shown
