"""What a user should know beside the report: it goes to stderr and changes no exit code."""

from collections.abc import Iterator

from dsdoctor.model import Report, Status
from dsdoctor.render.plain import one_line
from dsdoctor.request import Request


def notes(report: Report, request: Request, form: str) -> Iterator[str]:
    """One sentence each: checks that crashed, plug-ins left out (text says that itself), codes that settings misspell."""
    crashed = [v for v in report.verdicts if v.status is Status.CRASHED]
    if crashed:
        first = f"{crashed[0].code}: {one_line(crashed[0].reason or '')}"
        more = f" and {len(crashed) - 1} more" if len(crashed) > 1 else ""
        yield f"a check crashed ({first}){more}; this is a defect of dsdoctor, please report it"
    if form != "text":
        yield from map(one_line, report.problems)
    if not request.only and not request.skip:
        yield from _strangers(report, request)


def _strangers(report: Report, request: Request) -> Iterator[str]:
    """Codes in the settings that no check has: perhaps of a plug-in that is not installed here, perhaps a typing error."""
    import difflib

    settings = request.settings
    known = [v.code for v in report.verdicts]
    for code in sorted((settings.ignored.keys() | settings.severities.keys()) - set(known)):
        near = difflib.get_close_matches(code, known, 1)
        yield one_line(f"{settings.source}: no check is called {code}" + (f"; did you mean {near[0]}?" if near else ""))
