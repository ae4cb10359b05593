"""What the checks leave of a machine's abilities: taken away, undecided, or seen and how well. Pure."""

from collections.abc import Collection, Iterable, Sequence

from dsdoctor.judge import finding_severity
from dsdoctor.model import Check, Finding, Proof, Severity, Status, Verdict

OF = ":"  # "run:zero2": an ability that is one thing's own; a finding takes it away from its subject alone


def is_about(finding: Finding, name: str) -> bool:
    """The finding's subject is this thing, or a list with it."""
    return name in (finding.subject or "").split(", ")


class Abilities:
    """Reads verdicts by the abilities that their checks guard."""

    def __init__(self, checks: Iterable[Check], verdicts: Sequence[Verdict]) -> None:
        declared = {check.code: check for check in checks}
        self._guarding: dict[str, list[Verdict]] = {}
        self._guards = {code: check.guards for code, check in declared.items()}
        self._severity = {code: check.severity for code, check in declared.items()}
        for verdict in verdicts:
            for ability in self._guards.get(verdict.code, ()):
                self._guarding.setdefault(ability, []).append(verdict)

    def concerned(self, required: Sequence[str]) -> list[Verdict]:
        """Verdicts of the checks that guard one of ``required``, each once."""
        return list({v.code: v for ability in required for v in self._guarding.get(ability, ())}.values())

    def taken(self, required: Sequence[str]) -> list[tuple[Verdict, Finding]]:
        """Findings that take one of ``required`` away. Of "run:zero2" these are findings about zero2 of checks that guard "run"."""
        shared = [name for name in required if OF not in name]
        found = [(v, f) for v in self.concerned(shared) for f in v.findings if self._takes_away(v, f)]
        for ability, _, thing in (name.partition(OF) for name in required if OF in name):
            found += [(v, f) for v, f in self.findings(ability) if is_about(f, thing) and self._takes_away(v, f)]
        return found

    def findings(self, ability: str) -> list[tuple[Verdict, Finding]]:
        """All findings of the checks that guard ``ability``, however mild."""
        return [(v, f) for v in self.concerned((ability,)) for f in v.findings]

    def doubt(self, required: Sequence[str], *, untold: Collection[str] = ()) -> str | None:
        """Why the abilities can't be called there: an undecided check, or one that nothing has looked at.

        A check that waits only for sections in ``untold`` does not count: a prediction does without them. Nor does one thing's
        own ability ("run:zero2"): it is taken away by what was seen, and nobody has to look.
        """
        concerned = self.concerned(required)
        for verdict in concerned:
            waits = verdict.status is Status.UNKNOWN and verdict.waits_for and set(verdict.waits_for) <= set(untold)
            undecided = verdict.status in (Status.UNKNOWN, Status.CRASHED) and not waits
            if undecided and verdict.severity is Severity.ERROR:
                return f"{verdict.code}: {verdict.reason}"
        seen = {a for v in concerned if v.status in (Status.PASSED, Status.FAILED) for a in self._guards[v.code]}
        unseen = [ability for ability in required if ability not in seen and OF not in ability]
        return f"no check has looked at {', '.join(unseen)}" if unseen else None

    def proof(self, ability: str) -> Proof:
        """The best proof with which a check of ``ability`` passed."""
        passed = [v.proof for v in self._guarding.get(ability, ()) if v.status is Status.PASSED]
        return max(passed, key=lambda proof: proof.rank, default=Proof.DECLARED)

    def _takes_away(self, verdict: Verdict, finding: Finding) -> bool:
        """An ERROR takes an ability away. So does a finding that an ERROR check calls a mere note because nobody asked
        for the ability (libaio is missing, nothing names an NVMe path): the ability is not there all the same."""
        severity = finding_severity(finding, verdict)
        unasked = severity is Severity.INFO and self._severity.get(verdict.code) is Severity.ERROR
        return severity is Severity.ERROR or unasked
