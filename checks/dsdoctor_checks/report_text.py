"""Checks of ds_report itself: that it ended, that the text is whole, and that it was run where the training runs."""

from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeedLive,
    DsReport,
    Evidence,
    Finding,
    Gpus,
    Host,
    Prescriber,
    Remedy,
    Severity,
    TorchLive,
    check,
    not_applicable,
)
from dsdoctor_checks.imports import IMPORT_CAUSES
from dsdoctor_checks.rows import first_match, remedy_of
from dsdoctor_checks.tables import table
from dsdoctor_checks.torch import torch_imports

_RAN_HERE = "ran in the patient"


@check("OPS030", "ds_report comes to its end", causes=IMPORT_CAUSES, severity=Severity.WARNING)
def report_ends_well(
    report: DsReport, torch: TorchLive | None, deepspeed: DeepSpeedLive | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """ds_report imports more than training does. It can die while `import deepspeed` works."""
    if report.fault_type is None:
        if report.fault is not None:
            not_applicable("the text is no report; see OPS031")
        return
    here = report.source == _RAN_HERE
    if here and (not torch_imports(torch) or (deepspeed is not None and deepspeed.imported.outcome != "ok")):
        not_applicable("torch or DeepSpeed cannot be imported; see TORCH002 and DS002")
    said = f"{report.fault_type}: {report.fault or ''}".strip().rstrip(":")
    found = first_match(table("import_errors")["error"], said)
    remedy = remedy_of(found[0], prescriber, prescriber.shell("ds_report"), found[1]) if found else None
    yield Finding(
        message=f"ds_report ({report.source}) ended with {said[:300]}",
        cause=found[0]["cause"] if found else "import-crashes",
        evidence=(Evidence(where=report.source, text=said),),
        remedy=remedy or Remedy(order="Read the traceback from its last line upwards", safety="manual"),
        severity=None if here else Severity.ERROR,
    )


@check("OPS031", "The text of ds_report is whole", causes=["ds-report-unreadable"], severity=Severity.WARNING)
def report_complete(report: DsReport) -> Iterator[Finding]:
    """A pasted report often lacks its head or its tail. What it does not show is not known, and not fine."""
    if report.fault_type is not None:
        not_applicable("ds_report died; see OPS030")
    if not report.ops and report.torch_version is None and report.deepspeed_version is None:
        yield Finding(
            message=f"{report.source} holds no line of a ds_report" + (f": {report.fault}" if report.fault else ""),
            cause="ds-report-unreadable",
            remedy=Remedy(order="Give the whole output of ds_report", commands=("ds_report > report.txt 2>&1",)),
        )
    elif not report.complete:
        last = report.ops[-1].name if report.ops else "its head"
        yield Finding(
            message=f"{report.source} stops early: after {last} the rest of the report is missing",
            cause="ds-report-unreadable",
            remedy=Remedy(order="Give the whole output of ds_report", commands=("ds_report > report.txt 2>&1",)),
        )


@check("OPS032", "ds_report was run where the training runs", causes=["login-node-report"], severity=Severity.WARNING)
def report_saw_gpu(report: DsReport, host: Host | None, gpus: Gpus | None) -> Iterator[Finding]:
    """On a node without a GPU the report lists the CPU's ops and says nothing about the GPU node."""
    cpu_rows = (
        report.accelerator == "cpu"
        or report.op("deepspeed_shm_comm") is not None
        or report.op("deepspeed_ccl_comm") is not None
    )
    if not cpu_rows:
        return
    version = report.torch_version or ""
    pasted = report.source != _RAN_HERE and "+cpu" not in version and ("+cu" in version or report.accelerator_fallback)
    login = (
        host is not None and host.scheduler is not None and not host.inside_job and (gpus is None or not gpus.devices)
    )
    if not pasted and not login:
        return
    where = "a node outside any job of the scheduler" if login else "a place where DeepSpeed saw no GPU"
    yield Finding(
        message=f"the report ({report.source}) lists the CPU accelerator's ops, torch is {version or 'not named'}: it was made on {where}",
        cause="login-node-report",
        remedy=Remedy(
            order="Make the report inside a job on the GPU node",
            commands=("srun --gres=gpu:1 ds_report",) if host is not None and host.scheduler == "slurm" else (),
            safety="manual",
        ),
    )
