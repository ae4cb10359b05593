"""Reading trials (tiny programs that were compiled here) in checks."""

from dsdoctor.api import (
    DsConfig,
    Evidence,
    Finding,
    Prescriber,
    Remedy,
    Severity,
    Trial,
    Trials,
    not_applicable,
    unknown,
)
from dsdoctor_checks.op_specs import config_wants, needing
from dsdoctor_checks.rows import first_match, remedy_of
from dsdoctor_checks.tables import causes_in, table

BUILD_CAUSES = tuple(dict.fromkeys(("op-build-fails", *causes_in("run_errors", "error"))))


def tried(trials: Trials | None, name: str) -> Trial | None:
    """The trial, when it came to a verdict."""
    trial = trials.get(name) if trials is not None else None
    return trial if trial is not None and trial.outcome in ("ok", "failed", "timed-out") else None


def failure(trial: Trial, what: str, prescriber: Prescriber, severity: Severity | None = None) -> Finding:
    """A finding of a trial that failed: its first error line, and the command that repeats it. The words name the cause."""
    found = first_match(table("run_errors")["error"], trial.error, trial.output)
    return Finding(
        message=f"{what}: {trial.error}",
        cause=found[0]["cause"] if found else "op-build-fails",
        evidence=refusals(trial),
        severity=severity,
        remedy=remedy_of(found[0], prescriber, match=found[1])
        if found
        else Remedy(order="Repeat the command and read what the compiler says", safety="manual"),
    )


def refusals(*trials: Trial | None) -> tuple[Evidence, ...]:
    """What the compiler said in those that failed, each with the command that repeats it."""
    failed = [t for t in trials if t is not None and t.outcome != "ok"]
    return tuple(
        Evidence(where=f"repeat with: {t.command}" if t.command else f"trial {t.name}", text=t.output or t.error or "")
        for t in failed
    )


def mildness(ability: str, config: DsConfig | None) -> Severity | None:
    """None (an error) when the config asks for an op that needs the ability; a note when nobody does."""
    asked = config is not None and config.readable and set(needing(ability)) & config_wants(config).keys()
    return None if asked else Severity.INFO


def looked(path: str | None, name: str, ability: str, config: DsConfig | None) -> bool:
    """True when the search found ``name``. Ends the check where nobody searched (a recording of an older dsdoctor)."""
    if path is not None:
        return path != ""
    if mildness(ability, config) is None:
        unknown(f"whether {name} is there is not known")
    not_applicable(f"nobody looked for {name}, and nothing here asks for it")
