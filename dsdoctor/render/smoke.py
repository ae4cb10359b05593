"""Smoke runs for people: a row for each, what there is to tell of it, and what is wrong with the machine."""

from dsdoctor.facts import Smoke, SmokeRun
from dsdoctor.model import Report
from dsdoctor.render.page import Page
from dsdoctor.render.plain import clean, cut, one_line
from dsdoctor.render.smoke_details import Line, Part, parts, setup, title
from dsdoctor.render.smoke_summary import CAUTION, COLUMNS, cells, sound, word
from dsdoctor.render.spark import slice_of, sparkline
from dsdoctor.render.text import add_findings, add_plan

_GIVE_WAY = (
    "time",
    "dtype",
    "peak VRAM",
    "steady steps",
    "first step",
    "ranks",
    "loss",
)  # on a narrow page, in this order
_LABELS = {"first step": "first step ", "steady steps": "steady steps ", "peak VRAM": "peak VRAM ", "loss": "loss "}
_STYLES = {"ok": "ready", "wrong": "unknown", "not applicable": "not applicable"}
_CELL = 28  # characters of a cell; only a strange machine has more
_DRAWING = 24  # characters of a bar or curve where there is room


def render(
    told: Report | Smoke, *, width: int = 80, color: bool = False, unicode: bool = True, verbosity: int = 0
) -> str:
    """``verbosity``: -1 rows and findings only, 0 what says something, 1 every part of every run."""
    page = Page(width, color, unicode)
    smoke = told if isinstance(told, Smoke) else told.facts.smoke
    if smoke is None or not smoke.runs:
        page.wrap(f"No smoke run was made{_why(told)}.")
    else:
        _rows(page, smoke.runs)
        if verbosity >= 0:
            for run in smoke.runs:
                add_run(page, run, _depth(run, smoke.runs, verbosity))
            if any(run.outcome != "not-applicable" for run in smoke.runs):
                page.add()
                page.wrap(CAUTION)
    if isinstance(told, Report):
        _diagnosis(page, told, verbosity)
    return page.text()


def _why(told: Report | Smoke) -> str:
    missing = told.facts.unavailable.get("smoke") if isinstance(told, Report) else None
    return f": {missing.detail}" if missing is not None else ""


def _depth(run: SmokeRun, runs: tuple[SmokeRun, ...], verbosity: int) -> int:
    """A run that is alone or did not go well is told in full."""
    if verbosity > 0:
        return 2
    return int(not sound(run) or len([r for r in runs if r.outcome != "not-applicable"]) == 1)


def _rows(page: Page, runs: tuple[SmokeRun, ...]) -> None:
    """The table; what a narrow page has no column for follows below its row."""
    whole = [(run, dict(zip(COLUMNS, cells(run), strict=True))) for run in runs]
    rows = [(run, {name: cut(cell, _CELL, unicode=page.unicode) for name, cell in row.items()}) for run, row in whole]
    run_rows = [row for run, row in rows if run.outcome != "not-applicable"]
    used = [name for name in COLUMNS if name in COLUMNS[:2] or any(row[name] for row in run_rows)]
    widths = {name: max(len(row[name]) for row in (dict(zip(used, used, strict=True)), *run_rows)) for name in used}
    names = [len(row["recipe"]) for _, row in rows]
    widths["recipe"] = max([widths["recipe"], *names] if run_rows else names)
    below = [name for name in _GIVE_WAY if name in used]
    moved: list[str] = []
    while below and sum(widths[name] + 2 for name in used) - 2 > page.width:
        moved.append(below.pop(0))
        used.remove(moved[-1])
    moved = [name for name in COLUMNS if name in moved]
    if run_rows:
        page.add(page.paint("  ".join(f"{name:{widths[name]}}" for name in used).rstrip(), "heading"))
    for run, row in rows:
        if run.outcome == "not-applicable":
            _absent(page, run, widths["recipe"])
            continue
        padded = {name: f"{row[name] or '-':{widths[name]}}" for name in used}
        padded["outcome"] = page.paint(padded["outcome"], _STYLES.get(word(run), "blocked"))
        page.add("  ".join(padded.values()).rstrip())
        rest = ", ".join(f"{_LABELS.get(name, '')}{row[name]}" for name in moved if row[name])
        if rest:
            page.wrap(rest, " " * min(widths["recipe"] + 2, 12))


