"""What killed a run, for people: the answer first, then how it went, what else it may be, what to type."""

from dsdoctor.model import Link, Report, Story
from dsdoctor.render.page import Page
from dsdoctor.render.plain import cut
from dsdoctor.render.story import headline, likely, meaning, nearest, reason, said, steps, sure
from dsdoctor.render.text import add_plan, add_unknowns
from dsdoctor.render.told import told

CAUSES = 5  # that are shown without -v


def render(report: Report, *, width: int = 80, color: bool = False, unicode: bool = True, verbosity: int = 0) -> str:
    """The report of a triage as text. ``verbosity``: 1 with all causes, all evidence and what could not be decided."""
    page = Page(width, color, unicode)
    story = report.story or Story(fell=False, recognised=False)
    _answer(page, report, story)
    _chain(page, report, story)
    _causes(page, report, verbosity)
    add_plan(page, report, steps(report))
    _collect(page, story)
    _harmless(page, report, story)
    if verbosity > 0:
        add_unknowns(page, report, verbosity)
    for problem in report.problems:
        page.wrap(problem, f"  {page.bullet} left out: ")
    _read(page, report)
    return page.text().lstrip("\n")


def _answer(page: Page, report: Report, story: Story) -> None:
    page.wrap(page.paint(headline(report), "error" if story.fell else "heading"))
    if why := reason(report):
        page.wrap(why, "  ")
    for link in story.tail:
        _line(page, report, link)


def _chain(page: Page, report: Report, story: Story) -> None:
    if not story.chain:
        return
    page.heading("What happened")
    for number, link in enumerate(story.chain, 1):
        _line(page, report, link, f"{number}.")
        if told := meaning(link, number):
            page.wrap(told, "       ")


def _line(page: Page, report: Report, link: Link, number: str = "") -> None:
    rank = "" if link.rank is None else f" rank {link.rank}:"
    times = f" (x{link.count})" if link.count > 1 else ""
    page.add(f"  {number:3} {page.paint(nearest(link.where, report), 'dim')}{rank}{times}")
    page.add("       " + cut(said(link), max(page.width - 7, 40), unicode=page.unicode))


def _causes(page: Page, report: Report, verbosity: int) -> None:
    causes = likely(report)
    shown = causes if verbosity > 0 else causes[:CAUSES]
    if len(shown) < 2 and verbosity < 1:
        return
    page.heading("Causes, the surest first")
    for number, cause in enumerate(shown, 1):
        symptom = f", a symptom of {cause.explained_by}" if cause.explained_by else ""
        page.wrap(f"{cause.title} ({sure(cause)}; {cause.cause}{symptom})", f"  {number}. ")
        for evidence in cause.evidence if verbosity > 0 else cause.evidence[:2]:
            page.add(
                "     "
                + cut(f"{nearest(evidence.where, report)}  {evidence.text}", page.width - 5, unicode=page.unicode)
            )
    if len(causes) > len(shown):
        page.add(f"  and {len(causes) - len(shown)} more (-v)")


def _collect(page: Page, story: Story) -> None:
    if story.collect:
        page.heading("What to collect next")
        for thing in story.collect:
            page.wrap(thing, f"  {page.bullet} ")


def _harmless(page: Page, report: Report, story: Story) -> None:
    if story.harmless:
        page.heading("Seen, harmless")
        for link in story.harmless:
            page.add("  " + cut(f"{nearest(link.where, report)}  {link.text}", page.width - 2, unicode=page.unicode))
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
