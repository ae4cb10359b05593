"""Run checks over a snapshot: inject facts, collect findings, contain whatever goes wrong."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dsdoctor.check import NotApplicable, Unknown
from dsdoctor.facts import Snapshot, Unavailable
from dsdoctor.facts.snapshot import SECTIONS
from dsdoctor.knowledge import ANY_CAUSE
from dsdoctor.model import Check, Finding, Proof, Severity, Status, Verdict
from dsdoctor.prescribe import Prescriber

_PROBED = frozenset({"torch_live", "deepspeed_live", "op_builders", "config_words", "trials", "storage"})
_RAN = frozenset({"smoke", "op_builds"})


def judge(
    checks: Iterable[Check],
    snapshot: Snapshot,
    severities: Mapping[str, Severity] | None = None,
    ignored: Mapping[str, str] | None = None,
) -> tuple[Verdict, ...]:
    """One verdict per check. ``severities`` and ``ignored`` (code -> reason) are the user's."""
    prescriber = Prescriber.of(snapshot)
    return tuple(
        judge_one(check, snapshot, prescriber, (severities or {}).get(check.code), (ignored or {}).get(check.code))
        for check in checks
    )


def judge_one(
    check: Check,
    snapshot: Snapshot,
    prescriber: Prescriber,
    severity: Severity | None = None,
    ignored: str | None = None,
) -> Verdict:
    """The verdict of one check. Never raises for what a check does."""
    wanted = severity or check.severity
    arguments, missing, proof = _arguments(check, snapshot, prescriber)

    def verdict(status: Status, **rest: Any) -> Verdict:
        return Verdict(
            code=check.code,
            title=check.title,
            family=check.family,
            status=status,
            **{"severity": wanted, "proof": proof, "ignored": ignored, **rest},
        )

    if missing:
        reason = "; ".join(dict.fromkeys(why.detail for why in missing.values()))
        asked = any(why.kind != "not-asked" for why in missing.values())
        status = Status.UNKNOWN if asked else Status.NOT_APPLICABLE
        return verdict(status, reason=reason, waits_for=tuple(missing))
    try:
        findings = tuple(check.run(**arguments))
    except NotApplicable as stop:
        return verdict(Status.NOT_APPLICABLE, reason=str(stop))
    except Unknown as stop:
        return verdict(Status.UNKNOWN, reason=str(stop))
    except Exception as error:  # a check that raises is our bug; the rest of the report goes on
        return verdict(Status.CRASHED, reason=f"{type(error).__name__}: {error}")
    undeclared = set() if ANY_CAUSE in check.causes else {f.cause for f in findings} - set(check.causes)
    if undeclared:
        return verdict(Status.CRASHED, reason=f"{check.code} names undeclared causes: {', '.join(sorted(undeclared))}")
    if not findings:
        return verdict(Status.PASSED)
    if check.refuted_by and snapshot.trials and all(snapshot.trials.ok(name) for name in check.refuted_by):
        return verdict(Status.PASSED, proof=Proof.PROBED, reason=f"tried, and it works: {', '.join(check.refuted_by)}")
    if severity is not None:  # the user's word goes over a finding's own
        findings = tuple(msgspec.structs.replace(f, severity=None) for f in findings)
    worst = max((f.severity or wanted for f in findings), key=lambda s: s.rank)
    return verdict(Status.FAILED, findings=findings, severity=worst)


def finding_severity(finding: Finding, verdict: Verdict) -> Severity:
    """A finding's own severity, else its verdict's."""
    return finding.severity or verdict.severity


def _arguments(
    check: Check, snapshot: Snapshot, prescriber: Prescriber
) -> tuple[dict[str, Any], dict[str, Unavailable], Proof]:
    arguments: dict[str, Any] = {}
    missing: dict[str, Unavailable] = {}
    proof = Proof.DECLARED
    for name, kind in check.needs.items():
        if kind is Prescriber:
            arguments[name] = prescriber
            continue
        section = SECTIONS[kind]
        fact = snapshot.section(kind)
        if isinstance(fact, Unavailable):
            arguments[name] = None
            if name not in check.optional:
                missing[section] = fact
            continue
        arguments[name] = fact
        grade = Proof.RAN if section in _RAN else Proof.PROBED if section in _PROBED else Proof.DECLARED
        proof = max(proof, grade, key=lambda p: p.rank)
    return arguments, missing, proof
