"""Checks of the ops around asynchronous I/O, and of rows of ds_report that say NO for a reason that hurts nobody."""

from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    DeepSpeed,
    DsConfig,
    DsReport,
    Environment,
    Evidence,
    Finding,
    Host,
    OpBuilders,
    Packages,
    Prescriber,
    Purpose,
    Python,
    Remedy,
    Severity,
    Storage,
    Torch,
    Trials,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.trials import refusals, tried
from dsdoctor_checks.versions import before

_PROBE = "from deepspeed.ops.op_builder import AsyncIOBuilder as B; print(B().has_function('io_submit', ('aio',), verbose=True))"
_EVOFORMER = "evoformer_attn"
_GET_CUTLASS = "git clone --depth 1 https://github.com/NVIDIA/cutlass"


def nvme_wanted(config: DsConfig | None, storage: Storage | None, purpose: Purpose | None) -> str | None:
    """Who asked for NVMe offload, or None."""
    for key in ("zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"):
        if config is not None and config.get(key) == "nvme":
            return f"{key} is nvme ({config.where(key)})"
    place = storage.place("nvme") if storage is not None else None
    if place is not None:
        return f"{place.named_by} names {place.path}"
    return "the purpose is offload-nvme" if purpose is not None and purpose.name == "offload-nvme" else None


