"""Markdown for an issue or a pull request comment."""

import re

from dsdoctor.model import Report, Step
from dsdoctor.plan import counted_findings
from dsdoctor.render.plain import clean, one_line
from dsdoctor.render.smoke_summary import sentence
from dsdoctor.render.story import headline, meaning, reason, said
from dsdoctor.render.undecided import undecided

_MARKS = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")  # an underscore inside a word marks nothing


def render(report: Report) -> str:
    """Summary, findings, plan, capabilities and what could not be decided."""
    sections = (
        _head(report), _story(report), _findings(report), _plan(report), _smoke(report), _capabilities(report), _undecided(report),
    )  # fmt: skip
    return "\n".join(line for section in sections for line in section) + "\n"


def _head(report: Report) -> list[str]:
    platform = report.platform
    labels = (("can", platform.can), ("cannot", platform.cannot), ("instead", platform.instead))
    lines = ["# dsdoctor report", "", f"**{_text(report.summary)}**", "", f"- {_text(platform.headline)}"]
    lines += [f"- {label}: {_text(text)}" for label, text in labels if text]
    lines.append(f"- patient: {_code(report.patient)}")
    purpose = report.facts.purpose
    if purpose is not None:
        lines.append(f"- purpose: {purpose.name} ({_text(purpose.because)})")
    lines.append(f"- dsdoctor {_text(report.tool_version)}, {_text(report.facts.taken_at)}")
    if report.interrupted:
        lines.append("- interrupted: this is what was known by then")
    return [*lines, ""]


def _story(report: Report) -> list[str]:
    """What killed the run, when a log was read."""
    if report.story is None:
        return []
    lines = ["## What killed the run", "", f"**{_text(headline(report))}** {_text(reason(report))}", ""]
    for number, link in enumerate(report.story.chain, 1):
        rank = "" if link.rank is None else f", rank {link.rank}"
        lines.append(
            f"{number}. {_code(said(link))} ({_text(link.where)}{rank}) {_text(meaning(link, number))}".rstrip()
        )
    lines += [f"- collect: {_text(thing)}" for thing in report.story.collect]
    if report.story.harmless:
        lines += ["", "Seen, harmless:", ""]
        lines += [
            f"- {_code(link.text)} ({_text(link.where)}): {_text(link.means or '')}" for link in report.story.harmless
        ]
    return [*lines, ""]


def _findings(report: Report) -> list[str]:
    found = counted_findings(report.verdicts)
    if not found:
        return []
    lines = ["## Findings", "", "| severity | code | finding | cause |", "| --- | --- | --- | --- |"]
    for severity, verdict, finding in sorted(found, key=lambda row: -row[0].rank):
        lines.append(f"| {severity.value} | {verdict.code} | {_text(finding.message)} | `{finding.cause}` |")
    return [*lines, ""]


def _plan(report: Report) -> list[str]:
    if not report.plan:
        return []
    return ["## Plan", "", *(line for step in report.plan for line in (*_step(step), ""))]


def _step(step: Step) -> list[str]:
    safety = {"safe": "", "careful": " (careful)", "manual": " (by hand)"}[step.safety]
    lines = [f"{step.number}. {_text(step.order)}{safety} (clears {', '.join(step.clears)})"]
    lines += _block(step.commands)
    if step.note:
        lines += ["", f"   {_text(step.note)}"]
    if step.verify:
        lines += ["", "   Then check with:", *_block((step.verify,))]
    return lines


def _smoke(report: Report) -> list[str]:
    smoke = report.facts.smoke
    return [] if smoke is None else ["## Smoke runs", "", f"{_text(sentence(smoke))}.", ""]


def _capabilities(report: Report) -> list[str]:
    lines = ["## What can run here", "", "| | state | proof |", "| --- | --- | --- |"]
    for item in report.capabilities:
        detail = ", ".join(item.blocked_by) or item.because or ""
        proof = item.proof.value if item.state == "ready" else ""
        lines.append(f"| {_text(item.title)} | {item.state.replace('_', ' ')} {_text(detail)} | {proof} |")
    return lines if report.capabilities and report.story is None else []


def _undecided(report: Report) -> list[str]:
    groups = undecided(report) if report.story is None else {}
    rows = [f"- {_text(reason)}: {', '.join(codes)}" for reason, codes in groups.items()]
    return ["", "## Could not be decided", "", *rows] if rows else []


def _block(commands: tuple[str, ...]) -> list[str]:
    """Commands inside of the list item, each on its own lines, in a fence longer than any in them."""
    if not commands:
        return []
    lines = [line for command in commands for line in clean(command).split("\n")]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return ["", f"   {fence}sh", *(f"   {line}" for line in lines), f"   {fence}"]


def _text(text: str) -> str:
    """One line that shows as it stands: no emphasis, link, code, table cell or HTML comes out of it."""
    escaped = _MARKS.sub(r"\\\g<0>", one_line(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;")


def _code(text: str) -> str:
    """A code span; nothing can be escaped in one, so backquotes become apostrophes."""
    return "`" + one_line(text).replace("`", chr(39)) + "`"
