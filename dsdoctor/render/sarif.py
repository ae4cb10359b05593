"""SARIF 2.1.0: every check is a rule, every finding a result; findings in a file get their region."""

import hashlib
import json
from typing import Any
from urllib.parse import quote

from dsdoctor.model import Finding, Report, Severity, Verdict
from dsdoctor.plan import counted_findings
from dsdoctor.render.place import place_of
from dsdoctor.render.plain import clean, one_line

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(report: Report) -> str:
    """One run with rules and results."""
    rules = [
        {
            "id": v.code,
            "shortDescription": {"text": v.title},
            "defaultConfiguration": {"level": _LEVEL[v.severity]},
        }
        for v in report.verdicts
    ]
    results = [_result(severity, v, f) for severity, v, f in counted_findings(report.verdicts)]
    driver = {"name": "dsdoctor", "version": report.tool_version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not report.interrupted}],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    document = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=1) + "\n"


def _result(severity: Severity, verdict: Verdict, finding: Finding) -> dict[str, Any]:
    remedy = finding.remedy
    mend = "" if remedy is None else f" {remedy.order}." + "".join(f" $ {c}" for c in remedy.commands)
    return {
        "ruleId": verdict.code,
        "level": _LEVEL[severity],
        "message": {"text": clean(finding.message + mend)},
        "locations": [_location(finding)],
        "partialFingerprints": {"dsdoctor/v1": _fingerprint(verdict, finding)},
        "properties": {"cause": finding.cause},
    }


def _fingerprint(verdict: Verdict, finding: Finding) -> str:
    """The same for the same finding in every run: made of what it is about, not of the values that were found."""
    place = place_of(finding)
    parts = [verdict.code, finding.cause, one_line(finding.subject or ""), *([one_line(place.file)] if place else [])]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _location(finding: Finding) -> dict[str, Any]:
    if place := place_of(finding):
        region = {"startLine": place.line, "startColumn": place.column}
        return {"physicalLocation": {"artifactLocation": {"uri": _uri(clean(place.file))}, "region": region}}
    return {"logicalLocations": [{"name": one_line(finding.subject or "") or "this machine", "kind": "resource"}]}


def _uri(path: str) -> str:
    """A path as a URI reference: ``C:\\a b`` becomes ``file:///C:/a%20b``, a relative path stays relative."""
    path = path.replace("\\", "/")
    if path[1:3] == ":/":
        return "file:///" + quote(path, safe="/:")
    return ("file://" if path.startswith("/") else "") + quote(path)
