"""Checks that could not be decided, grouped under what they wait for."""

from dsdoctor.facts import Snapshot
from dsdoctor.model import Report, Status, Verdict


def undecided(report: Report) -> dict[str, list[str]]:
    """Why -> the codes of the checks, in the order of the report. The reason names the missing fact sections."""
    codes: dict[str, list[str]] = {}
    sections: dict[str, dict[str, None]] = {}
    for verdict in report.verdicts:
        if verdict.status in (Status.UNKNOWN, Status.CRASHED):
            section, reason = _waits_for(verdict, report.facts)
            codes.setdefault(reason, []).append(verdict.code)
            sections.setdefault(reason, {}).update({section: None} if section else {})
    return {_with_sections(reason, list(sections[reason])): mine for reason, mine in codes.items()}


def _with_sections(reason: str, sections: list[str]) -> str:
    return f"{reason} (missing: {', '.join(sections)})" if sections else reason


def _waits_for(verdict: Verdict, facts: Snapshot) -> tuple[str | None, str]:
    """The section that an undecided check waits for and why that is missing; or no section and the check's own reason."""
    if verdict.status is Status.CRASHED:
        return None, f"a defect of dsdoctor: {verdict.reason}"
    for section in verdict.waits_for:
        missing = facts.unavailable.get(section)
        if missing is not None and missing.kind != "not-asked":  # what nobody asked for leaves nothing undecided
            return section, missing.detail
    return None, verdict.reason or "no reason was given"
