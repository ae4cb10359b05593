"""`dsdoctor check`: what stands on stdout, what on stderr."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from dsdoctor.facts.snapshot import encode
from tests.cli.program import DS_REPORT, ROOT, broken, dsdoctor, environment, piped, record


def test_text_starts_with_the_machine_and_stderr_is_silent(tmp_path: Path) -> None:
    done = dsdoctor("check", "--snapshot", record(tmp_path), cwd=tmp_path)
    assert done.stdout.startswith("Ubuntu 24.04.3 LTS: 1 x NVIDIA H200")
    assert (done.returncode, done.stderr) == (0, "")


def test_json_is_the_only_thing_on_stdout_and_validates_against_the_schema_command(tmp_path: Path) -> None:
    done = dsdoctor("check", "--json", "--snapshot", record(tmp_path, broken()), cwd=tmp_path)
    schema = json.loads(dsdoctor("schema", cwd=tmp_path).stdout)
    document = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["outcome"] == "problems"
    assert done.stderr == ""


def test_dsdoctor_json_is_check_json(tmp_path: Path) -> None:
    file = record(tmp_path, broken())
    short, long = (dsdoctor(*start, "--json", "--snapshot", file, cwd=tmp_path) for start in ([], ["check"]))
    documents = [{**json.loads(done.stdout), "seconds": None} for done in (short, long)]
    assert documents[0] == documents[1]
    assert short.returncode == long.returncode == 1


def test_a_json_report_can_be_judged_again(tmp_path: Path) -> None:
    first = dsdoctor("check", "--json", "--snapshot", record(tmp_path, broken()), cwd=tmp_path)
    (tmp_path / "report.json").write_text(first.stdout, "utf-8")
    again = dsdoctor("check", "--json", "--snapshot", "report.json", cwd=tmp_path)
    assert json.loads(again.stdout)["verdicts"] == json.loads(first.stdout)["verdicts"]


def test_quiet_and_verbose(tmp_path: Path) -> None:
    file = record(tmp_path, broken())
    quiet = dsdoctor("check", "-q", "--snapshot", file, cwd=tmp_path).stdout
    verbose = dsdoctor("check", "-v", "--snapshot", file, cwd=tmp_path).stdout
    assert "[ERROR] TORCH005" in quiet
    assert "Plan" not in quiet
    assert "\nPassed\n" in verbose
    assert "proof: probed" in verbose


def test_only_and_skip_choose_checks(tmp_path: Path) -> None:
    file = record(tmp_path)
    done = dsdoctor("check", "--json", "--only", "torch005,HOST", "--skip", "HOST001", "--snapshot", file, cwd=tmp_path)
    codes = {v["code"] for v in json.loads(done.stdout)["verdicts"]}
    assert "TORCH005" in codes
    assert "HOST001" not in codes
    assert {c[:4] for c in codes} == {"TORC", "HOST"}


def test_a_config_is_judged_with_a_recorded_machine(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{\n  "train_batch_size": 8,\n  "zero_optimisation": {"stage": 2}\n}\n')
    file = record(tmp_path)
    done = dsdoctor("check", "--config", "ds.json", "--format", "github", "--snapshot", file, cwd=tmp_path)
    assert "file=ds.json,line=3,col=3,title=CFG003" in done.stdout


def test_a_pasted_ds_report_from_file_and_from_standard_input(tmp_path: Path) -> None:
    file = dsdoctor("check", "--json", "--ds-report", DS_REPORT, cwd=tmp_path)
    from_pipe = piped(DS_REPORT.read_bytes(), "check", "--json", "--ds-report", "-", cwd=tmp_path)
    first, second = json.loads(file.stdout), json.loads(from_pipe.stdout)
    assert first["facts"]["deepspeed"]["version"] == "0.19.8"
    assert [v["status"] for v in first["verdicts"]] == [v["status"] for v in second["verdicts"]]
    assert second["facts"]["origin"] == "standard input"


@pytest.mark.parametrize("junk", [b"", bytes(range(256)) * 40, b"\xff\xfe\x00" * 9, b"hello\n"])
def test_junk_in_place_of_a_ds_report_is_never_called_healthy(tmp_path: Path, junk: bytes) -> None:
    done = piped(junk, "check", "--json", "--ds-report", "-", cwd=tmp_path)
    if done.returncode in (2, 3):
        assert done.stderr.count("\n") == 1
    else:
        assert json.loads(done.stdout)["outcome"] != "healthy"


def test_every_machine_in_the_fixtures_can_be_judged(tmp_path: Path) -> None:
    folders = sorted(p.parent for p in (ROOT / "fixtures" / "machines").glob("*/facts.json"))
    assert folders
    for folder in folders:
        assert dsdoctor("check", "--snapshot", folder, cwd=tmp_path).returncode in (0, 1), folder.name


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    """The pipe is closed before the program writes, as `| head -1` does."""
    for arguments in (["check", "--json", "--snapshot", str(record(tmp_path))], ["list"], ["schema"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "dsdoctor", *arguments],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        assert b"Traceback" not in errors
        assert b"BrokenPipe" not in errors
        assert process.wait(60) == 0, (arguments, errors)


def test_a_snapshot_of_a_snapshot_is_the_same_machine(tmp_path: Path) -> None:
    file = record(tmp_path, broken())
    done = dsdoctor("snapshot", "-", "--snapshot", file, cwd=tmp_path)
    assert json.loads(done.stdout)["torch_live"] == json.loads(encode(broken()))["torch_live"]
    saved = dsdoctor("snapshot", "copy.json", "--snapshot", file, cwd=tmp_path)
    assert (saved.returncode, saved.stdout) == (0, "")
    assert dsdoctor("check", "--snapshot", "copy.json", cwd=tmp_path).returncode == 1
