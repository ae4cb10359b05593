"""What can run here: each capability is ready, blocked by codes, or unknown because of something. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from dsdoctor.facts import Snapshot
from dsdoctor.knowledge import CapabilitySpec
from dsdoctor.model import Capability, Check, Proof, Severity, Status, Verdict


def assess(
    specs: Iterable[CapabilitySpec], checks: Iterable[Check], verdicts: Sequence[Verdict], snapshot: Snapshot
) -> tuple[Capability, ...]:
    """Decide every capability from the verdicts of the checks that guard the abilities which it requires."""
    checks = tuple(checks)
    guards = {check.code: check.guards for check in checks}
    taken_away = {v.code for v in verdicts if _takes_away(v, {c.code: c.severity for c in checks})}
    return tuple(_assess(spec, guards, taken_away, verdicts, snapshot) for spec in specs)


def _takes_away(verdict: Verdict, declared: Mapping[str, Severity]) -> bool:
    """An ERROR takes an ability away. So does a finding that an ERROR check calls a mere note because nobody asked for
    the ability (libaio is missing, nothing names an NVMe path): the ability is not there all the same."""
    if verdict.status is not Status.FAILED:
        return False
    unasked = verdict.severity is Severity.INFO and declared.get(verdict.code) is Severity.ERROR
    return verdict.severity is Severity.ERROR or unasked


def _assess(
    spec: CapabilitySpec,
    guards: Mapping[str, tuple[str, ...]],
    taken_away: Collection[str],
    verdicts: Sequence[Verdict],
    snapshot: Snapshot,
) -> Capability:
    reason = spec.applies(snapshot)
    if reason is not None:
        return Capability(name=spec.name, title=spec.title, state="not_applicable", because=reason)
    required = spec.requires(snapshot)
    concerned = [v for v in verdicts if set(guards.get(v.code, ())) & set(required)]
    blocked = tuple(v.code for v in concerned if v.code in taken_away)
    if blocked:
        return Capability(name=spec.name, title=spec.title, state="blocked", blocked_by=blocked)
    proof = spec.proof(snapshot)
    because = None if proof is Proof.RAN else _doubt(required, guards, concerned)
    if because is not None:
        return Capability(name=spec.name, title=spec.title, state="unknown", because=because)
    return Capability(name=spec.name, title=spec.title, state="ready", proof=proof)


def _doubt(required: Sequence[str], guards: Mapping[str, tuple[str, ...]], concerned: Sequence[Verdict]) -> str | None:
    """Why the capability can't be called ready: an undecided check, or an ability that nothing has looked at."""
    for verdict in concerned:
        if verdict.status in (Status.UNKNOWN, Status.CRASHED) and verdict.severity is Severity.ERROR:
            return f"{verdict.code}: {verdict.reason}"
    seen = {a for v in concerned if v.status in (Status.PASSED, Status.FAILED) for a in guards[v.code]}
    unseen = [ability for ability in required if ability not in seen]
    return f"no check has looked at {', '.join(unseen)}" if unseen else None
