"""What the text of a run says: lines that name their cause, and ends that only hint at one."""

from collections.abc import Iterator

from dsdoctor.api import (
    ANY_CAUSE,
    Evidence,
    Finding,
    Log,
    LogMatch,
    Prescriber,
    Remedy,
    Severity,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.rows import remedy_of

LINES = 4  # of one cause that are shown


@check("LOG001", "No line of the log names a cause", causes=[ANY_CAUSE])
def no_known_failure(log: Log, prescriber: Prescriber) -> Iterator[Finding]:
    """Programs say what broke, though seldom in their last line: the compiler before the build, the kernel before the launcher.

    dsdoctor knows such lines from the programs' own sources (tables/signatures). A line that only says that something
    ended, or that another rank is gone, names nothing and is shown as what followed.
    """
    by_cause: dict[str, list[LogMatch]] = {}
    for match in log.having("root"):
        by_cause.setdefault(match.cause or "", []).append(match)
    for cause, matches in by_cause.items():
        best = max(matches, key=lambda match: match.weight)
        yield _finding(cause, best, matches, prescriber)


@check("LOG002", "What ended the run is known", severity=Severity.WARNING, causes=[ANY_CAUSE])
def end_is_explained(log: Log, prescriber: Prescriber) -> Iterator[Finding]:
    """A run that fell without a line that names its cause leaves its last words, and they hide the cause rather than tell it.

    Where such words have one usual cause it is named as a possibility. Where they have none the check is undecided, and the
    report says what to collect.
    """
    if log.having("root"):
        not_applicable("the log names a cause (LOG001)")
    ends = [*log.having("mask"), *log.having("collateral")]
    hints = {match.hides[0]: match for match in reversed(ends) if len(match.hides) == 1}
    for cause, match in hints.items():
        yield _finding(cause, match, [match], prescriber, "possibly, the log does not say: ")
    if not hints and (ends or log.exits or log.exceptions):
        unknown(f"how the run ended was not recognised: {_last_word(log)}")


def _finding(cause: str, best: LogMatch, matches: list[LogMatch], prescriber: Prescriber, doubt: str = "") -> Finding:
    rank = "" if best.place.rank is None else f", rank {best.place.rank}"
    return Finding(
        message=f"{doubt}{best.reason} ({best.place.where}{rank})",
        cause=cause,
        subject=best.signature,
        evidence=tuple(Evidence(where=match.place.where, text=match.place.text) for match in matches[:LINES]),
        remedy=_remedy(best, prescriber),
    )


def _remedy(match: LogMatch, prescriber: Prescriber) -> Remedy | None:
    return remedy_of(match.remedy, prescriber, groups=match.groups) if "order" in match.remedy else None


def _last_word(log: Log) -> str:
    """The first exception, else the first end of a process."""
    if log.exceptions:
        raised = log.exceptions[0]
        return f"{raised.type}: {raised.message}"[:200] + f" ({raised.place.where})"
    places = [ended.place for ended in log.exits] or [match.place for match in log.matches if match.role != "harmless"]
    return f"{places[0].text[:200]} ({places[0].where})"
