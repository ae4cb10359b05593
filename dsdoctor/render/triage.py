"""What killed a run, for people: the answer first, then how it went, what else it may be, what to type."""

from dsdoctor.model import Cause, Link, Report, Step, Story
from dsdoctor.render.plain import cut
from dsdoctor.render.text import Page, add_plan, add_unknowns
from dsdoctor.render.told import told

CAUSES = 5  # that are shown without -v
SURE = 0.6
LIKELY = 0.25  # below it a cause is one of the machine, not of the run
_KINDS = {"cause": "cause", "exception": "raised", "mask": "last words", "collateral": "followed", "exit": "ended", "harmless": ""}  # fmt: skip


def render(report: Report, *, width: int = 80, color: bool = False, unicode: bool = True, verbosity: int = 0) -> str:
    """The report of a triage as text. ``verbosity``: 1 with all causes, all evidence and what could not be decided."""
    page = Page(width, color, unicode)
    story = report.story or Story(fell=False, recognised=False)
    _answer(page, report, story)
    _chain(page, story)
    _causes(page, report, verbosity)
    add_plan(page, report, steps(report))
    _harmless(page, story)
    if verbosity > 0:
        add_unknowns(page, report, verbosity)
    _read(page, report)
    return page.text().lstrip("\n")


def likely(report: Report) -> list[Cause]:
    """The causes that may have killed the run, the surest first."""
    return [cause for cause in report.causes if (cause.confidence or 0.0) > LIKELY]


def steps(report: Report) -> list[Step]:
    """What to do: for what surely killed the run, or, when nothing did so surely, for all that may have."""
    causes = likely(report)
    sure = [cause for cause in causes if (cause.confidence or 0.0) >= SURE] or causes
    wanted = {cause.cause for cause in sure}
    return [step for step in report.plan if step.cause in wanted]


def _answer(page: Page, report: Report, story: Story) -> None:
    causes = likely(report)
    if causes:
        first = causes[0]
        page.wrap(page.paint(f"{first.title}", "error") + f" ({_sure(first)}; {first.cause})")
        why = next((step.why for step in report.plan if step.cause == first.cause), "")
        page.wrap(why, "  ")
    elif story.fell:
        page.wrap("Not recognised: the run fell, and no line tells why.")
        for link in story.tail:
            _line(page, link)
        if story.collect:
            page.heading("What to collect next")
            for thing in story.collect:
                page.wrap(thing, f"  {page.bullet} ")
    else:
        page.wrap("Nothing in this text says that a run fell.")


def _sure(cause: Cause) -> str:
    """Confidence in a word: a number would promise more than it holds."""
    sure = cause.confidence or 0.0
    return "certain" if sure >= 0.9 else "likely" if sure >= 0.6 else "possible"


def _chain(page: Page, story: Story) -> None:
    if not story.chain:
        return
    page.heading("What happened")
    for number, link in enumerate(story.chain, 1):
        _line(page, link, f"{number}.")
        if link.means and link.kind != "exit" and (number > 1 or link.kind != "cause"):  # the answer has said it
            page.wrap(f"{_KINDS[link.kind]}: {link.means}", "       ")


def _line(page: Page, link: Link, number: str = "") -> None:
    rank = "" if link.rank is None else f" rank {link.rank}:"
    signal = f" ({link.means})" if link.kind == "exit" and link.means and link.means not in link.text else ""
    times = f" (x{link.count})" if link.count > 1 else ""
    page.add(f"  {number:3} {page.paint(link.where, 'dim')}{rank}{times}")
    page.add("       " + cut(link.text + signal, max(page.width - 7, 40), unicode=page.unicode))


def _causes(page: Page, report: Report, verbosity: int) -> None:
    causes = likely(report)
    shown = causes if verbosity > 0 else causes[:CAUSES]
    if len(shown) < 2 and verbosity < 1:
        return
    page.heading("Causes, the surest first")
    for number, cause in enumerate(shown, 1):
        symptom = f", a symptom of {cause.explained_by}" if cause.explained_by else ""
        page.wrap(f"{cause.title} ({_sure(cause)}; {cause.cause}{symptom})", f"  {number}. ")
        for evidence in cause.evidence if verbosity > 0 else cause.evidence[:2]:
            page.add("     " + cut(f"{evidence.where}  {evidence.text}", page.width - 5, unicode=page.unicode))
    if len(causes) > len(shown):
        page.add(f"  and {len(causes) - len(shown)} more (-v)")


def _harmless(page: Page, story: Story) -> None:
    if story.harmless:
        page.heading("Seen, harmless")
        for link in story.harmless:
            page.add("  " + cut(f"{link.where}  {link.text}", page.width - 2, unicode=page.unicode))
            page.wrap(link.means or "", "       ")


def _read(page: Page, report: Report) -> None:
    log = report.facts.log
    if log is None:
        return
    page.add()
    for file in log.files:
        packed = f", {file.packed}" if file.packed else ""
        cut_off = f"; {file.cut}" if file.cut else ""
        page.wrap(f"read {file.name}: {file.lines} lines{packed} ({', '.join(file.kinds)}){cut_off}")
    if words := told(report.facts):
        page.wrap(f"it tells: {words}")
