"""What people hand over by mistake, and outputs that take nothing: one clear sentence, the right exit code, no traceback."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import DS_REPORT, broken, dsdoctor, environment, record

POSIX = pytest.mark.skipif(os.name != "posix", reason="files, devices and rights of POSIX")
LINUX = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full and /proc are Linux's")
NO_ROOT = pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read and write everything")


def refused(folder: Path, *arguments: object, **variables: str) -> str:
    """The one sentence of a command that is a mistake."""
    done = dsdoctor(*arguments, cwd=folder, **variables)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("dsdoctor: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def program(folder: Path, text: str) -> Path:
    file = folder / "program"
    file.write_text(text)
    file.chmod(0o755)
    return file


@POSIX
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\nexit 3\n", "exit code 3"),
        ("#!/bin/sh\nexit 0\n", "it said nothing"),
        (f"#!{sys.executable}\nprint('hi')\n", "it said 'hi'"),
        (f"#!{sys.executable}\nraise SystemExit('no licence')\n", "no licence"),
        ("\x7fELF junk", "is no Python"),
        ("#!/no/such/interpreter\n", "is no Python"),
    ],
)
def test_a_program_that_is_no_python(tmp_path: Path, text: str, words: str) -> None:
    told = refused(tmp_path, "check", "--python", program(tmp_path, text))
    assert str(tmp_path / "program") in told
    assert words in told


@POSIX
def test_a_text_file_a_folder_and_nothing_in_place_of_a_python(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert "is no Python" in refused(tmp_path, "check", "--python", "./notes.txt")
    assert "without a Python" in refused(tmp_path, "check", "--python", tmp_path)
    assert "no such program" in refused(tmp_path, "check", "--python", "./gone")


@pytest.mark.parametrize(
    ("option", "wrong", "meant"),
    [
        ("--only", "TORCH05", "TORCH0"),
        ("--only", "torhc", "TORCH"),
        ("--skip", "CUDA01,HOST", "CUDA0"),
        ("--only", "zzz", ""),
    ],
)
def test_an_unknown_code_offers_the_nearest(tmp_path: Path, option: str, wrong: str, meant: str) -> None:
    told = refused(tmp_path, "check", option, wrong, "--snapshot", record(tmp_path))
    assert wrong.split(",")[0].upper() in told
    assert (f"did you mean {meant}" in told) if meant else ("did you mean" not in told)


@LINUX
def test_files_that_open_and_cannot_be_read(tmp_path: Path) -> None:
    for option in ("--snapshot", "--ds-report"):
        assert "/proc/self/mem cannot be read" in refused(tmp_path, "check", option, "/proc/self/mem")


@NO_ROOT
@POSIX
@pytest.mark.parametrize("option", ["--snapshot", "--ds-report"])
def test_files_of_somebody_else(tmp_path: Path, option: str) -> None:
    file = record(tmp_path)
    file.chmod(0)
    assert "cannot be read: Permission denied" in refused(tmp_path, "check", option, file)


def test_a_folder_without_a_machine_in_it_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "folder holds no facts.json" in refused(tmp_path, "check", "--snapshot", "folder")
    assert "folder cannot be read" in refused(tmp_path, "check", "--ds-report", "folder")


def test_a_huge_file_is_no_ds_report(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as file:
        file.truncate(100_000_000)
    for option in ("--ds-report", "--snapshot"):
        assert "huge.txt is larger than any" in refused(tmp_path, "check", option, "huge.txt")


def test_a_ds_report_in_another_encoding_is_read(tmp_path: Path) -> None:
    wanted = json.loads(dsdoctor("check", "--json", "--ds-report", DS_REPORT, cwd=tmp_path).stdout)
    text = DS_REPORT.read_text("utf-8").replace("DeepSpeed general", "DeepSp\xe9\xe9d d\xe9j\xe0 vu\nDeepSpeed general")
    for encoding in ("latin-1", "utf-8-sig"):
        (tmp_path / "report.txt").write_bytes(text.encode(encoding))
        done = dsdoctor("check", "--json", "--ds-report", "report.txt", cwd=tmp_path)
        assert [v["status"] for v in json.loads(done.stdout)["verdicts"]] == [v["status"] for v in wanted["verdicts"]]


@pytest.mark.parametrize("content", [None, b"", bytes(range(256)), b"\xff\xfe\x00", b"[1]", b'{"a": ', b"{}" * 9])
def test_a_config_that_is_none_leaves_the_rest_of_the_report(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "ds.json").write_bytes(content)
    done = dsdoctor("check", "--json", "--config", "ds.json", "--snapshot", record(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    verdicts = {v["code"]: v for v in json.loads(done.stdout)["verdicts"]}
    assert verdicts["CFG001"]["status"] == "failed"
    assert "ds.json" in verdicts["CFG001"]["findings"][0]["message"]
    assert verdicts["TORCH005"]["status"] == "passed"


def test_a_folder_in_place_of_a_config(tmp_path: Path) -> None:
    done = dsdoctor("check", "--config", tmp_path, "--snapshot", record(tmp_path), cwd=tmp_path)
    assert done.returncode == 1
    assert "it is a folder" in done.stdout


@pytest.mark.parametrize("home", [None, "", "relative", "/no/such/home"])
def test_a_home_that_is_not_there_costs_nothing(tmp_path: Path, home: str | None) -> None:
    variables = environment() if home is None else environment(HOME=home)
    if home is None:
        variables.pop("HOME", None)
    for arguments in (["check", "--static"], ["check", "--format", "markdown", "--snapshot", str(record(tmp_path))]):
        done = subprocess.run(
            [sys.executable, "-m", "dsdoctor", *arguments], cwd=tmp_path, env=variables, capture_output=True, timeout=60
        )
        assert done.returncode in (0, 1), done.stderr
        assert b"Traceback" not in done.stderr
        assert b"crashed" not in done.stderr


@LINUX
def test_a_folder_that_takes_no_file_costs_nothing_and_is_named_when_asked_to(tmp_path: Path) -> None:
    file = record(tmp_path, broken())
    cwd = Path("/proc")  # nobody writes here, root neither
    assert dsdoctor("check", "--snapshot", file, cwd=cwd).returncode == 1
    assert "report.txt cannot be written" in refused(cwd, "check", "-o", "report.txt", "--snapshot", file)
    assert "copy.json cannot be written" in refused(cwd, "snapshot", "copy.json", "--snapshot", file)


EVERYTHING = (["check", "--snapshot", "machine.json"], ["check", "--json", "--snapshot", "machine.json"], ["list"], ["schema"],
              ["explain", "TORCH005"], ["snapshot", "-", "--snapshot", "machine.json"], ["--help"], ["--version"])  # fmt: skip


@LINUX
@pytest.mark.parametrize("arguments", EVERYTHING, ids=" ".join)
def test_a_full_disk_behind_stdout_is_said_and_is_no_defect_of_ours(tmp_path: Path, arguments: list[str]) -> None:
    record(tmp_path)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dsdoctor", *arguments],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 3
    assert done.stderr.decode() == f"dsdoctor: the result cannot be written: {os.strerror(errno.ENOSPC)}\n"


@POSIX
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(
    "arguments", ["check --snapshot machine.json", "check --only NOPE --snapshot machine.json", "list"]
)
def test_a_closed_stdout_or_stderr_changes_no_exit_code(tmp_path: Path, arguments: str, closed: str) -> None:
    record(tmp_path)
    lines = [f"'{sys.executable}' -m dsdoctor {arguments} {end}" for end in ("", closed)]
    whole, cut = (
        subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment(), capture_output=True) for line in lines
    )
    assert cut.returncode == whole.returncode
    first, second = (re.sub(rb" in [0-9.]+ s\.", b"", done.stdout) for done in (whole, cut))
    assert second in (b"", first)
    assert cut.stderr in (b"", whole.stderr)


@POSIX
def test_a_bare_ascii_locale_is_enough(tmp_path: Path) -> None:
    bare = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    name = "caf\xe9.json"
    record(tmp_path, broken(), name)
    for form in ("text", "json", "markdown"):
        done = dsdoctor("check", "--format", form, "--snapshot", name, cwd=tmp_path, **bare)
        assert done.returncode == 1
        assert done.stdout.isascii()
    assert refused(tmp_path, "check", "--snapshot", "caf\xe9-gone.json", **bare).isascii()
