"""What leaves through which format: names of this machine in documents that are passed on, tokens in none."""

from pathlib import Path

import pytest

from dsdoctor.cli.privacy import redacted, shown
from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.healthy import healthy, torch_live
from tests.cli.program import dsdoctor, record

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
ERROR = f"libcudart.so in /home/alice/lib of alice@gandalf at 10.1.2.3 ({TOKEN})"
ALL = ("text", "json", "junit", "sarif", "github", "markdown", "html")


def document(folder: Path, form: str, *options: str) -> str:
    """A report of this machine's user alice, who works in a home of her own."""
    file = record(folder, healthy(torch_live(cuda_available=False, cuda_error=ERROR)))
    arguments = ["check", "-v", "--format", form, *options, "--snapshot", file, "-o", "report"]
    assert dsdoctor(*arguments, cwd=folder, HOME="/home/alice", LOGNAME="alice").returncode == 1
    return " ".join((folder / "report").read_text("utf-8").split())


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_what_is_passed_on_names_nobody(tmp_path: Path, form: str) -> None:
    page = document(tmp_path, form)
    assert "libcudart.so in" in page
    assert "~/lib" in page.replace("\\~", "~")
    assert [w for w in ("alice", "10.1.2.3", TOKEN) if w in page] == []
    assert "/home/alice/lib" in document(tmp_path, form, "--no-redact")


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "github"])
def test_what_is_read_beside_the_machine_is_true(tmp_path: Path, form: str) -> None:
    assert "/home/alice/lib" in document(tmp_path, form)
    page = document(tmp_path, form, "--redact")
    assert "libcudart.so in" in page
    assert [w for w in ("alice", "10.1.2.3") if w in page] == []


@pytest.mark.parametrize("form", ALL)
def test_no_format_holds_a_token(tmp_path: Path, form: str) -> None:
    assert TOKEN not in document(tmp_path, form, "--no-redact")


def test_the_facts_of_this_machine_are_redacted_in_json_as_in_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.setenv("LOGNAME", "alice")
    facts = healthy(torch_live(cuda_available=False, cuda_error=ERROR)).replace(origin="this machine")
    report = diagnose(facts, load_knowledge())
    for wish in (None, True, False):
        told = shown(report, "json", wish)
        assert told.facts == redacted(facts)
        assert "alice" not in str(told.facts)
        assert ("alice" in str(told.verdicts)) is (wish is not True)
