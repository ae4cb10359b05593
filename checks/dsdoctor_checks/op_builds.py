"""Checks of the op builders' own words, and of real builds (`dsdoctor ops --build`)."""

from collections.abc import Iterator

from dsdoctor.api import (
    Evidence,
    Finding,
    OpBuild,
    OpBuilder,
    OpBuilders,
    OpBuilds,
    Prescriber,
    Remedy,
    Severity,
    check,
    not_applicable,
)
from dsdoctor_checks.rows import first_match, last_lines, remedy_of
from dsdoctor_checks.tables import table
from dsdoctor_checks.trials import BUILD_CAUSES

_CAUSES = ("op-build-hangs", *BUILD_CAUSES)
_TOLD = ("dskernels", "CUTLASS")  # by OPS002 and OPS012


@check(
    "OPS040", "Every op builder can say what it would compile", causes=_CAUSES, severity=Severity.INFO, guards=["op"]
)
def builders_answer(builders: OpBuilders | None, prescriber: Prescriber) -> Iterator[Finding]:
    """A builder that raises when it is asked for its sources and flags raises when it builds, whatever ds_report says."""
    for builder in _asked(builders):
        told = any(word in (builder.error or "") for word in _TOLD) or builder.name in table("ops")["stand_in"]
        if (builder.error or builder.missing_sources) and not told:
            yield _silent(builder, prescriber)


def _asked(builders: OpBuilders | None) -> tuple[OpBuilder, ...]:
    if builders is None:
        not_applicable("the op builders were not asked")
    return builders.builders


def _silent(builder: OpBuilder, prescriber: Prescriber) -> Finding:
    why = builder.error or f"{builder.missing_sources[0]}, which is not in the package"
    found = first_match(table("run_errors")["error"], why)
    row = table("ops")["op"].get(builder.name)
    users = f" (needed only for {'; '.join(row['features'])})" if row else ""
    return Finding(
        message=f"{builder.name} cannot be built{users}: asked for its sources and flags, its builder says {why}",
        cause=found[0]["cause"] if found else "op-build-fails",
        subject=builder.name,
        remedy=remedy_of(found[0], prescriber, match=found[1])
        if found
        else Remedy(order=f"Nothing to do, unless you need {builder.name}", safety="manual"),
    )


@check(
    "OPS041",
    "The ops' own architecture filters leave something to build for",
    causes=["op-needs-newer-gpu"],
    severity=Severity.INFO,
    guards=["op"],
)
def gpu_left(builders: OpBuilders | None) -> Iterator[Finding]:
    """Some ops drop architectures that are too old for them; when none is left their build stops."""
    for builder in _asked(builders):
        if builder.architectures == ():
            yield Finding(
                message=f"{builder.name} has no code for the GPUs here: its builder drops their compute capability",
                cause="op-needs-newer-gpu",
                subject=builder.name,
                remedy=Remedy(order=f"Do without {builder.name}, or use a newer GPU", safety="manual"),
            )


@check("OPS042", "The ops that were built build and load", causes=_CAUSES, severity=Severity.INFO, guards=["op"])
def ops_build(builds: OpBuilds, prescriber: Prescriber) -> Iterator[Finding]:
    """The proof: DeepSpeed's own builder compiled, linked and loaded the op."""
    for build in builds.builds:
        if build.outcome in ("failed", "crashed", "timed-out"):
            yield _failed(build, prescriber)


def _failed(build: OpBuild, prescriber: Prescriber) -> Finding:
    found = first_match(table("run_errors")["error"], build.first_error, build.error, build.log_tail)
    cause = found[0]["cause"] if found else "op-build-hangs" if build.outcome == "timed-out" else "op-build-fails"
    said = build.first_error or build.error or _end(build)
    tail = last_lines(build.log_tail, 12)
    return Finding(
        message=f"{build.name} does not build: {said}" + (f" ({build.retried})" if build.retried else ""),
        cause=cause,
        subject=build.name,
        severity=Severity.WARNING,
        evidence=(Evidence(where=build.log or f"build of {build.name}", text=tail),) if tail else (),
        remedy=remedy_of(found[0], prescriber, f"dsdoctor ops {build.name} --build", found[1])
        if found
        else Remedy(order=f"Read the first error line of the build of {build.name}", safety="manual"),
    )


def _end(build: OpBuild) -> str:
    """How a build ended that left no word."""
    if build.outcome == "timed-out":
        return "it came to no end within its time"
    return f"its process was ended by {build.signal}" if build.signal else f"it {build.outcome} without a word"
