"""What happens when something goes wrong around a command: sentences, exit codes, notes, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsdoctor.cli import root
from dsdoctor.cli.notes import notes
from dsdoctor.request import Request
from dsdoctor.settings import Settings
from tests.cli.program import broken, dsdoctor, environment, record
from tests.render.reports import crashing, passing, report

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals, shell scripts and terminals of POSIX")


def test_bare_dsdoctor_prints_help_and_is_no_mistake() -> None:
    shown = CliRunner().invoke(root, [])
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout == CliRunner().invoke(root, ["--help"]).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json", "--format", "html"],
        ["--static", "--smoke"],
        ["--smoke", "--snapshot", "x.json"],
        ["--smoke", "--ds-report", "x.txt"],
        ["--snapshot", "x.json", "--ds-report", "x.txt"],
    ],
)
def test_options_that_contradict_each_other_are_2(tmp_path: Path, arguments: list[str]) -> None:
    done = dsdoctor("check", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "contradict each other" in done.stderr
    assert [a for a in arguments if a.startswith("--") and a not in done.stderr] == []


@pytest.mark.parametrize("command", ["check", "list", "explain", "schema"])
def test_a_broken_installation_is_one_sentence_and_3(tmp_path: Path, command: str) -> None:
    (tmp_path / "msgspec").mkdir()
    (tmp_path / "msgspec" / "__init__.py").write_text("raise ImportError('half \\x1b[31man install')\n")
    argument = ["TORCH005"] if command == "explain" else []
    done = dsdoctor(command, *argument, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("dsdoctor: dsdoctor itself failed (ImportError: half an install); please report it")
    assert done.stderr.count("\n") == 1


def test_the_traceback_is_there_on_demand(tmp_path: Path) -> None:
    (tmp_path / "msgspec").mkdir()
    (tmp_path / "msgspec" / "__init__.py").write_text("raise ImportError('half an install')\n")
    variables = environment(PYTHONPATH=str(tmp_path), DSDOCTOR_DEBUG="1")
    done = subprocess.run([sys.executable, "-m", "dsdoctor", "list"], cwd=tmp_path, env=variables, capture_output=True)
    assert done.returncode == 3
    assert b"Traceback" in done.stderr
    assert b"dsdoctor: dsdoctor itself failed" in done.stderr


def test_notes_name_a_crash_and_missing_plugins_but_text_says_the_latter_itself() -> None:
    import msgspec

    odd = msgspec.structs.replace(report(crashing, passing), problems=("plug-in x\x1b[31m is broken",))
    crash = "a check crashed (RUN001: ZeroDivisionError: by zero); this is a defect of dsdoctor, please report it"
    assert list(notes(odd, Request(), "json")) == [crash, "plug-in x is broken"]
    assert list(notes(odd, Request(), "text")) == [crash]


def test_notes_name_codes_in_the_settings_that_no_check_has() -> None:
    wanted = Settings(ignored={"PY01": "x", "PY001": "y"}, source="dsdoctor.toml")
    told = list(notes(report(passing), Request(settings=wanted), "text"))
    assert told == ["dsdoctor.toml: no check is called PY01; did you mean PY001?"]
    assert list(notes(report(passing), Request(settings=wanted, only=("PY",)), "text")) == []


def test_notes_go_to_stderr_and_change_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "dsdoctor.toml").write_text('severity = {TORCH05 = "info"}\n')
    done = dsdoctor("check", "--json", "--snapshot", record(tmp_path, broken()), cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["outcome"] == "problems"
    assert "no check is called TORCH05; did you mean TORCH0" in done.stderr


def slow_python(folder: Path) -> tuple[Path, Path]:
    """A patient whose live probe never answers, and the file that it makes when it has come so far."""
    reached, program = folder / "reached", folder / "python"
    hang = f"case \"$*\" in *live.py*) : > '{reached}'; exec sleep 600;; esac\n"
    program.write_text(f"#!/bin/sh\n{hang}exec '{sys.executable}' \"$@\"\n")
    program.chmod(0o755)
    return program, reached


@POSIX
@pytest.mark.parametrize("form", ["text", "json"])
def test_ctrl_c_prints_what_was_known_and_ends_in_130(tmp_path: Path, form: str) -> None:
    program, reached = slow_python(tmp_path)
    arguments = [sys.executable, "-m", "dsdoctor", "check", "--python", str(program), "--format", form]
    process = subprocess.Popen(
        arguments, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not reached.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = (stream.decode("utf-8") for stream in process.communicate(timeout=60))
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    if form == "json":
        document = json.loads(out)
        assert document["interrupted"] is True
        assert document["facts"]["python"]["executable"] == str(program)
        assert document["facts"]["torch_live"] is None  # cut off by the user, not ended by the system
        assert "SIGKILL" not in out
    else:
        assert "Interrupted: this is what was known by then." in out
        assert out.endswith("Next: run `dsdoctor check` again and let it end.\n")


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """What ``dsdoctor check ARGUMENTS`` writes to a stderr that is a terminal."""
    import pty

    ours, theirs = pty.openpty()
    variables = environment(TERM="xterm")
    command = [sys.executable, "-m", "dsdoctor", "check", "--snapshot", str(record(folder)), *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, stdout=subprocess.DEVNULL, stderr=theirs)
    assert done.returncode == 0
    os.write(theirs, b"END")
    os.close(theirs)
    shown = b""
    while not shown.endswith(b"END"):
        shown += os.read(ours, 65536)
    os.close(ours)
    return shown[:-3].decode("utf-8")


@POSIX
def test_progress_is_shown_for_text_and_files_only(tmp_path: Path) -> None:
    assert "examining" in on_a_terminal(tmp_path)
    assert "examining" in on_a_terminal(tmp_path, "--json", "-o", "report.json")
    assert on_a_terminal(tmp_path, "--json") == ""
