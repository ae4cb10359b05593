"""Will it fit, for people: what is asked, a line with a bar for each strategy, the answer, and what to type next."""

import shlex
from collections.abc import Iterator
from typing import Final

from dsdoctor.fit.fits import Fit
from dsdoctor.fit.items import Account
from dsdoctor.fit.report import FitReport
from dsdoctor.render.fit_bars import Brush, Scale, bar, legend
from dsdoctor.render.fit_words import again, answer, asked, condition, free, gib, inside, largest_words, moved, proof
from dsdoctor.render.page import Page
from dsdoctor.render.plain import one_line

WORD_STYLES: Final = {"fits": "ready", "tight": "warning", "unknown": "unknown", "no": "blocked"}
LEAST_BAR: Final = 16
GIVE_WAY: Final = ("spare", "moved", "NVMe", "RAM")  # on a narrow page, in this order
PLACES: Final = (("gpu", "Each GPU"), ("host", "RAM of a node"), ("nvme", "NVMe of a node"))


def render(report: FitReport, *, width: int = 80, color: bool = False, unicode: bool = True, verbosity: int = 0) -> str:
    """``verbosity`` 1: also each item of the chosen strategy's accounts; 2: of every strategy's."""
    page = Page(width, color, unicode)
    add_question(page, report)
    page.add()
    add_table(page, report)
    page.add()
    add_answer(page, report)
    add_ways(page, report)
    told = report.fits if verbosity > 1 else [fit for fit in report.fits if fit.plan.name == _subject(report)]
    for fit in told if verbosity or report.named else ():
        add_account(page, fit)
    add_next(page, report)
    return page.text()


def beside_the_question(report: FitReport, *, width: int) -> str:
    """For a screen that shows the question already: the answer first, for what comes after it may need scrolling."""
    page = Page(width, True, True)
    add_answer(page, report)
    page.add()
    add_table(page, report)
    add_ways(page, report)
    add_next(page, report)
    page.add()
    add_question(page, report)
    return page.text()


def _subject(report: FitReport) -> str:
    return report.choice or report.nearest or report.fits[0].plan.name


def add_question(page: Page, report: FitReport) -> None:
    """The model, the training, the machine."""
    for label, text in asked(report):
        page.wrap(text, f"{label + ':':10}")
    page.wrap(free(report), "machine:  ")
    for note in (*report.model.notes, *report.machine.room.notes):
        page.wrap(note, f"  {page.bullet} ")


def add_table(page: Page, report: FitReport) -> None:
    """A line for each strategy, the best first; a narrow page has fewer columns."""
    rows = [_row(report, fit) for fit in report.fits]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
    used = [name for name in rows[0] if name != "NVMe" or any(row["NVMe"] for row in rows)]
    gone = [name for name in GIVE_WAY if name in used]

    def left() -> int:
        return page.width - sum(widths[name] + 2 for name in used)

    while gone and left() < LEAST_BAR:
        used.remove(gone.pop(0))
    brush = Brush(page.color, page.unicode)
    room = report.machine.room.gpu
    cells = max(8, min(left(), 60) - (room is not None))
    scale = Scale(cells, room, [fit.need.gpu.bytes for fit in report.fits])
    page.add(page.paint(_line({n: n for n in used}, widths, used, _over(scale, room, brush)), "heading"))
    for fit, row in zip(report.fits, rows, strict=True):
        drawn = bar(fit.need.gpu, fit.answers[0].easy, scale, brush)
        line = _line(row, widths, used, drawn)
        page.add(page.paint(line[: widths["fit"]], WORD_STYLES[fit.word]) + line[widths["fit"] :])
    _legend(page, report, brush)


def _row(report: FitReport, fit: Fit) -> dict[str, str]:
    gpu, host, nvme = fit.answers
    return {
        "fit": fit.word,
        "strategy": fit.plan.name + (" *" if inside(report, fit) else ""),
        "each GPU": gib(gpu.need),
        "spare": "" if gpu.spare is None else gib(gpu.spare),
        "RAM": gib(host.need),
        "NVMe": gib(nvme.need) if nvme.need else "",
        "moved": gib(fit.traffic.between_gpus + fit.traffic.over_pcie + fit.traffic.on_nvme),
    }