@check(
    "OPS010",
    "libaio and its headers are installed",
    causes=["libaio-missing", "libaio-conda-include-path", "windows-libaio"],
    guards=["aio", "libaio"],
)
def libaio_there(compilers: Compilers, host: Host, trials: Trials | None, config: DsConfig | None, storage: Storage | None, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:  # fmt: skip
    """NVMe offload reads and writes through libaio. An error only where NVMe offload is asked for."""
    why = nvme_wanted(config, storage, purpose)
    if host.system != "linux":
        if why is None:
            not_applicable("libaio exists on Linux only, and NVMe offload was not asked for")
        order = "Offload to the CPU, or use WSL 2" if host.system == "windows" else "Offload to the CPU"
        remedy = Remedy(order=order, safety="manual")
        yield Finding(message=f"{why}, but libaio exists on Linux only", cause="windows-libaio", remedy=remedy)
        return
    wanted = {
        "libaio.h": (tried(trials, "aio-headers"), compilers.libaio_header),
        "libaio.so": (tried(trials, "link-aio"), compilers.libaio_link),
    }
    if compilers.from_text and not any(trial for trial, _ in wanted.values()):
        unknown("pasted text does not show whether libaio is there")
    gone = [name for name, (trial, path) in wanted.items() if (trial.outcome != "ok" if trial else path is None)]
    if gone:
        said = refusals(*(trial for trial, _ in wanted.values()))
        yield _no_libaio(gone, why, said, compilers, prescriber)


def _no_libaio(
    gone: list[str], why: str | None, said: tuple[Evidence, ...], compilers: Compilers, prescriber: Prescriber
) -> Finding:
    conda = prescriber.conda("libaio")
    return Finding(
        message=f"the compiler does not find {' and '.join(gone)}; {why or 'only NVMe offload needs it'}",
        cause="libaio-conda-include-path" if conda and compilers.libaio_runtime else "libaio-missing",
        severity=None if why else Severity.INFO,
        evidence=said,
        remedy=Remedy(
            order="Install libaio with its headers",
            commands=(conda,) if conda else prescriber.system("libaio-dev"),
            verify=prescriber.shell("dsdoctor ops async_io --build"),
        ),
    )


@check(
    "OPS011",
    "ds_report finds the libaio that is there",
    causes=["libaio-found-but-probe-fails", "libaio-too-old"],
    severity=Severity.WARNING,
)
def aio_probe_agrees(
    report: DsReport, compilers: Compilers, deepspeed: DeepSpeed, prescriber: Prescriber
) -> Iterator[Finding]:
    """DeepSpeed's probe compiles a test program with Python's own C compiler and hides what the compiler said."""
    op = report.op("async_io")
    if op is None or op.compatible or compilers.libaio_header is None or compilers.libaio_link is None:
        not_applicable("ds_report and the machine agree on libaio")
    missing = compilers.cc is not None and compilers.cc.path is None
    until = table("deepspeed_releases")["libaio"]["pgetevents_until"]
    old = not missing and _asks_pgetevents(deepspeed.version)
    reason, order = "its test program fails for another reason", "Run the probe aloud and read the compiler's own words"
    commands = (*(prescriber.system("gcc") if missing else ()), run_python(prescriber, _PROBE))
    if missing:
        reason = "there is no C compiler"
    if old:
        reason = f"DeepSpeed {deepspeed.version} asks for io_pgetevents, which libaio before 0.3.112 lacks"
        order, commands = "Update DeepSpeed", (prescriber.pip(f"deepspeed>={until}", options="--upgrade"),)
    yield Finding(
        message=f"ds_report says async_io [NO], but {compilers.libaio_header} and {compilers.libaio_link} are there: {reason}",
        cause="libaio-too-old" if old else "libaio-found-but-probe-fails",
        subject="async_io",
        evidence=tuple(Evidence(where="ds_report", text=text) for text in op.warnings),
        remedy=Remedy(order=order, commands=commands),
    )


def _asks_pgetevents(version: str) -> bool:
    row = table("deepspeed_releases")["libaio"]
    return not before(version, row["pgetevents_since"]) and before(version, row["pgetevents_until"])


def _cutlass_named(environment: Environment, packages: Packages) -> bool:
    """Something names a CUTLASS (evoformer_attn.py of 0.19.8 also looks into folders that nobody told of)."""
    named = any(environment.get(name) for name in ("CUTLASS_PATH", "CUTLASS_ROOT", "CUTLASS_HOME"))
    return named or packages.version("nvidia-cutlass") is not None


def _no_cutlass(report: DsReport | None, environment: Environment, packages: Packages, torch: Torch) -> bool:
    """Where no builder was asked: ds_report's [NO], or a machine with CUDA on which nothing names a CUTLASS."""
    op = report.op(_EVOFORMER) if report is not None else None
    if report is not None:
        return op is not None and not op.compatible
    if torch.cuda is None or _cutlass_named(environment, packages):
        return False
    return known(packages.lacks("nvidia-cutlass"), "whether nvidia-cutlass is installed")


@check("OPS012", "CUTLASS is there for the Evoformer op", causes=["cutlass-path-missing"], severity=Severity.INFO, guards=["op"])  # fmt: skip
def cutlass_there(
    report: DsReport | None, builders: OpBuilders | None, environment: Environment, packages: Packages, torch: Torch,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """DS4Sci's EvoformerAttention alone needs CUTLASS. Everybody gets the warning, hardly anybody needs the op."""
    op = report.op(_EVOFORMER) if report is not None else None
    builder = builders.get(_EVOFORMER) if builders is not None else None
    missed = builder is not None and "CUTLASS" in (builder.error or "")
    if not missed and (builder is not None or not _no_cutlass(report, environment, packages, torch)):
        return
    said = next((text for text in op.warnings if "cutlass" in text.lower()), None) if op is not None else None
    if not missed and said is None and op is not None and op.warnings:
        not_applicable("ds_report gives another reason than CUTLASS")
    yield Finding(
        message="evoformer_attn cannot be built: CUTLASS was not found. Only EvoformerAttention needs it",
        cause="cutlass-path-missing",
        subject=_EVOFORMER,
        evidence=(Evidence(where="ds_report", text=said),) if said else (),
        remedy=Remedy(
            order="Nothing to do, unless your code imports EvoformerAttention; then give it CUTLASS",
            commands=(_GET_CUTLASS, prescriber.set("CUTLASS_PATH", "$PWD/cutlass")),
        ),
    )


@check(
    "OPS013",
    "GPUDirect Storage is there when the ds_config asks for it",
    causes=["gds-probe-noise", "gds-conda-linker"],
    severity=Severity.INFO,
    guards=["op"],
)
def gds_quiet(report: DsReport, config: DsConfig | None, python: Python | None) -> Iterator[Finding]:
    """The gds probe prints compiler commands and linker errors. They mean nothing unless aio.use_gds is on."""
    op = report.op("gds")
    if op is None or op.compatible:
        return
    wanted = config is not None and config.get("aio.use_gds") is True
    conda = python is not None and python.environment == "conda"
    tail = (
        f"aio.use_gds is true ({config.where('aio.use_gds')})"
        if wanted and config
        else "nothing here asks for GPUDirect Storage"
    )
    yield Finding(
        message=f"ds_report says gds [NO]; {tail}",
        cause="gds-conda-linker" if conda else "gds-probe-noise",
        subject="gds",
        severity=Severity.ERROR if wanted else None,
        remedy=Remedy(
            order="Install the toolkit's cuFile development files, or set aio.use_gds to false"
            if wanted
            else "Nothing to do",
            safety="manual",
        ),
    )


@check(
    "OPS014",
    "No row of ds_report stands for an op that nobody can build",
    causes=["sparse-attn-unsupported"],
    severity=Severity.INFO,
    guards=["op"],
)
def sparse_attn_gone(report: DsReport) -> Iterator[Finding]:
    """sparse_attn is left from the days of torch 1. Its [NO] is no defect."""
    for name, why in table("ops")["never_ok"].items():
        op = report.op(name) if name not in ("source", "how") else None
        if op is not None and not op.compatible:
            yield Finding(
                message=f"ds_report says {name} [NO]: {why}",
                cause="sparse-attn-unsupported",
                subject=name,
                remedy=Remedy(
                    order="Nothing to do; set DS_BUILD_SPARSE_ATTN=0 when you build DeepSpeed with DS_BUILD_OPS=1"
                ),
            )