def _absent(page: Page, run: SmokeRun, width: int) -> None:
    name = one_line(run.recipe)
    first = f"{name:{width}}  " if width + 22 <= page.width else f"{name}  "
    page.wrap(f"not applicable: {run.because or 'the reason is not known'}", first)


def detail(run: SmokeRun, *, width: int, color: bool = False, unicode: bool = True) -> str:
    """All there is to tell of one run."""
    page = Page(width, color, unicode)
    told = dict(zip(COLUMNS, cells(run), strict=True))
    page.add(page.paint(cut(title(run), page.width, unicode=unicode), "heading"))
    if run.outcome == "not-applicable":
        page.wrap(f"not applicable: {run.because or 'the reason is not known'}")
        return page.text()
    page.add(page.paint(told["outcome"], _STYLES.get(word(run), "blocked")))
    page.wrap(setup(run))
    for name in COLUMNS[4:]:
        if told[name]:
            page.wrap(told[name], f"{name + ':':14}")
    for part in parts(run, 2):
        _part(page, part)
    page.add()
    page.wrap(CAUTION)
    return page.text()


def add_run(page: Page, run: SmokeRun, depth: int) -> None:
    """What there is to tell of one run, under its name; nothing when that is nothing."""
    told = list(parts(run, depth))
    if not told:
        return
    page.add()
    start = len(page.lines)
    page.wrap(title(run))
    page.lines[start:] = [page.paint(line, "heading") for line in page.lines[start:]]
    page.wrap(setup(run), "  ")
    for part in told:
        _part(page, part)


def _part(page: Page, part: Part) -> None:
    if len(part.says) == 1:
        page.wrap(f"{part.label}: {part.says[0]}", "  ", "    ")
    elif part.says:
        page.add(f"  {one_line(part.label)}:")
        for said in part.says:
            page.wrap(said, f"    {page.bullet} ")
    if part.lines:
        page.add(f"  {one_line(part.label)}:")
        _table(page, part)
    if part.verbatim is not None:
        page.add(f"  {one_line(part.label)}:")
        for line in clean(part.verbatim).expandtabs(4).splitlines():
            page.add(page.paint(f"    {line}", "dim"))


def _table(page: Page, part: Part) -> None:
    """Cells in columns, the drawing of a line after its first cell. A table that is too wide becomes sentences."""
    rows = [tuple(cut(cell, _CELL, unicode=page.unicode) for cell in line.cells) for line in part.lines]
    widths = [max(len(row[n]) for row in (part.header or rows[0], *rows)) for n in range(len(rows[0]))]
    room = page.width - 4 - sum(widths) - 2 * (len(widths) - 1)
    if room < 0:
        for row in rows:
            named = zip(part.header[1:] or [""] * len(row), row[1:], strict=False)
            page.wrap(f"{row[0]}: {', '.join(f'{name} {cell}'.strip() for name, cell in named)}", "    ", "      ")
        return
    drawing = min(_DRAWING, room - 2) if any(line.slice or line.curve for line in part.lines) and room >= 6 else 0
    if part.header:
        page.add(page.paint(_columns(part.header, widths), "dim"))
    for line, row in zip(part.lines, rows, strict=True):
        drawn = [_draw(line, drawing, page.unicode)] if drawing else []
        page.add(_columns((row[0], *drawn, *row[1:]), [widths[0], *([drawing] if drawing else []), *widths[1:]]))


def _columns(row: tuple[str, ...], widths: list[int]) -> str:
    return ("    " + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))).rstrip()


def _draw(line: Line, width: int, unicode: bool) -> str:
    if line.slice is not None:
        return slice_of(*line.slice, width, unicode=unicode)
    return sparkline(line.curve, width, unicode=unicode, low=line.floor, high=line.ceiling)


def _diagnosis(page: Page, report: Report, verbosity: int) -> None:
    page.add()
    if report.interrupted:
        page.wrap("Interrupted: this is what was known by then.")
    page.wrap(report.summary)
    if report.outcome == "healthy":
        return
    add_findings(page, report, verbosity)
    if verbosity < 0 or not report.plan:
        return
    add_plan(page, report)
    page.add()
    page.wrap(f"Next: step 1, then run `{_again(report)}` again.")


def _again(report: Report) -> str:
    """The command that runs those recipes anew that did not go well, or all."""
    runs = report.facts.smoke.runs if report.facts.smoke else ()
    bad = [one_line(run.recipe) for run in runs if run.outcome != "not-applicable" and not sound(run)]
    return " ".join(["dsdoctor smoke", *bad])
