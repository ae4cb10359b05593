"""The small commands: explain, list, schema, completion, help."""

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from dsdoctor import __version__
from dsdoctor.cli import COMMANDS, root
from tests.cli.program import dsdoctor


def test_explain_a_check_and_a_cause(tmp_path: Path) -> None:
    check = dsdoctor("explain", "torch005", cwd=tmp_path)
    assert check.returncode == 0
    assert check.stdout.startswith("TORCH005: CUDA starts in torch\n")
    cause = next(line.split()[1].rstrip(":") for line in check.stdout.splitlines() if line.startswith("cause "))
    told = dsdoctor("explain", cause, cwd=tmp_path)
    assert told.stdout.startswith(f"{cause}: ")
    assert "TORCH005" in told.stdout


def test_explain_an_unknown_name_is_2_with_the_nearest(tmp_path: Path) -> None:
    done = dsdoctor("explain", "TORCH05", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dsdoctor: TORCH05 is no check and no cause; did you mean TORCH0")
    assert done.stderr.count("\n") == 1
    assert "is no check" in dsdoctor("explain", "\x1b[31m%%", cwd=tmp_path).stderr


def test_list_names_every_check_once() -> None:
    lines = CliRunner().invoke(root, ["list"]).stdout.splitlines()
    assert "TORCH005  error    CUDA starts in torch" in lines
    codes = [line.split()[0] for line in lines]
    assert codes == sorted(set(codes))


def test_list_json_tells_the_same() -> None:
    rows = json.loads(CliRunner().invoke(root, ["list", "--json"]).stdout)
    assert {"code", "family", "title", "severity", "causes"} <= rows[0].keys()
    plain = CliRunner().invoke(root, ["list"]).stdout.splitlines()
    assert [r["code"] for r in rows] == [line.split()[0] for line in plain]


def test_list_markdown_is_the_catalogue() -> None:
    shown = CliRunner().invoke(root, ["list", "--markdown"]).stdout
    assert "### TORCH" in shown
    assert "| TORCH005 | CUDA starts in torch | error |" in shown


def test_schema_is_a_valid_schema() -> None:
    schema = json.loads(CliRunner().invoke(root, ["schema"]).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_dsdoctor(shell: str) -> None:
    shown = CliRunner().invoke(root, ["completion", shell])
    assert shown.exit_code == 0
    assert f"_DSDOCTOR_COMPLETE={shell}_complete" in shown.stdout


def test_completion_completes_commands(tmp_path: Path) -> None:
    variables = {"_DSDOCTOR_COMPLETE": "bash_complete", "COMP_WORDS": "dsdoctor sn", "COMP_CWORD": "1"}
    assert "plain,snapshot" in dsdoctor(cwd=tmp_path, **variables).stdout


def test_completion_of_another_shell_is_2() -> None:
    assert CliRunner().invoke(root, ["completion", "tcsh"]).exit_code == 2


def test_help_and_version() -> None:
    shown = CliRunner().invoke(root, ["--help"]).stdout
    assert [name for name in COMMANDS if f"  {name} " not in shown] == []
    assert "Exit codes: 0" in shown
    assert CliRunner().invoke(root, ["--version"]).stdout == f"dsdoctor {__version__}\n"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    shown = CliRunner().invoke(root, [name, "--help"])
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"Usage: root {name}")


def test_list_causes_tells_which_checks_see_them() -> None:
    lines = CliRunner().invoke(root, ["list", "--causes"]).stdout.splitlines()
    assert "causes that can be seen before a run have a check" in lines[-1]
    rows = json.loads(CliRunner().invoke(root, ["list", "--causes", "--json"]).stdout)
    assert [row["cause"] for row in rows] == [line.split()[0] for line in lines[:-1]]
    assert any("TORCH005" in row["checks"] for row in rows)


def test_explain_keeps_to_a_narrow_terminal(tmp_path: Path) -> None:
    lines = dsdoctor("explain", "torch005", cwd=tmp_path, COLUMNS="60").stdout.splitlines()
    assert max(map(len, lines[2:5])) <= 60
