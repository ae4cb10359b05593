"""The report for people: what this machine is, what is wrong, what can run, what to type."""

from collections.abc import Iterable, Iterator, Sequence

from dsdoctor.model import Capability, Finding, Report, Severity, Status, Step, Verdict
from dsdoctor.plan import counted_findings
from dsdoctor.render.page import Page
from dsdoctor.render.smoke_summary import sentence
from dsdoctor.render.undecided import undecided

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)
_OPS_SHOWN = 4
CODES_SHOWN = 12  # of the checks that wait for one thing; -v shows all


def render(report: Report, *, width: int = 80, color: bool = False, unicode: bool = True, verbosity: int = 0) -> str:
    """The report as text. ``verbosity``: -1 summary and findings only, 0 normal, 1 with evidence and passed checks."""
    page = Page(width, color, unicode)
    if verbosity >= 0:
        _first_lines(page, report)
    page.add()
    page.wrap(report.summary)
    if report.interrupted:
        page.wrap("Interrupted: this is what was known by then.")
    add_findings(page, report, verbosity)
    if verbosity >= 0:
        _capabilities(page, report.capabilities)
        _ops(page, report)
        _smoke(page, report)
        add_plan(page, report)
        add_unknowns(page, report, verbosity)
        _ignored(page, report)
        if report.problems:
            page.heading("Left out")
            for problem in report.problems:
                page.wrap(problem, f"  {page.bullet} ")
        if verbosity > 0:
            _passed(page, report)
        _last_lines(page, report)
    return page.text().lstrip("\n")


def _first_lines(page: Page, report: Report) -> None:
    platform = report.platform
    page.wrap(platform.headline)
    for label, text in (("can", platform.can), ("cannot", platform.cannot), ("instead", platform.instead)):
        if text:
            page.wrap(text, f"  {label + ':':9}")
    page.wrap(report.patient, "patient: ")
    purpose = report.facts.purpose
    if purpose is not None:
        how = "guessed: " if purpose.guessed else ""
        page.wrap(f"{purpose.name} ({how}{purpose.because}; change it with --purpose)", "purpose: ")


def add_findings(page: Page, report: Report, verbosity: int) -> None:
    """Errors, warnings and what is good to know, the worst first."""
    found = counted_findings(report.verdicts)
    explained = {c.cause: c.explained_by for c in report.causes if c.explained_by}
    for severity in _ORDER:
        mine = [(v, f) for s, v, f in found if s is severity]
        if not mine or (severity is Severity.INFO and verbosity < 0):
            continue
        page.heading({"error": "Errors", "warning": "Warnings", "info": "Good to know"}[severity.value])
        for verdict, finding in mine:
            _finding(page, severity, verdict, finding, explained.get(finding.cause), verbosity)


def _finding(
    page: Page, severity: Severity, verdict: Verdict, finding: Finding, root: str | None, verbosity: int
) -> None:
    tag = f"[{severity.value.upper()}] {verdict.code} "
    start = len(page.lines)
    cause = f"a symptom of {root}" if root else f"cause: {finding.cause}"
    page.wrap(f"{finding.message} ({cause})", tag, "    ")
    page.lines[start] = page.paint(tag, severity.value) + page.lines[start][len(tag) :]
    if verbosity > 0:
        for evidence in finding.evidence:
            page.wrap(f"{evidence.where}: {evidence.text}", f"    {page.bullet} ")
        page.add(page.paint(f"    cause: {finding.cause}, proof: {verdict.proof.value}", "dim"))


def _capabilities(page: Page, capabilities: Iterable[Capability]) -> None:
    items = list(capabilities)
    if not items:
        return
    page.heading("What can I run here?")
    title = max(len(c.title) for c in items)
    for item in items:
        state = item.state.replace("_", " ")
        detail = {
            "ready": f"proof: {item.proof.value}",
            "blocked": f"by {', '.join(item.blocked_by)}" if item.blocked_by else item.because or "",
            "unknown": f"because {item.because}",
            "not_applicable": item.because or "",
        }[item.state]
        first = f"  {item.title:{title}}  {state:14} "
        if len(first) + 20 > page.width:  # no room for columns
            page.wrap(f"{state}: {item.title} ({detail})", "  ", "    ")
            continue
        start = len(page.lines)
        page.wrap(detail, first)
        page.lines[start] = page.lines[start].replace(f"  {state}", f"  {page.paint(state, state)}", 1)


