"""What can run here: each capability is ready, blocked by codes, or unknown because of something. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from dsdoctor.abilities import Abilities
from dsdoctor.facts import Snapshot
from dsdoctor.knowledge import CapabilitySpec
from dsdoctor.model import Capability, Check, OpVerdict, Proof, Verdict

OP = "op:"  # "op:cpu_adam": the capability needs this op


def assess(
    specs: Iterable[CapabilitySpec],
    checks: Iterable[Check],
    verdicts: Sequence[Verdict],
    snapshot: Snapshot,
    ops: Iterable[OpVerdict] = (),
) -> tuple[Capability, ...]:
    """Decide every capability from the verdicts of the checks that guard its abilities, and of the ops that it needs."""
    abilities = Abilities(checks, verdicts)
    by_name = {op.name: op for op in ops}
    return tuple(_assess(spec, abilities, by_name, snapshot) for spec in specs)


def _assess(spec: CapabilitySpec, abilities: Abilities, ops: Mapping[str, OpVerdict], snapshot: Snapshot) -> Capability:
    reason = spec.applies(snapshot)
    if reason is not None:
        return Capability(name=spec.name, title=spec.title, state="not_applicable", because=reason)
    required = spec.requires(snapshot)
    plain = tuple(name for name in required if not name.startswith(OP))
    named = [name.removeprefix(OP) for name in required if name.startswith(OP)]
    needed = [ops[name] for name in named if name in ops]
    failing = [op for op in needed if op.state == "fails"]
    blocked = (*(v.code for v, _ in abilities.taken(plain)), *(code for op in failing for code in op.blocked_by))
    if blocked or failing:
        because = "; ".join(f"{op.name} does not build: {op.because}" for op in failing if not op.blocked_by) or None
        return _capability(spec, "blocked", blocked_by=tuple(dict.fromkeys(blocked)), because=because)
    proof = spec.proof(snapshot)
    if proof is Proof.RAN:
        return _capability(spec, "ready", proof=proof)
    doubt = abilities.doubt(plain) or _doubt(named, ops)
    if doubt is not None:
        return _capability(spec, "unknown", because=doubt)
    return _capability(spec, "ready", proof=_least(proof, needed))


def _doubt(named: Sequence[str], ops: Mapping[str, OpVerdict]) -> str | None:
    """Why one of the ops can't be called there: nobody looked, or it is not known."""
    for name in named:
        op = ops.get(name)
        if op is None:
            return f"the op {name} was not looked at"
        if op.state == "unknown":
            return f"{op.name}: {op.because}"
    return None


def _least(proof: Proof, needed: Sequence[OpVerdict]) -> Proof:
    """No better than the tools of its ops were tried. A real build is no run with it, so it lends PROBED only."""
    if not needed:
        return proof
    tried = all(op.proof is not Proof.DECLARED for op in needed)
    return Proof.PROBED if tried else Proof.DECLARED


def _capability(spec: CapabilitySpec, state: str, **rest: object) -> Capability:
    return Capability(name=spec.name, title=spec.title, state=state, **rest)  # type: ignore[arg-type]
