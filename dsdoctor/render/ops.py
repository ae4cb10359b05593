"""The table of ops for people: what ds_report says, what dsdoctor says, and how well that is proved."""

from dsdoctor.model import OpVerdict, Proof, Report
from dsdoctor.render.page import Page
from dsdoctor.render.plain import one_line

SAID = {"okay": "[OKAY]", "no": "[NO]", "installed": "[YES]", None: "-"}
_STYLE = {"builds": "ready", "fails": "blocked", "unknown": "unknown"}
_HEADER = ("op", "ds_report", "dsdoctor", "proof", "seconds")
_PROOF = {
    "declared": "files say so",
    "probed": "tiny programs were compiled, or its builder was asked",
    "ran": "it was really built",
}
_FEW = 3
_HEADINGS = {"fails": "Why they fail", "unknown": "Why it is not known"}


def render(report: Report, *, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """One row per op, those where ds_report errs marked; then each reason once, with the ops that it holds for."""
    page = Page(width, color, unicode)
    if not report.ops:
        page.wrap("No op is known here: DeepSpeed is not installed, or nothing says which accelerator it would take.")
        return page.text()
    _table(page, report.ops)
    titles = {cause.cause: cause.title for cause in report.causes}
    for state in ("fails", "unknown"):
        _reasons(page, state, [op for op in report.ops if op.state == state], titles)
    _wanted(page, report.ops)
    _notes(page, report.ops)
    page.add()
    page.wrap(summary(report.ops))
    page.wrap(_legend(report.ops))
    page.wrap(_next(report.ops))
    return page.text()


def summary(ops: tuple[OpVerdict, ...]) -> str:
    """One sentence: how many build, fail, and where ds_report errs."""
    count = {state: sum(op.state == state for op in ops) for state in ("builds", "fails", "unknown")}
    ends = {n: "s" if n == 1 else "" for n in count.values()}
    parts = [f"{count['builds']} build{ends[count['builds']]}"]
    parts += [f"{count['fails']} fail{ends[count['fails']]}" if count["fails"] else "none fails"]
    parts += [f"{count['unknown']} unknown"] if count["unknown"] else []
    said = f"{len(ops)} op{'s' if len(ops) != 1 else ''}: {', '.join(parts)}."
    wrong = sum(op.differs for op in ops)
    return said + (f" ds_report is wrong about {wrong} of them (marked *)." if wrong else "")


def _table(page: Page, ops: tuple[OpVerdict, ...]) -> None:
    rows = [(op, _cells(op)) for op in ops]
    used = [i for i in range(len(_HEADER)) if any(cells[i] not in ("", "-") for _, cells in rows)]
    widths = {i: max(len(cells[i]) for cells in (_HEADER, *(c for _, c in rows))) for i in used}
    while len(used) > 3 and 2 * len(used) + sum(widths[i] for i in used) > page.width:
        used.pop()  # a narrow page: seconds go first, then the grade
    page.add("  " + page.paint("  ".join(f"{_HEADER[i]:{widths[i]}}" for i in used).rstrip(), "heading"))
    for op, cells in rows:
        padded = {i: f"{cells[i]:{widths[i]}}" for i in used}
        padded[2] = page.paint(padded[2], _STYLE[op.state])
        page.add(("* " if op.differs else "  ") + "  ".join(padded.values()).rstrip())


def _cells(op: OpVerdict) -> tuple[str, ...]:
    seconds = f"{op.seconds:7.1f}" if op.seconds is not None else ""
    proof = op.proof.value if op.state != "unknown" else ""
    return (one_line(op.name), SAID[op.said], op.state, proof, seconds)


def _reasons(page: Page, state: str, ops: list[OpVerdict], titles: dict[str, str]) -> None:
    """Each cause once: what it is, which ops it fells, what was seen, where the whole output lies."""
    grouped: dict[str, list[OpVerdict]] = {}
    for op in ops:
        grouped.setdefault(op.cause if op.cause in titles else op.because or "no reason is known", []).append(op)
    if grouped:
        page.heading(_HEADINGS[state])
    for reason, held in sorted(grouped.items(), key=lambda item: -len(item[1])):
        named = reason in titles
        page.wrap(f"{titles[reason]} (cause: {reason})" if named else reason, f"  {page.bullet} ")
        few = len(held) <= _FEW  # then there is room for what uses them
        page.wrap(", ".join(f"{op.name}{_users(op) if few else ''}" for op in held), "      ")
        if named and held[0].because:
            page.wrap(f"seen: {held[0].because}", "      ")
        logs = [op.log for op in held if op.log]
        if logs:
            page.wrap(f"log: {', '.join(logs)}", "      ")


def _users(op: OpVerdict) -> str:
    return f" (for {'; '.join(op.features)})" if op.features and not op.wanted else ""


def _wanted(page: Page, ops: tuple[OpVerdict, ...]) -> None:
    wanted = [op for op in ops if op.wanted]
    if wanted:
        page.heading("Needed here")
    width = max((len(op.name) for op in wanted), default=0)
    for op in wanted:
        start = len(page.lines)
        page.wrap(f"{op.wanted}", f"  {one_line(op.name):{width}}  {op.state:7}  ")
        page.lines[start] = page.lines[start].replace(f"  {op.state}", f"  {page.paint(op.state, _STYLE[op.state])}", 1)


def _notes(page: Page, ops: tuple[OpVerdict, ...]) -> None:
    """What is to be known of a verdict, and why one that builds was built twice: each once."""
    notes: dict[str, list[str]] = {}
    for op in ops:
        for note in (op.note, op.because if op.state == "builds" else None):
            if note:
                notes.setdefault(note, []).append(op.name)
    if notes:
        page.heading("Notes")
    for note, names in notes.items():
        page.wrap(f"{note}: {', '.join(names)}", f"  {page.bullet} ")


def _legend(ops: tuple[OpVerdict, ...]) -> str:
    used = {op.proof.value for op in ops if op.state != "unknown"}
    told = [f"{grade} = {means}" for grade, means in _PROOF.items() if grade in used]
    return f"Proof: {'; '.join(told)}." if told else ""


def _next(ops: tuple[OpVerdict, ...]) -> str:
    asked = [op for op in ops if op.wanted] or list(ops)
    failing = [op for op in asked if op.state == "fails"]
    if failing and any(op.wanted for op in failing):
        return f"Next: `dsdoctor check` says how to mend {', '.join(op.name for op in failing)}."
    if failing and failing[0].cause:
        return f"Next: `dsdoctor explain {failing[0].cause}` tells what mends {failing[0].name}."
    if all(op.proof is Proof.RAN for op in asked):
        which = "that is needed here" if any(op.wanted for op in asked) else "in this table"
        return f"Every op {which} was built and loaded."
    names = " ".join(op.name for op in asked if op.proof is not Proof.RAN)
    return f"Next: `dsdoctor ops --build {names}` builds and loads what is needed here (--build --all: every op)."
