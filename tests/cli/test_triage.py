"""`dsdoctor triage` as a user meets it."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from dsdoctor.cli import root
from tests.cli.program import dsdoctor, piped

FATAL = "csrc/includes/context.h:10:10: fatal error: curand_kernel.h: No such file or directory\n"
LOG = "step 1: loss 0.7\n[rank1]: " + FATAL + "RuntimeError: Error building extension 'cpu_adam'\n"


def test_a_file_is_answered_with_cause_place_and_plan(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    done = dsdoctor("triage", "train.log", cwd=tmp_path)
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert "certain" in first
    assert "curand-header-missing" in first
    assert "train.log:2 rank 1" in done.stdout
    assert "Plan" in done.stdout
    assert "(CUDA" not in done.stdout, "nothing is said of a machine that the text does not tell of"


def test_a_pipe_and_a_dash_and_a_folder(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "attempt_0"
    logs.mkdir(parents=True)
    (logs / "rank0.log").write_text("[rank0]: RuntimeError: Connection reset by peer\n")
    (logs / "rank1.log").write_text(LOG)
    answers = [
        piped(LOG.encode(), "triage", cwd=tmp_path),
        piped(LOG.encode(), "triage", "-", cwd=tmp_path),
        dsdoctor("triage", "logs", cwd=tmp_path),
    ]
    assert [answer.returncode for answer in answers] == [1, 1, 1]
    assert all("curand-header-missing" in answer.stdout.splitlines()[0] for answer in answers)
    assert "standard input:2" in answers[0].stdout


def test_json_ranks_causes_with_confidence_and_evidence(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    done = dsdoctor("triage", "train.log", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    Draft202012Validator(json.loads(dsdoctor("schema", cwd=tmp_path).stdout)).validate(document)
    first = document["causes"][0]
    assert (first["cause"], first["evidence"][0]["where"]) == ("curand-header-missing", "train.log:2")
    assert 0.9 <= first["confidence"] <= 1
    assert document["story"]["chain"][0]["rank"] == 1
    assert document["facts"]["log"]["files"][0]["lines"] == 3


def test_nothing_wrong_is_exit_zero_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1: loss 0.7\nstep 2: loss 0.6\n")
    done = dsdoctor("triage", "train.log", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Nothing in this text says that a run fell.")


def test_what_is_not_recognised_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\nmy.own.Error: seven is no number\n")
    done = dsdoctor("triage", "train.log", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("Not recognised")
    assert "my.own.Error: seven is no number" in done.stdout
    assert "What to collect next" in done.stdout
    assert "Causes" not in done.stdout


@pytest.mark.parametrize("form", ["text", "markdown", "html", "github", "sarif", "junit"])
def test_text_of_a_log_is_data_in_every_format(tmp_path: Path, form: str) -> None:
    evil = "\x1b]0;owned\x07\x1b[31m[bold]<script>alert(1)</script>\u202e"
    (tmp_path / "train.log").write_text(f"{FATAL.rstrip()} {evil}\n{evil}Error: {evil}\nRuntimeError: {evil}\n")
    out = CliRunner().invoke(root, ["triage", str(tmp_path / "train.log"), "--format", form]).stdout
    assert "curand" in out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\u202e" not in out
    if form in ("html", "markdown"):
        assert "<script>" not in re.sub(r"`[^`\n]*`", "", out), "outside of a code span it would run"


@pytest.mark.parametrize("name", ["there-is-none.log", "empty-folder"])
def test_what_cannot_be_read_is_a_mistake_of_the_user(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty-folder").mkdir()
    done = dsdoctor("triage", name, cwd=tmp_path)
    assert done.returncode == 2
    assert name in done.stderr
    assert done.stdout == ""


def test_live_adds_the_facts_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    bare = getattr(sys, "_base_executable", sys.executable)  # without torch, whose import takes seconds
    done = dsdoctor("triage", "train.log", "--live", "--python", bare, "--json", cwd=tmp_path)
    facts = json.loads(done.stdout)["facts"]
    assert facts["log"]["matches"]
    assert facts["host"]["system"]
    assert facts["python"]["executable"]


def test_what_is_passed_on_names_nobody_and_no_format_holds_a_token(tmp_path: Path) -> None:
    home, token = os.path.expanduser("~"), "hf_" + "AbCdEfGhIj" * 3 + "KlMn"
    (tmp_path / "train.log").write_text(f"{FATAL}OSError: [Errno 2] No such file: '{home}/secret/data' with {token}\n")
    markdown = dsdoctor("triage", "train.log", "--format", "markdown", cwd=tmp_path).stdout
    facts = json.loads(dsdoctor("triage", "train.log", "--json", cwd=tmp_path).stdout)["facts"]
    text = dsdoctor("triage", "train.log", "-v", cwd=tmp_path).stdout
    assert f"{home}/secret" not in markdown + json.dumps(facts)
    assert f"{home}/secret" in text, "beside the machine a path is true"
    assert token not in markdown + text + json.dumps(facts)
