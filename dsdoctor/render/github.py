"""GitHub Actions annotations: worst first; GitHub shows ten of a kind per step."""

from dsdoctor.model import Finding, Report, Severity, Verdict
from dsdoctor.plan import counted_findings
from dsdoctor.render.place import place_of
from dsdoctor.render.plain import clean, one_line

SHOWN = 10
_WORD = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report) -> str:
    """One `::error ...::` line per finding and a closing line with the summary."""
    found = counted_findings(report.verdicts)
    lines: list[str] = []
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        mine = [(v, f) for s, v, f in found if s is severity]
        lines += [_annotation(severity, v, f) for v, f in mine[:SHOWN]]
        if len(mine) > SHOWN:
            lines.append(f"{len(mine) - SHOWN} more of severity {severity.value} are in the full report")
    return "\n".join([*lines, f"dsdoctor: {one_line(report.summary)}"]) + "\n"


def _annotation(severity: Severity, verdict: Verdict, finding: Finding) -> str:
    commands = "".join(f"\n$ {c}" for c in (finding.remedy.commands if finding.remedy else ()))
    place = _place(finding)
    properties = [*place, f"title={_property(f'{verdict.code} {verdict.title}')}"]
    return f"::{_WORD[severity]} {','.join(properties)}::{_data(clean(finding.message + commands))}"


def _place(finding: Finding) -> list[str]:
    """file, line and column of a finding that stands in a file."""
    place = place_of(finding)
    return [f"file={_property(place.file)}", f"line={place.line}", f"col={place.column}"] if place else []


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
