"""What `dsdoctor ops` does between its options and its table."""

from typing import Any

import msgspec

from dsdoctor.events import Observer
from dsdoctor.model import Report


def look(names: tuple[str, ...], values: dict[str, Any], observe: Observer) -> tuple[Report, tuple[str, ...]]:
    """The report, with real builds when they were asked for, and the ops that it is about. Raises ExaminationError."""
    from dsdoctor.cli.options import request
    from dsdoctor.examination import ExaminationError, build_ops, choose_ops, examine
    from dsdoctor.probes.op_builds import Order

    wanted = request(values)
    if values["clean"] and (wanted.snapshot or wanted.ds_report):
        raise ExaminationError("--clean cleans this machine: it does not go with --snapshot or --ds-report")
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


def only(report: Report, names: tuple[str, ...]) -> Report:
    """The report with the ops in ``names`` alone, all when there are none."""
    return msgspec.structs.replace(report, ops=tuple(op for op in report.ops if not names or op.name in names))