def _ops(page: Page, report: Report) -> None:
    """Where ds_report errs about ops: the table of `dsdoctor ops` in one line."""
    wrong = [op.name for op in report.ops if op.differs]
    if wrong:
        shown = ", ".join(wrong[:_OPS_SHOWN]) + (", ..." if len(wrong) > _OPS_SHOWN else "")
        page.wrap(
            f"ds_report is wrong about {len(wrong)} of {len(report.ops)} ops ({shown}): see `dsdoctor ops`.", "  "
        )


def _smoke(page: Page, report: Report) -> None:
    """What was trained, in one sentence."""
    if report.facts.smoke is not None:
        page.wrap(f"Smoke runs: {sentence(report.facts.smoke)}.", "  ")


def add_plan(page: Page, report: Report, steps: Sequence[Step] | None = None) -> None:
    """The steps that mend it, with their commands: all, or some of them, which are what a log calls for."""
    if not report.plan and report.outcome == "healthy":
        page.heading("Plan")
        page.add("  Nothing to mend.")
    if not (report.plan if steps is None else steps):
        return
    page.heading("Plan")
    for number, step in enumerate(report.plan if steps is None else steps, 1):
        if number > 1:
            page.add()
        safety = {"safe": "", "careful": " [careful]", "manual": " [by hand]"}[step.safety]
        page.wrap(f"{step.order}{safety}", f"  {number}. ")
        page.wrap(f"why: {step.why}", "     ")
        for command in step.commands:
            page.command(command, "       ")
        if step.note:
            page.wrap(step.note, "     ")
        if step.verify:
            page.add("     then check with:")
            page.command(step.verify, "       ")
        if steps is None:
            page.wrap(f"clears {', '.join(step.clears)}", "     ")


def add_unknowns(page: Page, report: Report, verbosity: int) -> None:
    """Undecided checks under what they wait for."""
    groups = undecided(report)
    if groups:
        page.heading("Could not be decided")
    for reason, codes in groups.items():
        shown = codes if verbosity > 0 or len(codes) <= CODES_SHOWN + 1 else codes[:CODES_SHOWN]
        more = f" and {len(codes) - len(shown)} more" if len(shown) < len(codes) else ""
        page.wrap(f"{reason}: {', '.join(shown)}{more}", f"  {page.bullet} ")


def _ignored(page: Page, report: Report) -> None:
    ignored = [v for v in report.verdicts if v.ignored is not None and v.status is Status.FAILED]
    if ignored:
        page.heading("Ignored by your settings")
        for verdict in ignored:
            page.wrap(f"{verdict.code} {verdict.findings[0].message} (reason: {verdict.ignored})", f"  {page.bullet} ")


def _passed(page: Page, report: Report) -> None:
    passed = [v for v in report.verdicts if v.status is Status.PASSED]
    if passed:
        page.heading("Passed")
        for verdict in passed:
            page.wrap(f"{verdict.title} [{verdict.proof.value}]", f"  {verdict.code:9}")
    skipped = [v for v in report.verdicts if v.status is Status.NOT_APPLICABLE]
    if skipped:
        page.heading("Not applicable")
        for verdict in skipped:
            page.wrap(f"{verdict.reason}", f"  {verdict.code:9}")


def _last_lines(page: Page, report: Report) -> None:
    page.add()
    page.wrap(", ".join(_counts(report)) + (f" in {report.seconds:.1f} s." if report.seconds is not None else "."))
    page.wrap(_next_step(report))


def _counts(report: Report) -> Iterator[str]:
    counts = report.counts
    yield f"{counts.passed} checks passed"
    yield f"{counts.failed} found something"
    if counts.unknown + counts.crashed:
        yield f"{counts.unknown + counts.crashed} undecided"
    yield f"{counts.not_applicable} do not apply here"


def _next_step(report: Report) -> str:
    if report.interrupted:
        return "Next: run `dsdoctor check` again and let it end."
    if report.plan:
        code = report.plan[0].clears[0]
        return f"Next: step 1, then run `dsdoctor check` again (`dsdoctor explain {code}` tells more)."
    if report.outcome == "incomplete":
        return "Next: see what could not be decided (`dsdoctor explain CODE` tells what a check looks at)."
    if report.facts.smoke is None:
        return "Next: `dsdoctor check --smoke` proves it by training a tiny model."
    return "Next: start your run; there is nothing to mend."
