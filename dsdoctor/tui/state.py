"""What the view knows beside the report: words for verdicts, families to show, and the progress of an examination."""

from collections.abc import Iterable

import msgspec

from dsdoctor.events import Event
from dsdoctor.facts import SmokeRun
from dsdoctor.model import Proof, Report, Status, Verdict
from dsdoctor.render import smoke_summary
from dsdoctor.render.live import Live
from dsdoctor.request import ExaminationError

# Worst first. Each word has a style of its own, and is always shown: a colour alone says nothing.
STYLES = {
    "ERROR": "bold red",
    "WARNING": "bold yellow",
    "CRASHED": "bold magenta",
    "UNKNOWN": "bold cyan",
    "INFO": "cyan",
    "PASSED": "green",
    "IGNORED": "dim",
    "N/A": "dim",
    "READY": "green",
    "BLOCKED": "bold red",
    "BUILDS": "green",
    "FAILS": "bold red",
    "OK": "green",
    "WRONG": "bold yellow",
    "FAILED": "bold red",
    "KILLED": "bold red",
    "EXITED": "bold red",
    "HUNG": "bold red",
    "TIMED OUT": "bold red",
    "NO START": "bold red",
}
_ORDER = tuple(STYLES)
_STATUS_WORDS = {
    Status.PASSED: "PASSED",
    Status.UNKNOWN: "UNKNOWN",
    Status.NOT_APPLICABLE: "N/A",
    Status.CRASHED: "CRASHED",
}
STATE_WORDS = {"ready": "READY", "blocked": "BLOCKED", "unknown": "UNKNOWN", "not_applicable": "N/A"}
OP_WORDS = {"builds": "BUILDS", "fails": "FAILS", "unknown": "UNKNOWN"}
RUN_WORDS = {
    "ok": "OK", "wrong": "WRONG", "failed": "FAILED", "killed": "KILLED", "exited": "EXITED", "hung": "HUNG", "timed out": "TIMED OUT",
    "not started": "NO START", "not applicable": "N/A",
}  # fmt: skip
PROOF_WORDS = {
    Proof.DECLARED: "declared (read in files, not tried)",
    Proof.PROBED: "probed (seen in an import or a tiny program)",
    Proof.RAN: "ran (a real run showed it)",
}
SPINNER = "|/-\\"
PROBES = {
    "patient": "importing torch and DeepSpeed",
    "gpus": "asking the NVIDIA driver",
    "toolkits": "looking for CUDA toolkits",
    "compilers": "asking the compilers",
    "packages": "reading the installed packages",
    "python": "asking the patient's interpreter",
    "cpu": "reading the processor's flags",
    "trials": "compiling tiny programs",
}


def word(verdict: Verdict) -> str:
    """One capital word for a verdict: a failure is named by its severity."""
    if verdict.ignored is not None:
        return "IGNORED"
    if verdict.status is Status.FAILED:
        return verdict.severity.value.upper()
    return _STATUS_WORDS[verdict.status]


def run_word(run: SmokeRun) -> str:
    """One capital word for how a smoke run went."""
    return RUN_WORDS[smoke_summary.word(run)]


def rank(verdict: Verdict) -> int:
    """0 for the worst."""
    return _ORDER.index(word(verdict))


def wrong(verdict: Verdict) -> bool:
    """True for what the filter "failed only" keeps: failures that count, and checks that crashed."""
    return word(verdict) in ("ERROR", "WARNING", "INFO", "CRASHED")


def headline(verdict: Verdict) -> str:
    """One line for a list: what was found when it failed, else the healthy state that is asked about."""
    if verdict.status is Status.FAILED and verdict.findings:
        return verdict.findings[0].message
    return verdict.title


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Checks of one family, worst first."""

    name: str
    verdicts: tuple[Verdict, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Word -> how many, worst first."""
        words = [word(v) for v in self.verdicts]
        return {w: words.count(w) for w in _ORDER if w in words}


