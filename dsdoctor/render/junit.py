"""JUnit XML: one suite per family, one case per check."""

import xml.etree.ElementTree as ElementTree

from dsdoctor.judge import finding_severity
from dsdoctor.model import Report, Severity, Status, Verdict
from dsdoctor.render.plain import clean


def render(report: Report, fail_on: str = "error") -> str:
    """Findings at or above ``fail_on`` become failure, lesser ones system-out of a case that passed.

    UNKNOWN and CRASHED become error, NOT_APPLICABLE and ignored skipped. ``never`` counts as ``error`` here: it is about
    the exit code.
    """
    limit = Severity.WARNING if fail_on == "warning" else Severity.ERROR
    root = ElementTree.Element("testsuites", name="dsdoctor")
    sums = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for family in dict.fromkeys(v.family for v in report.verdicts):
        mine = [v for v in report.verdicts if v.family == family]
        suite = ElementTree.SubElement(root, "testsuite", name=family)
        counts = dict.fromkeys(sums, 0)
        for verdict in mine:
            counts["tests"] += 1
            kind = _case(suite, verdict, limit)
            if kind:
                counts[kind] += 1
        for name, number in counts.items():
            suite.set(name, str(number))
            sums[name] += number
    for name, number in sums.items():
        root.set(name, str(number))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, verdict: Verdict, limit: Severity) -> str | None:
    """Add the case of one check; the counter that it belongs to, None when it passed."""
    name = f"{verdict.code} {verdict.title}"
    case = ElementTree.SubElement(suite, "testcase", classname=f"dsdoctor.{verdict.family}", name=name)
    if verdict.status is Status.PASSED:
        return None
    if verdict.ignored is not None:
        ElementTree.SubElement(case, "skipped", message=f"ignored: {clean(verdict.ignored)}")
        return "skipped"
    if verdict.status is Status.FAILED:
        return _failed(case, verdict, limit)
    if verdict.status is Status.NOT_APPLICABLE:
        ElementTree.SubElement(case, "skipped", message=clean(verdict.reason or ""))
        return "skipped"
    ElementTree.SubElement(case, "error", type=verdict.status.value, message=clean(verdict.reason or ""))
    return "errors"


def _failed(case: ElementTree.Element, verdict: Verdict, limit: Severity) -> str | None:
    lines: list[str] = []
    for finding in verdict.findings:
        lines.append(f"[{finding_severity(finding, verdict).value}] {clean(finding.message)}")
        lines += [f"  {clean(e.where)}: {clean(e.text)}" for e in finding.evidence]
        lines += [f"  $ {clean(c)}" for c in (finding.remedy.commands if finding.remedy else ())]
    worst = max(verdict.findings, key=lambda f: finding_severity(f, verdict).rank)
    if finding_severity(worst, verdict).rank < limit.rank:
        ElementTree.SubElement(case, "system-out").text = "\n".join(lines)
        return None
    element = ElementTree.SubElement(case, "failure", type=worst.cause, message=clean(worst.message))
    element.text = "\n".join(lines)
    return "failures"
