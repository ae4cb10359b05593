"""The exit code of a check, the same in every format."""

from dsdoctor.model import Report, Severity, Status
from dsdoctor.plan import counted_findings

HEALTHY, FINDINGS, USAGE, FAILED, INTERRUPTED = 0, 1, 2, 3, 130


def exit_code(report: Report, fail_on: str) -> int:
    """0, 1, 3 (nothing was judged, or the doctor's own checks all broke) or 130. ``fail_on``: error, warning or never."""
    if report.interrupted:
        return INTERRUPTED
    judged = [v for v in report.verdicts if v.status is not Status.CRASHED]
    if not judged:
        return FAILED
    if fail_on == "never":
        return HEALTHY
    limit = Severity(fail_on).rank
    worst = max((severity.rank for severity, _, _ in counted_findings(report.verdicts)), default=-1)
    return FINDINGS if worst >= limit else HEALTHY
