"""Will each op build and load here? From the verdicts of checks, from ds_report's word, and from real builds. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from dsdoctor.abilities import Abilities, is_about
from dsdoctor.facts import DsReport, OpBuild, Snapshot
from dsdoctor.facts.snapshot import LIVE_SECTIONS
from dsdoctor.knowledge import OpSpec
from dsdoctor.model import Check, Finding, OpState, OpVerdict, Proof, Verdict

THIS_OP = "op"  # the ability that a finding takes from its subject alone
Said = Literal["okay", "no", "installed"] | None
UNNAMED = "op-build-fails"


def judge_ops(
    specs: Iterable[OpSpec], checks: Iterable[Check], verdicts: Sequence[Verdict], snapshot: Snapshot
) -> tuple[OpVerdict, ...]:
    """One verdict per op, in the order of ``specs``. A real build outweighs everything that was predicted."""
    abilities = Abilities(checks, verdicts)
    return tuple(_judge(spec, abilities, snapshot) for spec in specs)


def _judge(spec: OpSpec, abilities: Abilities, snapshot: Snapshot) -> OpVerdict:
    said = _said(snapshot.ds_report, spec.name)
    found = _blocking(spec, abilities)
    built = snapshot.op_builds.get(spec.name) if snapshot.op_builds else None
    if built is not None and built.outcome != "not-reached":
        return _built(spec, said, built, found)
    if found:
        finding = found[0][1]
        return _verdict(
            spec,
            said,
            "fails",
            proof=_worth(found, snapshot),
            cause=finding.cause,
            because=finding.message,
            blocked_by=tuple(dict.fromkeys(v.code for v, _ in found)),
        )
    if said == "installed":
        return _verdict(spec, said, "builds", because="it was compiled when DeepSpeed was installed")
    if said == "no":
        return _verdict(spec, said, "fails", proof=Proof.PROBED, because=_refusal(snapshot.ds_report, spec.name))
    untold = [name for name in LIVE_SECTIONS if _left_out(snapshot, name)]
    doubt = abilities.doubt(_tools(spec), untold=untold)
    if doubt is not None:
        return _verdict(spec, said, "unknown", because=doubt)
    return _verdict(spec, said, "builds", proof=_proof(spec, abilities, snapshot))


def _blocking(spec: OpSpec, abilities: Abilities) -> list[tuple[Verdict, Finding]]:
    """Findings that take away what this op needs. First what tells most: a cause with a name, the best proof, its own."""
    found = abilities.taken(_tools(spec))
    own = [(v, f) for v, f in abilities.findings(THIS_OP) if is_about(f, spec.name)]
    return sorted(own + found, key=lambda pair: (pair[1].cause == UNNAMED, -pair[0].proof.rank))


def _tools(spec: OpSpec) -> tuple[str, ...]:
    """The abilities that it shares with other ops."""
    return tuple(need for need in spec.needs if need != THIS_OP)


def _built(spec: OpSpec, said: Said, built: OpBuild, found: Sequence[tuple[Verdict, Finding]]) -> OpVerdict:
    """The verdict of a real build. The cause is the one that a check read from its output."""
    told = {"proof": Proof.RAN, "seconds": built.seconds, "log": built.log}
    if built.outcome == "ok":
        return _verdict(spec, said, "builds", **told, because=built.retried)
    own = next(((v, f) for v, f in found if is_about(f, spec.name) and v.proof is Proof.RAN), None)
    because = built.first_error or built.error or (own[1].message if own else f"its build {built.outcome}")
    return _verdict(
        spec,
        said,
        "fails",
        **told,
        cause=own[1].cause if own else UNNAMED,
        because=because,
        blocked_by=(own[0].code,) if own else (),
    )


def _verdict(spec: OpSpec, said: Said, state: OpState, **rest: Any) -> OpVerdict:
    differs = (said in ("okay", "installed") and state == "fails") or (said == "no" and state == "builds")
    known = {"features": spec.features, "wanted": spec.wanted, "note": spec.note}
    return OpVerdict(name=spec.name, state=state, said=said, differs=differs, **known, **rest)  # type: ignore[arg-type]


def _left_out(snapshot: Snapshot, section: str) -> bool:
    """Nobody looked (a static run): that costs the prediction its grade, not its answer."""
    why = snapshot.unavailable.get(section)
    return getattr(snapshot, section) is None and (why is None or why.kind == "not-examined")


def _said(report: DsReport | None, name: str) -> Said:
    op = report.op(name) if report else None
    if op is None:
        return None
    return "installed" if op.installed else "okay" if op.compatible else "no"


def _refusal(report: DsReport | None, name: str) -> str:
    op = report.op(name) if report else None
    reason = "; ".join(op.warnings) if op and op.warnings else "it gives no reason"
    return f"DeepSpeed refuses to build what ds_report calls [NO]: {reason}"


def _worth(found: Sequence[tuple[Verdict, Finding]], snapshot: Snapshot) -> Proof:
    """The best proof of the findings. Nothing is PROBED of an op where nobody asked its builder nor tried a compiler."""
    best = max((v.proof for v, _ in found), key=lambda proof: proof.rank)
    looked = any(getattr(snapshot, name) is not None for name in LIVE_SECTIONS)
    return best if looked or best is Proof.RAN else Proof.DECLARED


def _proof(spec: OpSpec, abilities: Abilities, snapshot: Snapshot) -> Proof:
    """PROBED when programs were compiled here and every ability that it needs was tried, else DECLARED."""
    if snapshot.trials is None:
        return Proof.DECLARED
    needs = _tools(spec)
    return min((abilities.proof(need) for need in needs), key=lambda proof: proof.rank, default=Proof.DECLARED)
