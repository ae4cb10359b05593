"""What can run here: each capability is ready, blocked by codes, or unknown because of something. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from dsdoctor.facts import Snapshot
from dsdoctor.knowledge import CapabilitySpec
from dsdoctor.model import Capability, Check, Proof, Severity, Status, Verdict


def assess(
    specs: Iterable[CapabilitySpec], checks: Iterable[Check], verdicts: Sequence[Verdict], snapshot: Snapshot
) -> tuple[Capability, ...]:
    """Decide every capability from the verdicts of the checks that guard the abilities which it requires."""
    guards = {check.code: check.guards for check in checks}
    return tuple(_assess(spec, guards, verdicts, snapshot) for spec in specs)


def _assess(
    spec: CapabilitySpec, guards: Mapping[str, tuple[str, ...]], verdicts: Sequence[Verdict], snapshot: Snapshot
) -> Capability:
    reason = spec.applies(snapshot)
    if reason is not None:
        return Capability(name=spec.name, title=spec.title, state="not_applicable", because=reason)
    required = spec.requires(snapshot)
    concerned = [v for v in verdicts if set(guards.get(v.code, ())) & set(required)]
    blocked = tuple(v.code for v in concerned if v.status is Status.FAILED and v.severity is Severity.ERROR)
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
