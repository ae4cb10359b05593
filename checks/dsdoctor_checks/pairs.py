"""Releases that do not go together, from the tables: a package that is too new for this DeepSpeed."""

from collections.abc import Iterator

from dsdoctor.api import Finding, Prescriber, Remedy, Severity
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before


def pair_findings(
    cause: str, found: str, deepspeed: str, prescriber: Prescriber, severity: Severity | None = None
) -> Iterator[Finding]:
    """A finding when package version ``found`` and DeepSpeed version ``deepspeed`` are a pair that the table forbids."""
    row = table("deepspeed_releases")["pair"][cause]
    if before(found, row["at_least"]) or not before(deepspeed, row["fixed_in"]):
        return
    wanted = [f"deepspeed>={row['fixed_in']}"]
    note = f"or keep DeepSpeed {deepspeed} and install {row['instead']}" if "instead" in row else None
    yield Finding(
        message=f"{row['package']} is {found} and DeepSpeed is {deepspeed}: {row['breaks']}",
        cause=cause,
        severity=severity,
        remedy=Remedy(
            order=f"Update DeepSpeed to {row['fixed_in']} or newer",
            commands=(prescriber.pip(*wanted, options="--upgrade"),),
            verify=run_python(prescriber, "import deepspeed"),
            note=note,
        ),
    )
