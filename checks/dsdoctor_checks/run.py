"""Checks of the smoke run: a tiny real training that must end, with a loss that falls."""

import math
import re
from collections.abc import Iterator

from dsdoctor.api import (
    Evidence,
    Finding,
    Prescriber,
    Remedy,
    Smoke,
    SmokeRank,
    SmokeRun,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.rows import first_match, last_lines, remedy_of
from dsdoctor_checks.tables import table

_TABLE = "run_errors"
_CAUSES = tuple(
    dict.fromkeys(
        [
            "import-hangs", "import-crashes", "smoke-hangs", "smoke-fails", "jit-lock-hang", "rc-minus-11-segfault",
            "smoke-loss-wrong",
            *(row["cause"] for row in table(_TABLE)["error"]),
            *(row["cause"] for row in table(_TABLE)["signal"].values()),
        ]
    )
)  # fmt: skip
_BUILDING = (
    "(?i)building extension module|Using .*torch_extensions.*as PyTorch extensions root|Loading extension module"
)
_COMPILER = r"(?im)^.*(?:\berror\b *[A-Z]*\d*: |undefined reference to|cannot find -l|: (?:command )?not found).*$"
_VERIFY = "dsdoctor check --smoke"


@check("RUN001", "Every smoke run comes to its end, and its loss falls", causes=_CAUSES, guards=["run", "import"])
def runs_end(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """The proof that goes beyond every probe: ops are built and loaded, steps are taken, numbers are compared."""
    tried = [run for run in smoke.runs if run.outcome not in ("not-applicable", "not-started")]
    if not tried:
        idle = next((run for run in smoke.runs if run.outcome == "not-started"), None)
        if idle is not None:
            unknown(f"the smoke run of {idle.recipe} did not start: {idle.because or 'an earlier step failed'}")
        not_applicable("; ".join(f"{run.recipe}: {run.because}" for run in smoke.runs) or "no recipe was run")
    for run in tried:
        if run.outcome != "ok":
            yield _fallen(run, run.culprit or SmokeRank(rank=0, ending="exited"), prescriber)
        elif (problem := loss_problem(run)) is not None:
            yield _finding(run, problem, "smoke-loss-wrong", _wrong_numbers())


def _fallen(run: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    if run.outcome in ("hung", "timed-out"):
        return _hung(run, rank, prescriber)
    row = table(_TABLE)["signal"].get(rank.signal) if run.outcome == "signal" else None
    if row is None:
        return _failed(run, rank, prescriber)
    what = f"was ended by {rank.signal}: {row['means']}"
    return _finding(run, what, row["cause"], remedy_of(row, prescriber, _VERIFY))


def loss_problem(smoke: SmokeRun) -> str | None:
    """What is wrong with the losses, or None: they must be finite and, on the one fixed batch, fall."""
    if not smoke.losses:
        return "ended without a loss"
    bad = next((loss for loss in smoke.losses if not math.isfinite(loss)), None)
    if bad is not None:
        return f"gave a loss of {bad}"
    if len(smoke.losses) > 1 and smoke.losses[-1] >= smoke.losses[0]:
        return f"did not learn: the loss went from {smoke.losses[0]:.4g} to {smoke.losses[-1]:.4g} on a fixed batch"
    return None


def _wrong_numbers() -> Remedy:
    order = "Delete the extension cache and run again; if it stays, the GPU or its memory computes wrongly"
    return Remedy(order=order, safety="manual", verify=_VERIFY)


def _hung(smoke: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    step = rank.last_phase or "its start"
    building = step.startswith(("compile ", "load ")) or first_match([{"pattern": _BUILDING}], smoke.output_tail)
    after = f" after {smoke.seconds:.0f} s" if smoke.seconds else ""
    if building:
        order = "Run once more: a build goes on where it stopped. If it stands still again, look for a compiler that hangs and a `lock` file in the extension cache"
        return _finding(
            smoke, f"did not end{after}; it was building an op in: {step}", "jit-lock-hang",
            Remedy(order=order, safety="careful", verify=_VERIFY, note="a first build takes about a minute on two idle cores; a busy or slow machine needs longer"),
        )  # fmt: skip
    order = "Find out what the step waits for: another rank, a driver, a network folder"
    cause = "import-hangs" if step.startswith("import ") else "smoke-hangs"
    return _finding(smoke, f"did not end{after}; it stopped in: {step}", cause, Remedy(order=order, safety="manual"))


def _failed(smoke: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    said = f"{rank.error_type or ''}: {rank.error or ''}".strip(": ")
    found = first_match(table(_TABLE)["error"], said, smoke.output_tail)
    how = {"signal": f"was ended by {rank.signal}", "exited": f"ended with exit code {rank.exit_code}"}
    step = rank.last_phase or "its start"
    line = first_line(said, smoke.output_tail)
    message = f"{how.get(smoke.outcome, 'failed')} in {step}" + (f": {line}" if line else "")
    if found is None:
        remedy = Remedy(order="Read the last lines of the output", safety="manual", verify=_VERIFY)
        cause = "import-crashes" if step.startswith("import ") else "smoke-fails"
        return _finding(smoke, message, "rc-minus-11-segfault" if smoke.outcome == "signal" else cause, remedy)
    row, match = found
    return _finding(smoke, message, row["cause"], remedy_of(row, prescriber, _VERIFY, match))


def first_line(said: str, output: str | None) -> str:
    """What a failure says in one line: its first, and of a build the first error of the compiler instead of its command."""
    line = next(iter(said.splitlines()), "")
    build = re.match(r".*Error building extension '\w+'", line)
    if build is None:
        return line[:300]
    log = said[build.end() :]
    error = re.search(_COMPILER, log) or re.search(_COMPILER, output or "")
    return build.group() + (f": {error.group().strip()[:300]}" if error else "")


def _finding(smoke: SmokeRun, what: str, cause: str, remedy: Remedy) -> Finding:
    tail = last_lines(smoke.output_tail, 12)
    where = f"smoke run, recipe {smoke.recipe}"
    said = (smoke.culprit.error if smoke.culprit else None) or ""
    error = re.search(_COMPILER, said) if "Error building extension" in said else None
    texts = [(f"{where}, compiler", error.group().strip()[:300])] if error else []
    texts += [(where, tail)] if tail else []
    return Finding(
        message=f"the smoke run ({smoke.recipe} on {smoke.device or smoke.accelerator or 'an unknown device'}) {what}",
        cause=cause,
        subject=smoke.recipe,
        evidence=tuple(Evidence(where=place, text=text) for place, text in texts),
        remedy=remedy,
    )
