"""Smoke runs as one page that needs nothing else: the same rows and parts as the text, and the curves as pictures."""

from collections.abc import Iterator

from dsdoctor.facts import SmokeRun
from dsdoctor.model import Report
from dsdoctor.render import html, svg
from dsdoctor.render.curves import bands, charts
from dsdoctor.render.html import h
from dsdoctor.render.plain import one_line
from dsdoctor.render.smoke_details import Line, Part, parts, setup, title
from dsdoctor.render.smoke_summary import CAUTION, COLUMNS, cells, sentence, sound

STYLE = """
.ok{color:#1a7f37;font-weight:600}.dim{opacity:.7}section{margin-top:2.5rem}
.track{display:block;position:relative;width:12rem;height:.7em;background:#8884}.track i{position:absolute;top:0;bottom:0;background:#1c6fd1}
@media(prefers-color-scheme:dark){.ok{color:#6fdd8b}.track i{background:#74b0ff}}"""


def render(report: Report) -> str:
    """The page. Redaction is the caller's business, as with every format."""
    smoke = report.facts.smoke
    if smoke is None or not smoke.runs:
        missing = report.facts.unavailable.get("smoke")
        body = [f"<h1>No smoke run was made</h1><p>{h(missing.detail if missing else '')}</p>", *html.about(report)]
        return html.page("dsdoctor smoke", body, report)
    body = [f"<h1>{h(sentence(smoke))}</h1>", *html.about(report), *_rows(smoke.runs), f"<p>{CAUTION}</p>"]
    body += [f"<p>{h(report.summary)}</p>", *html.findings(report)]
    body += html.plan(report) if report.plan else []
    for number, run in enumerate(smoke.runs):
        if run.outcome != "not-applicable":
            body += _run(run, number)
    return html.page("dsdoctor smoke", body, report, STYLE + svg.STYLE)


def _rows(runs: tuple[SmokeRun, ...]) -> list[str]:
    rows = [(number, run, cells(run)) for number, run in enumerate(runs)]
    used = [n for n in range(len(COLUMNS)) if n < 2 or any(row[n] for _, _, row in rows)]
    head = "".join(f"<th>{COLUMNS[n]}</th>" for n in used)
    return ["<table>", f"<tr>{head}</tr>", *(_row(number, run, row, used) for number, run, row in rows), "</table>"]


def _row(number: int, run: SmokeRun, row: tuple[str, ...], used: list[int]) -> str:
    if run.outcome == "not-applicable":
        because = h(run.because or "the reason is not known")
        return f'<tr class="dim"><td>{h(row[0])}</td><td colspan="{len(used) - 1}">not applicable: {because}</td></tr>'
    css = "ok" if sound(run) else "warning" if run.outcome == "ok" else "error"
    first = f'<td><a href="#run-{number}">{h(row[0])}</a></td><td class="{css}">{h(row[1])}</td>'
    return f"<tr>{first}{''.join(f'<td>{h(row[n])}</td>' for n in used[2:])}</tr>"


def _run(run: SmokeRun, number: int) -> Iterator[str]:
    yield f'<section id="run-{number}"><h2>{h(one_line(title(run)))}</h2><p>{h(setup(run))}</p>'
    drawn = charts(run)
    behind = bands(run)
    for part in parts(run, 2):
        if part.label != "curves":  # they are drawn below
            yield from _part(part)
    for chart in drawn:
        yield f"<figure>{svg.draw(chart, behind)}</figure>"
    if behind and any(chart.unit != "loss" for chart in drawn):
        names = ", ".join(f"{n} {one_line(band.name)}" for n, band in enumerate(behind, 1))
        yield f"<p>The shaded bands are the phases: {h(names)}.</p>"
    yield "</section>"


def _part(part: Part) -> Iterator[str]:
    yield f"<h3>{h(part.label)}</h3>"
    if len(part.says) == 1:
        yield f"<p>{h(part.says[0])}</p>"
    elif part.says:
        yield f"<ul>{''.join(f'<li>{h(said)}</li>' for said in part.says)}</ul>"
    if part.lines:
        head = f"<tr>{''.join(f'<th>{h(name)}</th>' for name in part.header)}</tr>" if part.header else ""
        yield f"<table>{head}{''.join(map(_line, part.lines))}</table>"
    if part.verbatim is not None:
        yield f"<pre>{h(part.verbatim)}</pre>"


def _line(line: Line) -> str:
    first, *rest = (f"<td>{h(cell)}</td>" for cell in line.cells)
    return f"<tr>{first}{_track(*line.slice) if line.slice else ''}{''.join(rest)}</tr>"


def _track(start: float, share: float) -> str:
    """A slice of the whole as a bar."""
    left = min(max(start, 0.0), 1.0)
    width = min(max(share, 0.005), 1.0 - left)
    return f'<td><span class="track"><i style="left:{left:.1%};width:{width:.1%}"></i></span></td>'
