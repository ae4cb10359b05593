"""The machine-readable and web formats."""

import json
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import jsonschema
import pytest

from dsdoctor.model import Evidence, Severity
from dsdoctor.render import renderer
from dsdoctor.render.json import schema
from tests.render.reports import INSTALL, PLACE, failing, finding, hostile, mixed, report

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.mark.parametrize("form", ["junit", "sarif", "github", "markdown", "html"])
def test_no_control_character_of_the_machine_survives(form: str) -> None:
    document = renderer(form)(hostile())
    assert not CONTROL.search(document)
    assert "\\u001b" not in document
    document.encode("utf-8")
    assert "alert(1)" in document


def test_json_validates_and_has_the_promised_keys() -> None:
    document = json.loads(renderer("json")(mixed()))
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.Draft202012Validator(schema()).validate(document)
    top = {"schema_version", "tool_version", "patient", "facts", "verdicts", "capabilities", "causes", "plan"}
    assert top <= document.keys()
    verdict = next(v for v in document["verdicts"] if v["code"] == "CUDA001")
    assert {"code", "title", "family", "status", "severity", "findings"} <= verdict.keys()
    assert {"message", "cause", "evidence", "subject", "remedy"} <= verdict["findings"][0].keys()
    assert {"name", "state", "proof", "blocked_by"} <= document["capabilities"][0].keys()
    assert {"cause", "codes", "proof"} <= document["causes"][0].keys()
    assert document["plan"][0]["commands"] == [INSTALL]


def test_json_takes_text_that_is_no_unicode() -> None:
    document = json.loads(renderer("json")(hostile()))
    assert document["verdicts"][0]["findings"][0]["message"].endswith("::error::fake \ufffd")


def test_the_schema_refuses_another_status() -> None:
    document = json.loads(renderer("json")(mixed()))
    document["verdicts"][0]["status"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(document)


def test_junit_counts_agree_with_the_cases() -> None:
    root = ElementTree.fromstring(renderer("junit")(mixed({"MEM001": "it is big"})))
    assert root.get("tests") == "8"
    counts = {s.get("name"): tuple(int(s.get(k, "")) for k in ("tests", "failures", "errors", "skipped")) for s in root}
    assert counts == {
        "CUDA": (1, 1, 0, 0),
        "CFG": (1, 0, 0, 0),
        "MEM": (1, 0, 0, 1),
        "PY": (1, 0, 0, 0),
        "GPU": (2, 0, 2, 0),
        "NET": (1, 0, 0, 1),
        "RUN": (1, 0, 1, 0),
    }
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("type") == "nvcc-missing"
    assert [root.get(k) for k in ("failures", "errors", "skipped")] == ["1", "3", "2"]
    assert INSTALL in (failure.text or "")
    skipped = root.find("./testsuite[@name='MEM']/testcase/skipped")
    assert skipped is not None
    assert skipped.get("message") == "ignored: it is big"


def results(document: str) -> dict[str, Any]:
    return {r["ruleId"]: r for r in json.loads(document)["runs"][0]["results"]}


def test_sarif_levels_and_regions() -> None:
    found = results(renderer("sarif")(mixed()))
    assert {code: r["level"] for code, r in found.items()} == {
        "CUDA001": "error",
        "CFG001": "warning",
        "MEM001": "note",
    }
    place = found["CFG001"]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 12, "startColumn": 5}
    assert place["artifactLocation"]["uri"] == "confs/ds%20config.json"
    assert found["CUDA001"]["locations"][0]["logicalLocations"][0]["name"] == "nvcc"


def test_sarif_writes_a_windows_path_as_a_uri() -> None:
    odd = finding(evidence=(Evidence(where=r"C:\my job\ds.json:3:1", text="x"),))
    place = results(renderer("sarif")(report(failing("CFG001", odd))))["CFG001"]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///C:/my%20job/ds.json"


def test_sarif_has_a_rule_for_every_check_and_only_what_counts_as_result() -> None:
    document = renderer("sarif")(mixed({"CUDA001": "elsewhere"}))
    rules = [r["id"] for r in json.loads(document)["runs"][0]["tool"]["driver"]["rules"]]
    assert "CUDA001" in rules
    assert "PY001" in rules
    assert set(results(document)) == {"CFG001", "MEM001"}


def test_github_escapes_and_places() -> None:
    lines = renderer("github")(mixed()).splitlines()
    assert lines[0].startswith("::error title=CUDA001 The CUDA compiler fits torch::CUDA_HOME is")
    assert lines[0].endswith(f"%0A$ {INSTALL}")
    assert lines[1].startswith("::warning file=confs/ds config.json,line=12,col=5,title=CFG001")
    assert lines[2].startswith("::notice title=MEM001")
    assert lines[3:] == ["dsdoctor: 1 error, 1 warning. Mend first: The CUDA compiler is missing."]


def test_github_text_cannot_start_a_command_of_its_own() -> None:
    lines = renderer("github")(hostile()).splitlines()
    assert [line for line in lines if line.startswith("::")] == lines[:1]
    percent = failing("DS001", finding("100% of a:b,c", remedy=None), title="Fine: a, b")
    line = renderer("github")(report(percent)).splitlines()[0]
    assert line == "::error title=DS001 Fine%3A a%2C b::100%25 of a:b,c"


def test_github_shows_ten_of_a_kind_and_counts_the_rest() -> None:
    many = failing("DS001", *(finding(f"number {n}", remedy=None) for n in range(13)), severity=Severity.WARNING)
    lines = renderer("github")(report(many)).splitlines()
    assert sum(line.startswith("::warning") for line in lines) == 10
    assert "3 more of severity warning are in the full report" in lines


def test_markdown_tables_keep_their_columns_and_html_stays_text() -> None:
    document = renderer("markdown")(hostile())
    row = next(line for line in document.splitlines() if line.startswith("| error"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert "<script>" not in row
    assert "\\`c\\`" in row
    mixed_document = renderer("markdown")(mixed())
    assert mixed_document.startswith("# dsdoctor report\n\n**1 error, 1 warning.")
    assert f"   ```sh\n   {INSTALL}\n   ```" in mixed_document
    assert "| ZeRO-2 | blocked CUDA001 |  |" in mixed_document


def test_markdown_command_lines_stay_inside_of_their_block() -> None:
    document = renderer("markdown")(hostile())
    block = document.partition("   ```sh\n")[2].partition("   ```\n")[0]
    assert block.splitlines()[1].startswith("   ::error::fake")


def test_html_is_one_page_without_scripts() -> None:
    page = renderer("html")(hostile())
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "http" not in page
    assert f"<pre>{INSTALL.replace('&', '&amp;')}</pre>" in renderer("html")(mixed())
    assert f"{PLACE}: &quot;zero_optimization&quot;: []" in renderer("html")(mixed())
