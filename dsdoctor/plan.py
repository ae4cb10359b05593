"""From many findings to few causes, and from causes to an ordered list of things to do. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dsdoctor.judge import finding_severity
from dsdoctor.knowledge import LAYERS, CauseInfo
from dsdoctor.model import Cause, Finding, Remedy, Severity, Status, Step, Verdict

_UNLISTED = CauseInfo(title="", layer="run", why="", remedy="")


def rank_causes(verdicts: Iterable[Verdict], table: Mapping[str, CauseInfo]) -> tuple[Cause, ...]:
    """The causes that the findings name, roots before symptoms, errors before warnings, low layers before high ones."""
    seen: dict[str, list[tuple[Verdict, Finding]]] = {}
    for _, verdict, finding in counted_findings(verdicts):
        seen.setdefault(finding.cause, []).append((verdict, finding))
    causes = [_cause(slug, found, table) for slug, found in seen.items()]
    explained = _explained(causes, table)
    causes = [_with_relations(c, explained) for c in causes]
    return tuple(sorted(causes, key=_rank))


def make_plan(causes: Sequence[Cause], verdicts: Iterable[Verdict], table: Mapping[str, CauseInfo]) -> tuple[Step, ...]:
    """One step per root cause that is at least a warning; steps that would type the same commands become one."""
    ordered = [c for c in causes if c.explained_by is None and c.severity is not Severity.INFO]
    by_cause = {c.cause: c for c in causes}
    findings: dict[str, list[Finding]] = {}
    for _, _, finding in counted_findings(verdicts):
        findings.setdefault(finding.cause, []).append(finding)
    steps: list[Step] = []
    for cause in ordered:
        clears = dict.fromkeys(cause.codes)
        for symptom in cause.explains:
            clears |= dict.fromkeys(by_cause[symptom].codes)
        step = _step(cause, findings[cause.cause], tuple(clears), table.get(cause.cause, _UNLISTED))
        twin = next((i for i, s in enumerate(steps) if s.commands and s.commands == step.commands), None)
        if twin is None:
            steps.append(step)
        else:
            merged = tuple(dict.fromkeys((*steps[twin].clears, *step.clears)))
            steps[twin] = _renumber(steps[twin], steps[twin].number, clears=merged)
    return tuple(_renumber(step, number) for number, step in enumerate(steps, 1))


def counted(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Failed verdicts that the user did not ignore."""
    return [v for v in verdicts if v.status is Status.FAILED and v.ignored is None]


def counted_findings(verdicts: Iterable[Verdict]) -> list[tuple[Severity, Verdict, Finding]]:
    """Every finding of those verdicts, with the severity that counts."""
    return [(finding_severity(f, v), v, f) for v in counted(verdicts) for f in v.findings]


def _cause(slug: str, found: list[tuple[Verdict, Finding]], table: Mapping[str, CauseInfo]) -> Cause:
    info = table.get(slug, _UNLISTED)
    return Cause(
        cause=slug,
        title=info.title or slug,
        layer=info.layer,
        severity=max((finding_severity(f, v) for v, f in found), key=lambda s: s.rank),
        codes=tuple(dict.fromkeys(v.code for v, _ in found)),
        proof=max((v.proof for v, _ in found), key=lambda p: p.rank),
    )


def _explained(causes: list[Cause], table: Mapping[str, CauseInfo]) -> dict[str, str]:
    """Symptom -> root. A cause explains others only when it is at least as severe; chains end at the first root."""
    severity = {c.cause: c.severity.rank for c in causes}
    parent: dict[str, str] = {}
    for root in sorted(severity, key=lambda slug: _layer(table.get(slug, _UNLISTED).layer)):
        for symptom in table.get(root, _UNLISTED).explains:
            loops = parent.get(root) == symptom
            if symptom in severity and symptom != root and severity[root] >= severity[symptom] and not loops:
                parent.setdefault(symptom, root)

    def top(slug: str) -> str:
        walked = {slug}
        while slug in parent and parent[slug] not in walked:
            slug = parent[slug]
            walked.add(slug)
        return slug

    return {symptom: top(symptom) for symptom in parent if top(symptom) != symptom}


def _with_relations(cause: Cause, explained: Mapping[str, str]) -> Cause:
    symptoms = tuple(sorted(s for s, root in explained.items() if root == cause.cause))
    return msgspec.structs.replace(cause, explains=symptoms, explained_by=explained.get(cause.cause))


def _rank(cause: Cause) -> tuple[bool, int, int, int, str]:
    return (cause.explained_by is not None, -cause.severity.rank, _layer(cause.layer), -cause.proof.rank, cause.cause)


def _layer(name: str) -> int:
    return LAYERS.index(name) if name in LAYERS else len(LAYERS)


def _step(cause: Cause, findings: list[Finding], clears: tuple[str, ...], info: CauseInfo) -> Step:
    remedies = [f.remedy for f in findings if f.remedy is not None]
    first = remedies[0] if remedies else Remedy(order=info.remedy or f"Mend: {cause.title}", safety="manual")
    orders = dict.fromkeys(r.order for r in remedies)
    safety = max((r.safety for r in remedies), key=("safe", "careful", "manual").index, default=first.safety)
    return Step(
        number=0,
        cause=cause.cause,
        order="; ".join(list(orders)[:3]) or first.order,
        why=findings[0].message,
        commands=tuple(dict.fromkeys(command for r in remedies for command in r.commands)),
        safety=safety,
        clears=clears,
        verify=first.verify,
        note=first.note,
        severity=cause.severity,
    )


def _renumber(step: Step, number: int, clears: tuple[str, ...] | None = None) -> Step:
    return msgspec.structs.replace(step, number=number, clears=step.clears if clears is None else clears)
