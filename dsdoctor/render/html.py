"""A self-contained HTML page without scripts."""

from html import escape

from dsdoctor.model import Report, Severity
from dsdoctor.plan import counted_findings
from dsdoctor.render.plain import clean
from dsdoctor.render.smoke_summary import short
from dsdoctor.render.story import headline, meaning, reason, said
from dsdoctor.render.undecided import undecided

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
code,pre{font:14px/1.4 ui-monospace,monospace;background:#f3f4f6;border-radius:4px;padding:.1em .3em}pre{padding:.6em;overflow-x:auto}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #d8dce2;text-align:left;padding:.3em .6em;vertical-align:top}
.error{color:#b42318;font-weight:600}.warning{color:#8a5a00;font-weight:600}.info{color:#3c5a80}
@media(prefers-color-scheme:dark){body{background:#16181d;color:#e4e6ea}code,pre{background:#23262d}td,th{border-color:#343842}
.error{color:#ff8a80}.warning{color:#ffcf70}.info{color:#9cc3ff}}"""


def render(report: Report) -> str:
    """The report as one page."""
    body = [f"<h1>{h(report.summary)}</h1>", *about(report), *_story(report), *findings(report), *plan(report)]
    return page("dsdoctor report", [*body, *_smoke(report), *_capabilities(report), *_undecided(report)], report)


def page(title: str, body: list[str], report: Report, style: str = "") -> str:
    """A whole document. ``body`` is HTML, ``style`` CSS beside the common one."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{h(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}{style}</style></head>\n<body>\n'
        + "\n".join(body)
        + f"\n<p>dsdoctor {h(report.tool_version)}, {h(report.facts.taken_at)}</p>\n</body></html>\n"
    )


def about(report: Report) -> list[str]:
    """What was examined."""
    platform = report.platform
    labels = (("Can", platform.can), ("Cannot", platform.cannot), ("Instead", platform.instead))
    lines = [h(platform.headline), *(f"{label}: {h(text)}" for label, text in labels if text)]
    lines.append(f"Patient: <code>{h(report.patient)}</code>")
    purpose = report.facts.purpose
    if purpose is not None:
        lines.append(f"Purpose: {h(purpose.name)} ({h(purpose.because)})")
    if report.interrupted:
        lines.append("Interrupted: this is what was known by then.")
    return [f"<p>{'<br>'.join(lines)}</p>"]


def _story(report: Report) -> list[str]:
    """What killed the run, when a log was read."""
    if report.story is None:
        return []
    items = []
    for number, link in enumerate(report.story.chain, 1):
        rank = "" if link.rank is None else f", rank {link.rank}"
        items.append(f"<li><code>{h(said(link))}</code><br>{h(link.where + rank)} {h(meaning(link, number))}</li>")
    quiet = [f"<li><code>{h(x.text)}</code><br>{h(x.where)}: {h(x.means or '')}</li>" for x in report.story.harmless]
    body = [f"<h2>What killed the run</h2><p><b>{h(headline(report))}</b> {h(reason(report))}</p><ol>", *items, "</ol>"]
    if report.story.collect:
        body += ["<p>Collect next:</p><ul>", *(f"<li>{h(thing)}</li>" for thing in report.story.collect), "</ul>"]
    return [*body, *(["<h2>Seen, harmless</h2><ul>", *quiet, "</ul>"] if quiet else [])]


def findings(report: Report) -> list[str]:
    """A table of what is wrong; nothing when nothing is."""
    found = counted_findings(report.verdicts)
    if not found:
        return []
    rows = []
    for severity, verdict, finding in sorted(found, key=lambda row: -row[0].rank):
        evidence = "".join(f"<br><code>{h(e.where)}: {h(e.text)}</code>" for e in finding.evidence)
        rows.append(
            f'<tr><td class="{severity.value}">{severity.value}</td><td>{verdict.code}</td>'
            f"<td>{h(finding.message)}{evidence}</td><td><code>{h(finding.cause)}</code></td></tr>"
        )
    return ["<h2>Findings</h2><table>", *rows, "</table>"]


def plan(report: Report) -> list[str]:
    """The steps that mend it."""
    if not report.plan:
        return ["<p>There is nothing to mend.</p>"] if not report.counts.errors and not report.counts.warnings else []
    items = []
    for step in report.plan:
        css = "error" if step.severity is Severity.ERROR else "warning"
        commands = f"<pre>{h(chr(10).join(step.commands))}</pre>" if step.commands else ""
        safety = {"safe": "", "careful": " [careful]", "manual": " [by hand]"}[step.safety]
        verify = f"then check with: <code>{h(step.verify)}</code>" if step.verify else ""
        order = f'<span class="{css}">{h(step.order)}</span>{safety}'
        items.append(f"<li>{order}<br>{h(step.why)}{commands}{verify}</li>")
    return ["<h2>Plan</h2><ol>", *items, "</ol>"]


def _smoke(report: Report) -> list[str]:
    if report.facts.smoke is None:
        return []
    rows = [f"<li>{h(short(run))}</li>" for run in report.facts.smoke.runs] or ["<li>no recipe was run</li>"]
    return ["<h2>Smoke runs</h2><ul>", *rows, "</ul>"]


def _capabilities(report: Report) -> list[str]:
    rows = [
        f"<tr><td>{h(c.title)}</td><td>{h(c.state.replace('_', ' '))}</td>"
        f"<td>{h(c.proof.value if c.state == 'ready' else ', '.join(c.blocked_by) or c.because or '')}</td></tr>"
        for c in report.capabilities
    ]
    return ["<h2>What can run here</h2><table>", *rows, "</table>"] if rows and report.story is None else []


def _undecided(report: Report) -> list[str]:
    groups = undecided(report) if report.story is None else {}
    rows = [f"<li>{h(reason)}: {', '.join(codes)}</li>" for reason, codes in groups.items()]
    return ["<h2>Could not be decided</h2><ul>", *rows, "</ul>"] if rows else []


def h(text: str) -> str:
    """Text as HTML."""
    return escape(clean(text))
