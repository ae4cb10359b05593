"""The table of ops for people: what ds_report says, what dsdoctor says, and how well that is proved."""

from collections.abc import Iterator

from dsdoctor.model import OpVerdict, Report
from dsdoctor.render.text import Page

SAID = {"okay": "[OKAY]", "no": "[NO]", "installed": "[YES]", None: "-"}
_STYLE = {"builds": "ready", "fails": "blocked", "unknown": "unknown"}
_HEADER = ("op", "ds_report", "dsdoctor", "proof", "seconds")


def render(report: Report, *, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """One row per op; under a row that needs words: why it fails, what asks for it. Rows where ds_report errs are marked."""
    page = Page(width, color, unicode)
    if not report.ops:
        page.wrap("No op is known here: DeepSpeed is not installed, or nothing says which accelerator it would take.")
        return page.text()
    rows = [(op, _cells(op)) for op in report.ops]
    widths = [max(len(cells[i]) for cells in (_HEADER, *(c for _, c in rows))) for i in range(len(_HEADER))]
    page.add(
        "  "
        + page.paint(
            "  ".join(f"{text:{size}}" for text, size in zip(_HEADER, widths, strict=True)).rstrip(), "heading"
        )
    )
    for op, cells in rows:
        _row(page, op, cells, widths)
    page.add()
    page.wrap(summary(report.ops))
    page.wrap(_next(report.ops))
    return page.text()


def summary(ops: tuple[OpVerdict, ...]) -> str:
    """One sentence: how many build, fail, and where ds_report errs."""
    count = {state: sum(op.state == state for op in ops) for state in ("builds", "fails", "unknown")}
    said = f"{len(ops)} ops: {count['builds']} build, {count['fails']} do not"
    said += f", {count['unknown']} unknown" if count["unknown"] else ""
    wrong = [op.name for op in ops if op.differs]
    return said + (f". ds_report is wrong about {', '.join(wrong)} (marked *)." if wrong else ".")


def _cells(op: OpVerdict) -> tuple[str, ...]:
    state = {"builds": "builds", "fails": "fails", "unknown": "unknown"}[op.state]
    seconds = f"{op.seconds:.1f}" if op.seconds is not None else ""
    return (op.name, SAID[op.said], state, op.proof.value if op.state != "unknown" else "", seconds)


def _row(page: Page, op: OpVerdict, cells: tuple[str, ...], widths: list[int]) -> None:
    padded = [f"{text:{size}}" for text, size in zip(cells, widths, strict=True)]
    padded[2] = page.paint(padded[2], _STYLE[op.state])
    page.add(("* " if op.differs else "  ") + "  ".join(padded).rstrip())
    for text in _words(op):
        page.wrap(text, "      ")


def _words(op: OpVerdict) -> Iterator[str]:
    if op.because:
        yield op.because + (f" (cause: {op.cause})" if op.cause else "")
    if op.wanted:
        yield f"needed here: {op.wanted}"
    elif op.state == "fails" and op.features:
        yield f"needed by: {'; '.join(op.features)}"
    if op.note:
        yield op.note
    if op.log:
        yield f"log: {op.log}"


def _next(ops: tuple[OpVerdict, ...]) -> str:
    failing = [op.name for op in ops if op.state == "fails" and op.wanted]
    if failing:
        return f"Next: `dsdoctor check` says how to mend {', '.join(failing)}."
    if all(op.proof.value == "ran" for op in ops if op.wanted):
        return "Every op that is needed here was built and loaded."
    return "Next: `dsdoctor ops --build` builds and loads those that are needed here (--all: every one)."