def _line(row: dict[str, str], widths: dict[str, int], used: list[str], drawn: str) -> str:
    cells = [
        f"{row[name]:{widths[name]}}" if name in ("fit", "strategy") else f"{row[name]:>{widths[name]}}"
        for name in used
    ]
    return "  ".join([*cells[:3], drawn, *cells[3:]]).rstrip()


def _over(scale: Scale, room: int | None, brush: Brush) -> str:
    """Above the bars: how much is free, up to its mark."""
    if room is None or scale.mark is None:
        return " " * scale.cells
    said = next((s for s in (f"{gib(room)} GiB free", gib(room)) if len(s) <= scale.mark), "")
    return f"{said:>{scale.mark}}{brush.line}{' ' * (scale.cells - scale.mark)}"


def _legend(page: Page, report: FitReport, brush: Brush) -> None:
    kinds = [item.kind for fit in report.fits for item in fit.need.gpu.items]
    kept = any(fit.answers[0].easy for fit in report.fits)
    line, length = "", 0
    for word in legend(kinds, brush, kept=kept, limit=report.machine.room.gpu is not None):
        seen = len(one_line(word))
        if length and length + 3 + seen > page.width:
            page.add(line)
            line, length = "", 0
        line, length = (f"{line}   {word}", length + 3 + seen) if length else (word, seen)
    page.add(line)
    if any(inside(report, fit) for fit in report.fits):
        page.wrap("* with the model made inside deepspeed.zero.Init")
    page.wrap("All in GiB. RAM and NVMe: of a node; moved: by one GPU in a step.")


def add_answer(page: Page, report: FitReport) -> None:
    start = len(page.lines)
    page.wrap(answer(report))
    page.lines[start:] = [page.paint(line, "heading") for line in page.lines[start:]]
    for text in (condition(report), moved(report), largest_words(report), proof(report)):
        if text:
            page.wrap(text)
    for caveat in report.caveats:
        page.wrap(caveat, f"  {page.bullet} ")


def add_ways(page: Page, report: FitReport) -> None:
    """What could be done otherwise, with the command that asks about it."""
    if report.ways:
        page.heading("What would make it fit" if report.outcome != "yes" else "With more room to spare")
        for way in report.ways:
            word = "fits" if way.word == "fits" else "is tight"
            page.wrap(
                f"{way.change}: then {way.strategy} {word}{' (made inside zero.Init)' if way.zero_init else ''}",
                f"  {page.bullet} ",
            )
            page.command(again(report.command, way.options), "      ")


def add_account(page: Page, fit: Fit) -> None:
    """Every item with its reason."""
    page.heading(f"{fit.plan.name}: {fit.plan.title}")
    page.wrap(f"{fit.word}: {fit.reason}", "  ")
    for (_, title), account in zip(PLACES, (fit.need.gpu, fit.need.host, fit.need.nvme), strict=True):
        if account.bytes:
            others = ", ".join(
                f"{name} {gib(size)}" for name, size in account.moments.items() if name != account.moment
            )
            more = f" (others: {others})" if others else ""
            page.wrap(f"{title}, {gib(account.bytes)} GiB at its worst moment, {account.moment}{more}", "  ", "    ")
            for line in _items(account):
                page.wrap(line[1], f"  {line[0]}  ")


def _items(account: Account) -> Iterator[tuple[str, str]]:
    width = len(gib(account.bytes))
    for item in account.items:
        yield f"  {gib(item.bytes):>{width}}", f"{item.name}: {item.why}{'' if item.exact else ' (estimated)'}"


def add_next(page: Page, report: FitReport) -> None:
    if report.outcome != "yes":
        return
    page.add()
    page.add("Next:" if report.written is None else f"{one_line(report.written)} is written. Next:")
    name = report.written or "ds_config.json"
    if report.written is None:
        page.command(f"{report.command} --write {name}", "  ")
    page.command(f"dsdoctor smoke --config {shlex.quote(name)}", "  ")
