"""What the import of torch or deepspeed says when it fails, read as a finding."""

from collections.abc import Iterator

from dsdoctor.api import Evidence, Finding, Import, Prescriber, Remedy, unknown
from dsdoctor_checks.rows import first_match, last_lines, remedy_of, run_python
from dsdoctor_checks.tables import causes_in, table

_SIGNALS = {
    "SIGBUS": "a library file is shorter than the program expects: a cut download, a full disk or a network folder",
    "SIGILL": "the library was built for another kind of processor than this one",
    "SIGSEGV": "two libraries clash, or a library file is damaged",
    "SIGABRT": "native code found itself in a state that it could not go on from",
    "SIGKILL": "the kernel ended it, most often because memory ran out",
}
IMPORT_CAUSES = tuple(dict.fromkeys(["import-crashes", "import-hangs", *causes_in("import_errors", "error")]))


def import_findings(
    what: str, imported: Import, prescriber: Prescriber, package: str | None = None
) -> Iterator[Finding]:
    """A finding when ``what`` (a module) could not be imported, nothing when it could; UNKNOWN when it was not tried.

    ``package`` is the distribution to reinstall, when it is not named like the module.
    """
    if imported.outcome == "ok":
        return
    if imported.outcome == "not-reached":
        unknown(f"the import of {what} was not reached: {imported.error or 'an earlier step ended the probe'}")
    if imported.outcome == "error":
        yield _error(what, imported, prescriber)
    else:
        yield _ended(what, imported, prescriber, package or what.split(".")[0])


def _ended(what: str, imported: Import, prescriber: Prescriber, package: str) -> Finding:
    step = imported.during or f"import {what}"
    if imported.outcome == "timed-out":
        after = f" within {imported.seconds:.0f} s" if imported.seconds else ""
        message = f"`{step}` did not return{after}"
        order = "Find out what the import waits for: a network folder, a driver that does not answer, a lock"
        commands = (prescriber.shell(f'{prescriber.python} -X faulthandler -X importtime -c "import {what}"'),)
        return Finding(
            message=message,
            cause="import-hangs",
            evidence=_evidence(step, imported),
            remedy=Remedy(order=order, commands=commands, safety="manual", verify=_verify(what, prescriber)),
        )
    if imported.outcome == "signal":
        meaning = _SIGNALS.get(imported.signal or "", "the process was ended from outside or by native code")
        message = f"`{step}` was ended by {imported.signal}: {meaning}"
    else:
        message = f"`{step}` ended the process with exit code {imported.exit_code} and no exception"
    return Finding(
        message=message,
        cause="import-crashes",
        evidence=_evidence(step, imported),
        remedy=Remedy(
            order=f"Reinstall {package} without the download cache",
            commands=(prescriber.pip(package, options="--force-reinstall --no-deps --no-cache-dir"),),
            safety="careful",
            verify=_verify(what, prescriber),
        ),
    )


def _error(what: str, imported: Import, prescriber: Prescriber) -> Finding:
    said = f"{imported.error_type or 'Error'}: {imported.error or ''}".strip()
    found = first_match(table("import_errors")["error"], said, imported.traceback)
    line = next(iter(said.splitlines()), said)[:400]
    message = f"`import {what}` raised {line}"
    if found is None:
        remedy = Remedy(
            order=f"Read the traceback, then reinstall {what}", safety="manual", verify=_verify(what, prescriber)
        )
        cause = "import-crashes"
    else:
        row, match = found
        remedy, cause = remedy_of(row, prescriber, _verify(what, prescriber), match), row["cause"]
    return Finding(message=message, cause=cause, evidence=_evidence(f"import {what}", imported), remedy=remedy)


def _evidence(step: str, imported: Import) -> tuple[Evidence, ...]:
    text = last_lines(imported.traceback) or imported.error or ""
    return (Evidence(where=step, text=text),) if text else ()


def _verify(what: str, prescriber: Prescriber) -> str:
    return run_python(prescriber, f"import {what}")
