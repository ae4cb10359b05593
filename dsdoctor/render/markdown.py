"""Markdown for an issue or a pull request comment."""

from dsdoctor.judge import finding_severity
from dsdoctor.model import Report
from dsdoctor.plan import counted
from dsdoctor.render.plain import clean, one_line


def render(report: Report) -> str:
    """Summary, findings, plan and capabilities."""
    lines = ["# dsdoctor report", "", f"**{one_line(report.summary)}**", "", f"- {one_line(report.platform.headline)}"]
    lines += [
        f"- patient: `{one_line(report.patient)}`",
        f"- dsdoctor {report.tool_version}, {report.facts.taken_at}",
        "",
    ]
    found = [(finding_severity(f, v), v, f) for v in counted(report.verdicts) for f in v.findings]
    if found:
        lines += ["## Findings", "", "| severity | code | finding | cause |", "| --- | --- | --- | --- |"]
        for severity, verdict, finding in sorted(found, key=lambda row: -row[0].rank):
            lines.append(f"| {severity.value} | {verdict.code} | {_cell(finding.message)} | `{finding.cause}` |")
        lines.append("")
    if report.plan:
        lines += ["## Plan", ""]
        for step in report.plan:
            lines.append(f"{step.number}. {_text(step.order)} (clears {', '.join(step.clears)})")
            if step.commands:
                lines += ["", "   ```sh", *(_block(c) for c in step.commands), "   ```", ""]
        lines.append("")
    lines += ["## What can run here", "", "| | state | proof |", "| --- | --- | --- |"]
    for item in report.capabilities:
        detail = ", ".join(item.blocked_by) or item.because or ""
        lines.append(
            f"| {item.title} | {item.state.replace('_', ' ')} {_cell(detail)} | {item.proof.value if item.state == 'ready' else ''} |"
        )
    return "\n".join(lines) + "\n"


def _block(command: str) -> str:
    """A command inside of the list item, on all of its lines."""
    return "\n".join(f"   {line}" for line in clean(command).split("\n"))


def _text(text: str) -> str:
    return one_line(text).replace("<", "&lt;").replace("`", "\\`")


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")
