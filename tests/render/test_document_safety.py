"""What a document does with text that means something in its own format, and with a threshold."""

import json
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import msgspec
import pytest

from dsdoctor.model import Evidence, Remedy, Severity
from dsdoctor.render import junit, renderer
from tests.render.reports import VERIFY, failing, finding, mixed, passing, report


def cases(document: str) -> dict[str, list[str]]:
    root = ElementTree.fromstring(document)
    return {case.get("name", "").split()[0]: [child.tag for child in case] for case in root.iter("testcase")}


@pytest.mark.parametrize(
    ("fail_on", "expected"), [("error", "system-out"), ("never", "system-out"), ("warning", "failure")]
)
def test_junit_fails_what_the_exit_code_fails(fail_on: str, expected: str) -> None:
    found = cases(junit.render(mixed(), fail_on))
    assert found["CUDA001"] == ["failure"]
    assert found["CFG001"] == [expected]
    assert found["MEM001"] == ["system-out"]
    assert found["PY001"] == []


def test_junit_judges_a_check_by_its_worst_finding() -> None:
    found = [finding("small", severity=Severity.INFO), finding("large", cause="worse")]
    root = ElementTree.fromstring(junit.render(report(failing("DS001", *found))))
    failure = root.find(".//failure")
    assert failure is not None
    assert (failure.get("message"), failure.get("type")) == ("large", "worse")
    assert (failure.text or "").startswith("[info] small\n")


def sarif(*findings: Any) -> list[dict[str, Any]]:
    document = json.loads(renderer("sarif")(report(failing("CFG001", *findings))))
    results: list[dict[str, Any]] = document["runs"][0]["results"]
    return results


def test_sarif_fingerprints_stay_when_the_values_change() -> None:
    first, second, other = sarif(finding("it is 11.8"), finding("it is 12.1"), finding("it is 11.8", subject="gcc"))
    assert first["partialFingerprints"] == second["partialFingerprints"] != other["partialFingerprints"]


def test_sarif_writes_an_absolute_path_as_a_file_uri() -> None:
    (result,) = sarif(finding(evidence=(Evidence(where="/my job/ds.json:3:1", text="x"),)))
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///my%20job/ds.json"


def test_sarif_says_whether_the_run_came_to_its_end() -> None:
    whole, cut = mixed(), msgspec.structs.replace(mixed(), interrupted=True)
    ended = [json.loads(renderer("sarif")(r))["runs"][0]["invocations"][0]["executionSuccessful"] for r in (whole, cut)]
    assert ended == [True, False]


def test_markdown_shows_text_as_it_stands() -> None:
    text = "torch/__init__.py *and* zero_optimization of ![x](http://x/y) @team & <b> ~x~"
    page = renderer("markdown")(report(failing("DS001", finding(text))))
    row = next(line for line in page.splitlines() if line.startswith("| error"))
    assert r"torch/\_\_init\_\_.py \*and\* zero_optimization of !\[x\](http://x/y)" in row
    assert r"&#64;team &amp; &lt;b> \~x\~" in row


def test_markdown_fence_is_longer_than_any_in_a_command() -> None:
    remedy = Remedy(order="Do", commands=("echo '```'", "echo done"))
    page = renderer("markdown")(report(failing("DS001", finding(remedy=remedy))))
    assert "   ````sh\n   echo '```'\n   echo done\n   ````\n" in page


def test_markdown_takes_the_date_and_the_patient_as_data() -> None:
    odd = msgspec.structs.replace(
        mixed(), patient="/h/`id`/python", facts=mixed().facts.replace(taken_at="\x1b[31mnow<b>")
    )
    page = renderer("markdown")(odd)
    assert "- patient: `/h/'id'/python`" in page
    assert re.search(r"^- dsdoctor \S+, now&lt;b>$", page, re.M)


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_pages_name_verify_platform_and_an_interruption(form: str) -> None:
    page = renderer(form)(msgspec.structs.replace(mixed(), interrupted=True))
    assert VERIFY in page.replace("&#x27;", "'")
    assert "fly" in page
    assert "nterrupted: this is what was known by then" in page
    assert "nterrupted" not in renderer(form)(report(passing))