def families(verdicts: Iterable[Verdict], *, failed_only: bool = False, search: str = "") -> tuple[Family, ...]:
    """Families with what the filter and the search leave of them, the worst family first."""
    kept: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if (wrong(verdict) or not failed_only) and _matches(verdict, search):
            kept.setdefault(verdict.family, []).append(verdict)
    found = [
        Family(name=name, verdicts=tuple(sorted(vs, key=lambda v: (rank(v), v.code)))) for name, vs in kept.items()
    ]
    return tuple(sorted(found, key=lambda f: (rank(f.verdicts[0]), f.name)))


def _matches(verdict: Verdict, search: str) -> bool:
    """Every word of ``search`` is somewhere in what the verdict says."""
    said = [verdict.code, verdict.title, word(verdict), verdict.reason or ""]
    for finding in verdict.findings:
        said += [finding.message, finding.cause, finding.subject or ""]
    text = " ".join(said).lower()
    return all(part in text for part in search.lower().split())


def change(before: Report, after: Report, code: str) -> str:
    """What a re-check of ``code`` changed, in one sentence."""

    def said(report: Report) -> str:
        return next((word(v) for v in report.verdicts if v.code == code), "not in the report")

    was, is_ = said(before), said(after)
    return f"{code} is still {is_}" if was == is_ else f"{code} was {was}, is now {is_}"


def sentence(error: BaseException) -> str:
    """One sentence for the user: an ExaminationError's own message, or that dsdoctor itself failed."""
    if isinstance(error, ExaminationError):
        return str(error)
    return f"The examination itself failed, which is a fault of dsdoctor: {type(error).__name__}: {error}"


def undecided(verdicts: Iterable[Verdict]) -> dict[str, tuple[str, ...]]:
    """Why checks could not be decided -> their codes; what most of them wait for comes first."""
    waiting: dict[str, list[str]] = {}
    for verdict in verdicts:
        if word(verdict) in ("UNKNOWN", "CRASHED"):
            waiting.setdefault(verdict.reason or "no reason was given", []).append(verdict.code)
    return {why: tuple(codes) for why, codes in sorted(waiting.items(), key=lambda item: -len(item[1]))}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One probe on the progress screen. ``seconds`` since it began, or that it took."""

    name: str
    title: str
    seconds: float
    outcome: str | None = None  # None: still at work
    detail: str | None = None


class Progress:
    """Follows the events of one examination. Times are seconds of any one clock, given by the caller."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.phase = "examining"
        self.live = Live()  # the smoke run, if there is one
        self._began: dict[str, float] = {}
        self._ended: dict[str, tuple[str, float]] = {}
        self._details: dict[str, str] = {}

    def see(self, event: Event, at: float) -> None:
        """Take one event in."""
        if event.kind == "probe-started":
            self._began[event.name] = at
            self._ended.pop(event.name, None)
        elif event.kind == "probe-ended":
            began = self._began.setdefault(event.name, at)
            seconds = event.seconds if event.seconds is not None else at - began
            self._ended[event.name] = (event.outcome or "ok", seconds)
        elif event.kind.startswith("smoke-"):
            self.live.see(event, at)
        elif event.kind == "judging":
            self.phase = "judging"
        else:
            self._details[event.name] = event.detail or ""

    def rows(self, now: float) -> tuple[Row, ...]:
        """Probes at work, the longest first; then those that ended, the latest first."""
        working = [self._row(name, now - at, None) for name, at in self._began.items() if name not in self._ended]
        ended = [self._row(name, seconds, outcome) for name, (outcome, seconds) in self._ended.items()]
        return (*sorted(working, key=lambda row: -row.seconds), *reversed(ended))

    def _row(self, name: str, seconds: float, outcome: str | None) -> Row:
        title = PROBES.get(name, f"reading {name.replace('_', ' ')}")
        return Row(name=name, title=title, seconds=seconds, outcome=outcome, detail=self._details.get(name))
