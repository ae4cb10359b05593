"""How the smoke runs ended: the rank that fell first, what it says, and what the numbers around it prove."""

from collections.abc import Iterator

from dsdoctor.api import Finding, Prescriber, Remedy, Smoke, SmokeRank, SmokeRun, check, not_applicable, unknown
from dsdoctor_checks import run_hangs, run_signals
from dsdoctor_checks.rows import remedy_of
from dsdoctor_checks.run_text import (
    TABLE,
    again,
    fallen,
    first_line,
    known_failure,
    place,
    roots,
    said,
    speaker,
)
from dsdoctor_checks.tables import causes_in

_CAUSES = tuple(
    dict.fromkeys(
        [
            "import-crashes", "smoke-fails", *run_hangs.CAUSES, *run_signals.CAUSES,
            *causes_in(TABLE, "run"), *causes_in(TABLE, "error"), *causes_in(TABLE, "signal"),
        ]
    )
)  # fmt: skip
_UNTRIED = ("not-applicable", "not-started")


@check("RUN001", "Every smoke run comes to its end", causes=_CAUSES, guards=["run"])
def runs_end(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """The proof that goes beyond every probe: ops are built and loaded, ranks meet, steps are taken.

    Of a run that fell only the rank that fell first tells why; the others are torn down after it, and their errors are
    echoes. A signal is read by the numbers around it: the cgroup's count of OOM kills, free memory, /dev/shm, the stack.
    """
    tried = [run for run in smoke.runs if run.outcome not in _UNTRIED]
    if not tried:
        idle = next((run for run in smoke.runs if run.outcome == "not-started"), None)
        if idle is not None:
            unknown(f"the smoke run of {idle.recipe} did not start: {idle.because or 'an earlier step failed'}")
        not_applicable("; ".join(f"{run.recipe}: {run.because}" for run in smoke.runs) or "no recipe was run")
    for run in tried:
        if run.outcome != "ok":
            yield _fallen(run, prescriber)


def _fallen(run: SmokeRun, prescriber: Prescriber) -> Finding:
    rank = speaker(run)
    if run.outcome in ("hung", "timed-out") and rank.ending not in ("failed", "signal"):
        return run_hangs.stood_still(run, prescriber)
    if rank.ending == "signal":
        return run_signals.by_signal(run, rank, prescriber)
    return _failed(run, rank, prescriber)


def _failed(run: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    words = run.aftermath.nccl_words if run.aftermath else None
    text = said(rank)
    found = known_failure(run, text, run.output_tail, words)
    code = "" if rank.exit_code is None else f" with exit code {rank.exit_code}"
    how = {"failed": "failed", "not-started": "never started"}.get(rank.ending, f"ended{code}")
    line = first_line(text, run.output_tail)
    message = f"{how} in {place(rank)}" + (f": {line}" if line else "")
    if found is not None:
        row, match = found
        return fallen(run, rank, message, row["cause"], remedy_of(row, prescriber, again(run, prescriber), match))
    cause = "import-crashes" if place(rank).startswith("import ") else "smoke-fails"
    order = "Read the last lines of the output"
    if text and not roots(text):
        message += " (an echo: another rank was gone, or never came, and left no word)"
        order = "Find the rank that ended first: its own output tells why"
    return fallen(run, rank, message, cause, Remedy(order=order, safety="manual", verify=again(run, prescriber)))
