"""0 nothing that counts, 1 findings, 2 wrong usage, 3 the doctor failed, 130 interrupted."""

import json
from pathlib import Path

import msgspec
import pytest

from dsdoctor.cli.exit_codes import exit_code
from dsdoctor.model import Severity
from tests.cli.program import broken, dsdoctor, record, windows
from tests.render.reports import crashing, failing, finding, mixed, passing, report


def one_sentence(stderr: str) -> str:
    assert stderr.startswith("dsdoctor: ")
    assert stderr.count("\n") == 1
    return stderr


@pytest.mark.parametrize(("fail_on", "expected"), [([], 1), (["--fail-on", "warning"], 1), (["--fail-on", "never"], 0)])
@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "github", "markdown", "html"])
def test_errors_end_in_1_in_every_format(tmp_path: Path, form: str, fail_on: list[str], expected: int) -> None:
    file = record(tmp_path, broken())
    assert dsdoctor("check", "--format", form, *fail_on, "--snapshot", file, cwd=tmp_path).returncode == expected


def test_warnings_count_only_when_asked_for(tmp_path: Path) -> None:
    arguments = ["check", "--only", "HOST", "--snapshot", record(tmp_path, windows())]
    assert dsdoctor(*arguments, cwd=tmp_path).returncode == 0
    assert dsdoctor(*arguments, "--fail-on", "warning", cwd=tmp_path).returncode == 1


def test_of_a_report() -> None:
    assert exit_code(mixed(), "error") == 1
    assert exit_code(mixed(), "never") == 0
    assert exit_code(report(passing), "warning") == 0
    assert exit_code(report(failing("MEM001", finding(), severity=Severity.INFO)), "warning") == 0
    assert exit_code(report(crashing), "never") == 3
    assert exit_code(msgspec.structs.replace(mixed(), interrupted=True), "error") == 130


def test_an_ignored_code_does_not_count() -> None:
    broken_report = [failing("CUDA001", finding()), passing]
    assert exit_code(report(*broken_report), "error") == 1
    assert exit_code(report(*broken_report, ignored={"CUDA001": "known"}), "error") == 0


def test_an_ignored_code_of_the_settings_does_not_count(tmp_path: Path) -> None:
    settings = '[tool.dsdoctor]\nignore = [{code = "TORCH005", reason = "built elsewhere"}]\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    done = dsdoctor("check", "--only", "TORCH005,TORCH001", "--snapshot", record(tmp_path, broken()), cwd=tmp_path)
    assert done.returncode == 0
    assert "Ignored by your settings" in done.stdout
    assert "reason: built elsewhere" in " ".join(done.stdout.split())


def test_fail_on_of_the_settings_and_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "dsdoctor.toml").write_text('fail-on = "never"\n')
    arguments = ["check", "--snapshot", record(tmp_path, broken())]
    assert dsdoctor(*arguments, cwd=tmp_path).returncode == 0
    assert dsdoctor(*arguments, "--fail-on", "error", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('ignore = ["NET001"]', ["dsdoctor.toml", "NET001", "reason"]),
        ('fial-on = "error"', ["dsdoctor.toml", "'fial-on'", "did you mean 'fail-on'"]),
        ('fail-on = "sometimes"', ["dsdoctor.toml", "fail-on", "'sometimes'"]),
        ('severity = {NET001 = "fatal"}', ["dsdoctor.toml", "severity", "NET001", "'fatal'"]),
        ('purpose = "gaming"', ["dsdoctor.toml", "purpose", "'gaming'", "single-gpu"]),
        ("python = 3", ["dsdoctor.toml", "python"]),
        ("not toml", ["dsdoctor.toml"]),
    ],
)
def test_bad_settings_are_2_and_name_file_and_key(tmp_path: Path, settings: str, words: list[str]) -> None:
    (tmp_path / "dsdoctor.toml").write_text(settings)
    done = dsdoctor("check", "--snapshot", record(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert [w for w in words if w not in one_sentence(done.stderr)] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "NOPE1"], ["NOPE1", "dsdoctor list"]),
        (["--skip", "nope"], ["NOPE", "dsdoctor list"]),
        (["--static", "--smoke"], ["--static", "--smoke"]),
        (["-o", "no-such-folder/report.txt"], ["no-such-folder/report.txt", "cannot be written"]),
    ],
)
def test_wrong_usage_is_2_in_one_sentence(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    done = dsdoctor("check", *arguments, "--snapshot", record(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert [w for w in words if w not in one_sentence(done.stderr)] == []


def test_snapshots_that_cannot_be_used(tmp_path: Path) -> None:
    whole = record(tmp_path).read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "junk.json").write_bytes(bytes(range(256)))
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "future.json").write_text(json.dumps({**json.loads(whole), "schema_version": 99}))
    (tmp_path / "wrong.json").write_text(json.dumps({**json.loads(whole), "host": {"system": 3}}))
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "folder").mkdir()
    wanted = {
        "missing.json": "cannot be read", "cut.json": "not valid JSON", "junk.json": "not valid JSON",
        "empty.json": "not valid JSON", "future.json": "snapshot schema 99", "wrong.json": "$.host",
        "list.json": "no schema_version", "folder": "holds no facts.json",
    }  # fmt: skip
    for name, words in wanted.items():
        done = dsdoctor("check", "--snapshot", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), name
        assert name in one_sentence(done.stderr)
        assert words in done.stderr


def test_a_ds_report_that_is_not_there(tmp_path: Path) -> None:
    done = dsdoctor("check", "--ds-report", "gone.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gone.txt cannot be read" in one_sentence(done.stderr)


def test_an_unknown_option_or_format_is_2(tmp_path: Path) -> None:
    assert dsdoctor("check", "--nonsense", cwd=tmp_path).returncode == 2
    assert dsdoctor("check", "--format", "pdf", cwd=tmp_path).returncode == 2
    assert dsdoctor("chekc", cwd=tmp_path).returncode == 2


def test_escapes_in_a_name_do_not_reach_the_terminal(tmp_path: Path) -> None:
    done = dsdoctor("check", "--snapshot", "\x1b[31mred.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
