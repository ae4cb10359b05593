"""JUnit XML: one suite per family, one case per check."""

import xml.etree.ElementTree as ElementTree

from dsdoctor.model import Report, Status, Verdict
from dsdoctor.render.plain import clean


def render(report: Report) -> str:
    """FAILED becomes failure, UNKNOWN and CRASHED error, NOT_APPLICABLE and ignored skipped."""
    root = ElementTree.Element("testsuites", name="dsdoctor", tests=str(len(report.verdicts)))
    for family in dict.fromkeys(v.family for v in report.verdicts):
        mine = [v for v in report.verdicts if v.family == family]
        suite = ElementTree.SubElement(root, "testsuite", name=family, tests=str(len(mine)))
        counts = {"failure": 0, "error": 0, "skipped": 0}
        for verdict in mine:
            kind = _case(suite, verdict)
            if kind:
                counts[kind] += 1
        suite.set("failures", str(counts["failure"]))
        suite.set("errors", str(counts["error"]))
        suite.set("skipped", str(counts["skipped"]))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, verdict: Verdict) -> str | None:
    name = f"{verdict.code} {verdict.title}"
    case = ElementTree.SubElement(suite, "testcase", classname=f"dsdoctor.{verdict.family}", name=name)
    if verdict.ignored is not None:
        ElementTree.SubElement(case, "skipped", message=f"ignored: {clean(verdict.ignored)}")
        return "skipped"
    if verdict.status is Status.FAILED:
        messages = [clean(f.message) for f in verdict.findings]
        element = ElementTree.SubElement(case, "failure", type=verdict.findings[0].cause, message=messages[0])
        lines = list(messages)
        for finding in verdict.findings:
            lines += [f"  {clean(e.where)}: {clean(e.text)}" for e in finding.evidence]
            lines += [f"  $ {clean(c)}" for c in (finding.remedy.commands if finding.remedy else ())]
        element.text = "\n".join(lines)
        return "failure"
    if verdict.status in (Status.UNKNOWN, Status.CRASHED):
        ElementTree.SubElement(case, "error", type=verdict.status.value, message=clean(verdict.reason or ""))
        return "error"
    if verdict.status is Status.NOT_APPLICABLE:
        ElementTree.SubElement(case, "skipped", message=clean(verdict.reason or ""))
        return "skipped"
    return None
