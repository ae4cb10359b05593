"""What a check or a cause is about, for `dsdoctor explain` and the TUI."""

import difflib
import textwrap

from dsdoctor.knowledge import ANY_CAUSE, CauseInfo, Knowledge
from dsdoctor.model import Check


class Unknown(ValueError):
    """No check and no cause has that name; the message offers the nearest."""


def explain(knowledge: Knowledge, name: str, width: int = 88) -> str:
    """Text on check ``name`` (any case) or cause ``name``. Raises Unknown."""
    check = next((c for c in knowledge.checks if c.code == name.upper()), None)
    if check is not None:
        return _check(check, knowledge, width)
    slug = name.lower()
    if slug in knowledge.causes:
        return _cause(slug, knowledge.causes[slug], knowledge, width)
    names = [*(c.code for c in knowledge.checks), *knowledge.causes]
    near = difflib.get_close_matches(name.upper(), names, 2) or difflib.get_close_matches(slug, names, 2)
    raise Unknown(f"{name} is no check and no cause" + (f"; did you mean {' or '.join(near)}?" if near else ""))


def _check(check: Check, knowledge: Knowledge, width: int) -> str:
    lines = [f"{check.code}: {check.title}", "", *_wrapped(check.rationale, width), ""]
    lines.append(f"severity {check.severity.value}; looks at {', '.join(k.__name__ for k in check.needs.values())}")
    if check.guards:
        lines.append(f"a failure takes away: {', '.join(check.guards)}")
    if ANY_CAUSE in check.causes:
        lines.append("may name any cause (`dsdoctor list --causes`)")
    for slug in (slug for slug in check.causes if slug != ANY_CAUSE):
        info = knowledge.causes.get(slug)
        lines += ["", f"cause {slug}" + (f": {info.title}" if info else "")]
        if info:
            lines += [*_wrapped(f"why: {info.why}", width, "  "), *_wrapped(f"mend: {info.remedy}", width, "  ")]
    return "\n".join(lines)


def _cause(slug: str, info: CauseInfo, knowledge: Knowledge, width: int) -> str:
    codes = [c.code for c in knowledge.checks if slug in c.causes]
    known = [s for s in knowledge.known_lines().all() if slug == s.cause]
    lines = [
        f"{slug}: {info.title}",
        "",
        *_wrapped(f"Why: {info.why}", width),
        "",
        *_wrapped(f"Mend: {info.remedy}", width),
        "",
    ]
    lines.append(f"layer {info.layer}; seen by " + (", ".join(codes) if codes else "no check yet"))
    if known:
        lines += _wrapped(f"in a log: {known[0].example[0].splitlines()[-1].strip()}", width)
    if info.explains:
        lines += _wrapped(f"when it is there, these are only its symptoms: {', '.join(info.explains)}", width)
    if info.sources:
        lines += _wrapped(f"public reports: {', '.join(info.sources)}", width)
    return "\n".join(lines)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    paragraphs = text.split("\n\n")
    lines: list[str] = []
    for number, paragraph in enumerate(paragraphs):
        lines += [""] if number else []
        lines += textwrap.wrap(" ".join(paragraph.split()), width, initial_indent=indent, subsequent_indent=indent)
    return lines
