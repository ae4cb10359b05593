"""What killed a run, in words that every format shares."""

from dsdoctor.model import Cause, Link, Report, Step

CERTAIN = 0.9
SURE = 0.6
LIKELY = 0.25  # below it a cause is one of the machine, not of the run
KINDS = {"cause": "cause", "exception": "raised in", "mask": "last words", "collateral": "followed", "exit": "ended", "harmless": "harmless"}  # fmt: skip
UNKNOWN = "Not recognised: the run fell, and no line tells why."
QUIET = "Nothing in this text says that a run fell."


def likely(report: Report) -> list[Cause]:
    """The causes that may have killed the run, the surest first."""
    return [cause for cause in report.causes if (cause.confidence or 0.0) > LIKELY]


def steps(report: Report) -> list[Step]:
    """What to do: for what killed the run as surely as anything did, and nothing that is only likely beside a certainty."""
    causes = likely(report)
    best = max((cause.confidence or 0.0 for cause in causes), default=0.0)
    limit = CERTAIN - 0.1 if best >= CERTAIN else min(best, SURE)
    wanted = {cause.cause for cause in causes if (cause.confidence or 0.0) >= limit}
    return [step for step in report.plan if step.cause in wanted]


def sure(cause: Cause) -> str:
    """Confidence in a word: a number would promise more than it holds."""
    confidence = cause.confidence or 0.0
    return "certain" if confidence >= CERTAIN else "likely" if confidence >= SURE else "possible"


def headline(report: Report) -> str:
    """The answer in one sentence."""
    causes = likely(report)
    if causes:
        return f"{causes[0].title} ({sure(causes[0])}; {causes[0].cause})"
    return UNKNOWN if report.story is not None and report.story.fell else QUIET


def reason(report: Report) -> str:
    """Why the first cause is one; empty without a cause."""
    first = next(iter(likely(report)), None)
    return next((step.why for step in report.plan if first is not None and step.cause == first.cause), "")


def said(link: Link) -> str:
    """A line of the log with its signal, where it has one."""
    signal = f" ({link.means})" if link.kind == "exit" and link.means and link.means not in link.text else ""
    return link.text + signal


def meaning(link: Link, number: int) -> str:
    """What a link of the chain is; the answer has told what the first one means."""
    if not link.means or link.kind == "exit" or (number == 1 and link.kind == "cause"):
        return ""
    return f"{KINDS[link.kind]}: {link.means}"


def nearest(where: str, report: Report) -> str:
    """``file:line`` without folders, unless two files share a name."""
    log = report.facts.log
    names = [file.name for file in log.files] if log is not None else []
    short = [name.replace("\\", "/").rpartition("/")[2] for name in names]
    file, _, line = where.rpartition(":")
    if file not in names or len(set(short)) < len(short):
        return where
    return f"{short[names.index(file)]}:{line}"
