"""All that a report says about one check, one step, one capability or the machine, as something to read."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from dsdoctor.judge import finding_severity
from dsdoctor.model import Capability, Finding, OpVerdict, Remedy, Report, Status, Step, Verdict
from dsdoctor.render.ops import SAID
from dsdoctor.tui.state import OP_WORDS, PROOF_WORDS, STATE_WORDS, STYLES, Family, undecided, word
from dsdoctor.tui.widgets.text import clean, indent, labelled, say, shell, state

_BLANK = Text("")


def check_detail(report: Report, verdict: Verdict, rationale: str | None) -> Iterator[RenderableType]:
    """One check: title, status, reason, findings with evidence, cause and remedy, and why it matters."""
    yield Text.assemble((verdict.code, "bold"), "  ", state(word(verdict)))
    yield say(verdict.title) if verdict.status is Status.PASSED else labelled("Healthy is", verdict.title)
    if verdict.ignored is not None:
        yield labelled("Ignored because", verdict.ignored)
    if verdict.reason:
        yield labelled("Reason", verdict.reason)
    if verdict.waits_for:
        yield labelled("Waits for", ", ".join(verdict.waits_for))
    for number, finding in enumerate(verdict.findings, 1):
        yield _BLANK
        of = f" {number} of {len(verdict.findings)}" if len(verdict.findings) > 1 else ""
        yield _heading(f"Found{of}")
        yield from _finding(report, verdict, finding)
    if verdict.status in (Status.PASSED, Status.FAILED):
        yield _BLANK
        yield labelled("Proof", PROOF_WORDS[verdict.proof])
    if rationale:
        yield _BLANK
        yield _heading("Why it matters")
        yield indent(say(rationale))


def _finding(report: Report, verdict: Verdict, finding: Finding) -> Iterator[RenderableType]:
    severity = finding_severity(finding, verdict).value.upper()
    yield indent(Text.assemble(state(severity), " ", clean(finding.message)))
    if finding.subject:
        yield indent(labelled("About", finding.subject))
    for evidence in finding.evidence:
        yield indent(labelled(clean(evidence.where), evidence.text), 4)
    cause = next((c for c in report.causes if c.cause == finding.cause), None)
    yield indent(labelled("Cause", f"{cause.title} ({finding.cause})" if cause else finding.cause))
    if cause and cause.explained_by:
        root = next((c.title for c in report.causes if c.cause == cause.explained_by), cause.explained_by)
        yield indent(labelled("A symptom of", root))
    if finding.remedy:
        yield from (indent(part) for part in _remedy(finding.remedy))


def _remedy(remedy: Remedy) -> Iterator[RenderableType]:
    yield labelled("To do", f"{remedy.order} ({remedy.safety})")
    if remedy.commands:
        yield shell(remedy.commands)
    if remedy.verify:
        yield labelled("Proves it", "")
        yield shell([remedy.verify])
    if remedy.note:
        yield labelled("Note", remedy.note)


def family_detail(family: Family) -> Iterator[RenderableType]:
    """A family: its counts, and why some of its checks could not be decided."""
    yield say(family.name, "bold")
    for found, number in family.counts.items():
        yield Text.assemble(state(found, 8), f" {number}")
    yield from undecided_detail(family.verdicts)
    yield _BLANK
    yield say("Enter opens and closes a family.")


def undecided_detail(verdicts: Iterable[Verdict]) -> Iterator[RenderableType]:
    """What the undecided checks wait for; nothing when all are decided."""
    for why, codes in undecided(verdicts).items():
        yield _BLANK
        yield labelled(f"{len(codes)} undecided" if len(codes) > 1 else codes[0], why)
        if len(codes) > 1:
            yield indent(say(" ".join(codes), "dim"))


def no_plan_detail(report: Report) -> Iterator[RenderableType]:
    """One line that there is nothing to mend; below it, what could not be decided."""
    yield say(f"{'Nothing to mend was found' if report.outcome == 'incomplete' else 'Nothing to do'}. {report.summary}")
    yield from undecided_detail(report.verdicts)


def step_detail(step: Step) -> Iterator[RenderableType]:
    """One step of the plan: what to type, why, and what proves that it worked."""
    yield Text.assemble((f"Step {step.number}", "bold"), "  ", state(step.severity.value.upper()), f"  {step.safety}")
    yield say(step.order, "bold")
    yield _BLANK
    if step.commands:
        yield _heading("Type")
        yield shell(step.commands)
    else:
        yield say("No command does this; it is done by hand.")
    if step.verify:
        yield _heading("Then this proves that it worked")
        yield shell([step.verify])
    if step.note:
        yield labelled("Note", step.note)
    yield _BLANK
    yield labelled("Why", step.why)
    yield labelled("Cause", step.cause)
    yield labelled("Clears", ", ".join(step.clears) or "nothing that a check counts")


def capability_detail(capability: Capability) -> Text:
    """One line about a capability, in full."""
    word_ = STATE_WORDS[capability.state]
    text = Text.assemble((word_, STYLES[word_]), " ", (clean(capability.title), "bold"), ": ")
    if capability.state == "ready":
        return text.append(PROOF_WORDS[capability.proof])
    if capability.blocked_by:
        text.append(f"blocked by {', '.join(capability.blocked_by)}. Enter shows {capability.blocked_by[0]}.")
    return text.append(clean(capability.because or ""))


def op_detail(op: OpVerdict) -> Text:
    """One op, in full: why it fails or how it is known, and what uses it."""
    word_ = OP_WORDS[op.state]
    text = Text.assemble((word_, STYLES[word_]), " ", (clean(op.name), "bold"), ": ")
    if op.because:
        text.append(clean(op.because) + (f" (cause: {op.cause})" if op.cause else ""))
    else:
        text.append(PROOF_WORDS[op.proof])
    text.append(f". ds_report says {SAID[op.said]}" + (", which is wrong." if op.differs else "."))
    text.append(clean(f" Used by: {'; '.join(op.features)}." if op.features else ""))
    return text.append(f" Enter shows {op.blocked_by[0]}." if op.blocked_by else "")


def _heading(title: str) -> Text:
    return Text(title, style="bold underline")
