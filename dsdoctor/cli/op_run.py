"""What `dsdoctor ops` does between its options and its table."""

import sys
from typing import Any

import click
import msgspec

from dsdoctor.events import Observer
from dsdoctor.model import Report


def look(names: tuple[str, ...], values: dict[str, Any], observe: Observer) -> tuple[Report, tuple[str, ...]]:
    """The report, with real builds when they were asked for, and the ops that it is about. Raises ExaminationError."""
    from dsdoctor.cli.options import request
    from dsdoctor.examination import ExaminationError, build_ops, choose_ops, examine
    from dsdoctor.probes.op_builds import Order

    wanted = request(values)
    if values["build"] and (wanted.snapshot or wanted.ds_report or wanted.static):
        raise ExaminationError(
            "--build builds on this machine: it does not go with --snapshot, --ds-report or --static"
        )
    report = examine(wanted, observe)
    chosen = choose_ops(report, names, everything=values["everything"])
    if not values["build"] or report.interrupted:
        return report, chosen
    order = Order(
        names=chosen, jobs=values["jobs"], limit_s=values["timeout"], cache=values["cache"], logs=values["logs"]
    )
    return build_ops(report, order, wanted, observe), chosen


def exit_code(report: Report, chosen: tuple[str, ...]) -> int:
    """1 when an op of ``chosen`` fails, 3 when no op is known at all, 130 when interrupted."""
    if report.interrupted:
        return 130
    if not report.ops:
        return 3
    return int(any(op.state == "fails" for op in report.ops if op.name in chosen))


def clean(report: Report, *, assume_yes: bool) -> int:
    """Show what is proved stale in the user's extension cache, and remove it when the user agrees."""
    from dsdoctor.probes.stale import remove, stale_things

    found = stale_things(report.facts)
    if not found:
        print("Nothing in the extension cache is proved stale.")
        return 0
    for thing in found:
        print(f"  {thing.path}\n      {thing.why}")
    if not assume_yes and not (sys.stdin.isatty() and click.confirm(f"Remove these {len(found)}?", err=True)):
        print("Nothing was removed. `dsdoctor ops --clean --yes` removes what is listed.")
        return 0
    problems = [problem for thing in found if (problem := remove(thing))]
    for problem in problems:
        print(f"dsdoctor: {problem}", file=sys.stderr)
    print(f"{len(found) - len(problems)} removed.")
    return 1 if problems else 0


def only(report: Report, names: tuple[str, ...]) -> Report:
    """The report with the ops in ``names`` alone, all when there are none."""
    return msgspec.structs.replace(report, ops=tuple(op for op in report.ops if not names or op.name in names))
