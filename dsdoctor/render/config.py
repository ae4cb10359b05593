"""What is wrong with a ds_config, as linters tell it: the place, the sentence, the line with a mark, and the mend.

Findings stand in the order of the file, whatever their severity: it is mended from top to bottom, and two findings of one line
are neighbours. What is only advice comes after them, a line each.
"""

import re
from collections.abc import Iterator, Sequence

from dsdoctor.config_examination import Judged
from dsdoctor.model import Finding, Severity, Status, Verdict
from dsdoctor.plan import counted_findings
from dsdoctor.readers.config_spans import spans
from dsdoctor.render.config_summary import add_summary
from dsdoctor.render.excerpt import Mark, add_excerpt, lines_of
from dsdoctor.render.page import Page
from dsdoctor.render.place import Place, place_in, place_of
from dsdoctor.render.plain import clean

Told = tuple[Severity, Verdict, Finding]


def render(
    files: Sequence[Judged], *, width: int = 80, color: bool = False, unicode: bool = True, verbosity: int = 0
) -> str:
    """A block for each file with findings, and what they come to. ``verbosity`` 1: also evidence and checks that passed."""
    page = Page(width, color, unicode)
    for judged in files:
        _file(page, judged, verbosity)
    add_summary(page, files)
    return page.text().lstrip("\n")


def _file(page: Page, judged: Judged, verbosity: int) -> None:
    found = sorted(counted_findings(judged.report.verdicts), key=lambda told: _order(judged, told[2]))
    shown: tuple[str, list[Mark]] | None = None
    for told in (told for told in found if told[0] is not Severity.INFO):
        page.add()
        _finding(page, judged, told, verbosity)
        file = place.file if (place := place_of(told[2])) else judged.name
        marks = list(_marks(judged, told[2], file))
        if (file, marks) != shown:
            text = judged.text if file == judged.name else judged.beside.get(file)
            add_excerpt(page, lines_of(text or ""), marks)
        shown = file, marks
        _mend(page, judged, told[2])
    _advice(page, judged, [told for told in found if told[0] is Severity.INFO], verbosity)
    if verbosity > 0:
        _checked(page, judged)


def _order(judged: Judged, finding: Finding) -> tuple[bool, int, int]:
    """Of the whole file, then in the order of the file, then what stands in other files."""
    place = place_of(finding)
    return (place is not None and place.file != judged.name, place.line if place else 0, place.column if place else 0)


def _finding(page: Page, judged: Judged, told: Told, verbosity: int) -> None:
    """``file:line:column: error CFG004 sentence``."""
    severity, verdict, finding = told
    place = place_of(finding)
    head = f"{clean(':'.join(map(str, place)) if place else _whole(judged, finding))}: "
    tag = f"{severity.value} {verdict.code}"
    start = len(page.lines)
    page.wrap(f"{head}{tag} {_sentence(judged, finding)}", "", "    ")
    page.lines[start] = page.lines[start].replace(f"{head}{tag}", f"{head}{page.paint(tag, severity.value)}", 1)
    if verbosity > 0:
        for evidence in finding.evidence[1:]:
            page.wrap(f"{_short(judged, evidence.where)}: {evidence.text}", f"    {page.bullet} ")
        page.add(page.paint(f"    cause: {finding.cause}, proof: {verdict.proof.value}", "dim"))


def _whole(judged: Judged, finding: Finding) -> str:
    """The file of a finding that has no place in it."""
    where = finding.evidence[0].where if finding.evidence else ""
    return where if where in judged.beside else judged.name


def _sentence(judged: Judged, finding: Finding) -> str:
    """The message without the place that stands before it."""
    where = finding.evidence[0].where if finding.evidence else judged.name
    return _short(judged, finding.message.removeprefix(f"{where}: ").removeprefix(f"{judged.name} "))


def _short(judged: Judged, text: str) -> str:
    """``text`` with ``line 4`` for the places in the file that it is all about."""
    return re.sub(rf"{re.escape(judged.name)}:(\d+):\d+", r"line \1", text)


def _marks(judged: Judged, finding: Finding, file: str) -> Iterator[Mark]:
    """What to show of ``file``: where the finding stands, and what else it names there."""
    places = [place_in(evidence.where) for evidence in finding.evidence]
    first = places[0] if places else None
    for place in dict.fromkeys(places):
        if isinstance(place, Place) and place.file == file:
            yield Mark(place.line, place.column, finding.subject is not None, place == first)
    twins = [edit.key for edit in finding.remedy.edits if edit.action == "drop-twins"] if finding.remedy else []
    text = (judged.text or "").removeprefix("\ufeff")
    for span in [span for span in spans(text) if span.path in twins][:-1] if twins else ():
        start = text.rfind("\n", 0, span.key) + 1
        yield Mark(text.count("\n", 0, span.key) + 1, span.key - start + 1, True, False)


def _mend(page: Page, judged: Judged, finding: Finding) -> None:
    """The order, the commands, and whether --fix does it."""
    remedy = finding.remedy
    if remedy is None:
        return
    place = place_of(finding)
    order = remedy.order.replace(f" ({':'.join(map(str, place))})", "") if place else remedy.order
    done = remedy.edits and judged.safe.issuperset(remedy.edits)
    note = f" ({remedy.note})" if remedy.note else ""
    start = len(page.lines)
    page.wrap(f"mend: {_short(judged, order)}{note}{' [--fix does it]' if done else ''}", "  ", "    ")
    page.lines[start] = page.lines[start].replace("mend:", page.paint("mend:", "ready"), 1)
    for command in remedy.commands:
        page.command(command, "    $ ")


def _advice(page: Page, judged: Judged, found: list[Told], verbosity: int) -> None:
    """Advice, a line each; what could be left out is one line together."""
    idle = [told for told in found if _idle(judged, told[2])] if verbosity <= 0 else []
    rest = [told for told in found if told not in idle]
    if rest or idle:
        page.add()
    for told in rest:
        _finding(page, judged, told, verbosity)
        if verbosity > 0:
            _mend(page, judged, told[2])
    if idle:
        lines = sorted({line for _, _, finding in idle for line in _lines(finding)})
        page.wrap(
            f"{clean(judged.name)}: {page.paint('info', 'info')} {', '.join(sorted({v.code for _, v, _ in idle}))} "
            f"what stands in line{'s' if len(lines) > 1 else ''} {_ranges(lines)} has no effect or says the default "
            "(-v tells why, --lean prints the file without it)",
            "",
            "    ",
        )


def _idle(judged: Judged, finding: Finding) -> bool:
    edits = finding.remedy.edits if finding.remedy else ()
    return bool(edits) and judged.lean.issuperset(edits) and all(edit.action == "remove" for edit in edits)


def _lines(finding: Finding) -> Iterator[int]:
    yield from (place.line for evidence in finding.evidence if (place := place_in(evidence.where)))


def _ranges(numbers: list[int]) -> str:
    """1, 3-5, 9."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1] = parts[-1][0], number
        else:
            parts.append((number, number))
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def _checked(page: Page, judged: Judged) -> None:
    """What passed and what has no place here."""
    for status, title in ((Status.PASSED, "Passed"), (Status.NOT_APPLICABLE, "Does not apply")):
        mine = [v for v in judged.report.verdicts if v.status is status]
        if mine:
            page.heading(f"{title} ({clean(judged.name)})")
        for verdict in mine:
            page.wrap(verdict.title if status is Status.PASSED else verdict.reason or "", f"  {verdict.code:9}")
