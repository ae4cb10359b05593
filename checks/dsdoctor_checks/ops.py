"""Checks of DeepSpeed's ops: what ds_report calls [OKAY] and the facts refute, and what a build of them needs."""

from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    Cpu,
    DeepSpeed,
    DsReport,
    Environment,
    Finding,
    Memory,
    OpBuilders,
    Packages,
    Prescriber,
    Remedy,
    Severity,
    Toolkits,
    Torch,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.extension_cache import (
    cache_fresh,
    cache_unlocked,
    cache_writable,
    failed_builds,
    triton_cache_local,
)
from dsdoctor_checks.op_builds import builders_answer, gpu_left, ops_build
from dsdoctor_checks.op_libaio import aio_probe_agrees, cutlass_there, gds_quiet, libaio_there, sparse_attn_gone
from dsdoctor_checks.op_specs import needing
from dsdoctor_checks.op_tools import (
    compiler_works,
    cuda_headers,
    cufile_links,
    libcuda_links,
    nccl_header,
    nvcc_headers,
    nvcc_works,
    openmp_there,
    python_headers,
    torch_headers,
)
from dsdoctor_checks.report_text import report_complete, report_ends_well, report_saw_gpu
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before

__all__ = [
    "aio_probe_agrees", "builders_answer", "cache_fresh", "cache_unlocked", "cache_writable", "compiler_works",
    "cuda_headers", "cufile_links", "cutlass_there", "failed_builds", "gds_quiet",
    "gpu_left", "libaio_there", "libcuda_links", "nccl_header", "nvcc_headers", "nvcc_works", "openmp_there", "ops_build", "python_headers",
    "report_complete", "report_ends_well", "report_saw_gpu", "sparse_attn_gone", "torch_headers", "triton_cache_local",
]  # fmt: skip
_TABLE = "ops"
_BYTES_PER_JOB = 2 * 1024**3  # a compiler of torch's headers; seen 1 to 3 GB
_SOURCES_AT_ONCE = 4  # most ops have two to four sources


def okay(report: DsReport, names: list[str]) -> list[str]:
    """Those of ``names`` that the report calls [OKAY] and that are not compiled in."""
    return [n for n in names if (op := report.op(n)) is not None and op.compatible and not op.installed]


def believed(report: DsReport | None, torch: Torch, names: list[str]) -> list[str]:
    """Those of ``names`` that this machine has and that nothing calls [NO]: by ds_report, else by torch's build."""
    if report is None:
        return names if torch.cuda else []
    return okay(report, names)


def called(report: DsReport | None, name: str) -> str:
    """The op, and that ds_report would have it build, when it does."""
    return f"{name} ([OKAY] in ds_report)" if report is not None and okay(report, [name]) else name


def bad_archs(value: str) -> list[str]:
    """Entries of TORCH_CUDA_ARCH_LIST that DeepSpeed cannot read as MAJOR.MINOR with an optional +PTX.

    Source: compute_capability_args in op_builder/builder.py of 0.19.8, run with these values.
    """
    entries = [entry for entry in value.replace(" ", ";").split(";") if entry.strip()]
    return [entry for entry in entries if not _plain(entry)]


def _plain(entry: str) -> bool:
    major, dot, minor = entry.strip().removesuffix("+PTX").partition(".")
    return bool(dot) and major.isdigit() and minor.isdigit()


def suffix(entry: str) -> bool:
    """True for 9.0a and 10.0f: a number with a letter, which DeepSpeed before 0.19.0 could read."""
    return _plain(entry.strip().removesuffix("+PTX")[:-1])


@check(
    "OPS001",
    "DeepSpeed can read TORCH_CUDA_ARCH_LIST",
    causes=["arch-list-suffix-crash"],
    guards=["cuda-build"],
)
def arch_list_readable(
    environment: Environment, deepspeed: DeepSpeed, torch: Torch | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """DeepSpeed reads the entries as numbers. 9.0a, Hopper or native end every build of a CUDA op with a ValueError."""
    value = environment.get("TORCH_CUDA_ARCH_LIST").strip()
    if not value or (torch is not None and torch.cuda is None):
        not_applicable("TORCH_CUDA_ARCH_LIST is not set" if not value else "torch builds no CUDA ops")
    since = table("deepspeed_releases")["arch_list"]["numbers_only_since"]
    bad = [b for b in bad_archs(value) if not (before(deepspeed.version, since) and suffix(b))]
    if not bad:
        return
    plain = ";".join(
        dict.fromkeys(
            e[:-1] if suffix(e) else e for e in value.replace(" ", ";").split(";") if e and (_plain(e) or suffix(e))
        )
    )
    alternative = f"or name plain numbers: {prescriber.set('TORCH_CUDA_ARCH_LIST', plain)}" if plain else None
    yield Finding(
        message=f"TORCH_CUDA_ARCH_LIST is {value}; DeepSpeed {deepspeed.version} reads its entries as numbers and stops at "
        f"{', '.join(bad)} with a ValueError, in every CUDA op that it builds (ds_report still prints [OKAY])",
        cause="arch-list-suffix-crash",
        subject="TORCH_CUDA_ARCH_LIST",
        remedy=Remedy(
            order="Take the variable away: DeepSpeed then asks the GPU",
            commands=(prescriber.unset("TORCH_CUDA_ARCH_LIST"),),
            verify=prescriber.shell("dsdoctor ops fused_adam --build"),
            note=alternative,
        ),
    )


@check("OPS002", "The ops that need deepspeed-kernels find it", causes=["dskernels-missing"], severity=Severity.INFO, guards=["op"])  # fmt: skip
def dskernels_there(
    packages: Packages, torch: Torch, report: DsReport | None, builders: OpBuilders | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """ds_report prints [OKAY] for two inference ops that import dskernels when they are built."""
    row = table(_TABLE)["needs_dskernels"]
    asked = {b.name: b.error or "" for b in (builders.builders if builders else ()) if b.name in row["ops"]}
    lacked = packages.lacks(row["distribution"])
    if not (lacked if asked else known(lacked, "whether it is installed")) and not any(
        "dskernels" in e for e in asked.values()
    ):
        return
    users = [name for name in row["used_by"] if packages.version(name)]
    lacks = "cannot be imported" if lacked is False else "is not installed"
    guessed = [name for name in believed(report, torch, row["ops"]) if name not in asked]
    for name in [n for n, error in asked.items() if "dskernels" in error] + guessed:
        yield Finding(
            message=f"{row['distribution']} {lacks}: {called(report, name)} stops with No module named 'dskernels'"
            + (f" ({', '.join(users)} uses it)" if users else "; only DeepSpeed's inference uses it"),
            cause="dskernels-missing",
            subject=name,
            severity=Severity.WARNING if users else None,
            remedy=Remedy(
                order=f"Install {row['distribution']}, if you use DeepSpeed's inference",
                commands=(prescriber.pip(row["distribution"]),),
                verify=run_python(prescriber, "import dskernels"),
            ),
        )


@check(
    "OPS003",
    "nvcc compiles the sources of every op",
    causes=["op-source-rejected-by-nvcc"],
    severity=Severity.INFO,
    guards=["op"],
)
def sources_compile(
    toolkits: Toolkits, deepspeed: DeepSpeed, torch: Torch, report: DsReport | None
) -> Iterator[Finding]:
    """Some sources were written for an older nvcc. The probe never runs the compiler, so it cannot know."""
    nvcc = toolkits.selected.version if toolkits.selected else None
    if nvcc is None:
        not_applicable("torch finds no nvcc; OPS004 judges that")
    for name, row in table(_TABLE)["rejected_by_nvcc"].items():
        known_bad = not before(nvcc, row["from"]) and not before(row["deepspeed_until"], deepspeed.version)
        if known_bad and believed(report, torch, [name]):
            yield Finding(
                message=f"nvcc {nvcc} does not compile {called(report, name).rstrip(',')}: {row['why']}",
                cause="op-source-rejected-by-nvcc",
                subject=name,
                remedy=Remedy(
                    order=f"Do without {name}, or use a toolkit before CUDA {row['from']} for it", safety="manual"
                ),
            )


@check(
    "OPS004",
    "There is an nvcc for the CUDA ops that ds_report calls [OKAY]",
    causes=["cuda-home-without-nvcc"],
    severity=Severity.WARNING,
)
def nvcc_there(report: DsReport, toolkits: Toolkits) -> Iterator[Finding]:
    """The probes of most CUDA ops test nothing, so a machine without a toolkit gets a column of [OKAY]."""
    names = okay(report, needing("cuda-build"))
    if not names or report.accelerator not in (None, "cuda"):
        not_applicable("the report lists no CUDA op as [OKAY]")
    if toolkits.selected is not None and toolkits.selected.nvcc:
        return
    where = f"{toolkits.selected.root} has no bin/nvcc" if toolkits.selected else "torch finds no CUDA toolkit"
    yield Finding(
        message=f"ds_report calls {len(names)} CUDA ops [OKAY] ({', '.join(names[:4])}, ...), but {where}: none of them can be built",
        cause="cuda-home-without-nvcc",
        remedy=Remedy(order="Install a CUDA toolkit of torch's release and set CUDA_HOME to it", safety="manual"),
    )


@check(
    "OPS005",
    "There is a C++ compiler for the ops that ds_report calls [OKAY]",
    causes=["cxx-compiler-missing"],
    severity=Severity.WARNING,
)
def compiler_there(report: DsReport, compilers: Compilers, prescriber: Prescriber) -> Iterator[Finding]:
    """ds_report prints [OKAY] without a look at the compiler."""
    names = okay(report, needing("cpp-build"))
    compiler = known(compilers.cxx, "the C++ compiler")
    if compiler.path is not None or not names:
        return
    yield Finding(
        message=f"ds_report calls {', '.join(names)} [OKAY], but the C++ compiler {compiler.command} was not found",
        cause="cxx-compiler-missing",
        remedy=Remedy(order="Install a C++ compiler", commands=prescriber.system("g++"), verify="c++ --version"),
    )


@check(
    "OPS008",
    "There is memory for the compilers that a build starts at once",
    causes=["compile-oom"],
    severity=Severity.WARNING,
)
def memory_for_builds(memory: Memory, cpu: Cpu, environment: Environment, prescriber: Prescriber) -> Iterator[Finding]:
    """A compiler of torch's headers takes 1 to 3 GB. ninja starts as many as there are cores, or MAX_JOBS."""
    jobs = environment.get("MAX_JOBS")
    cores = int(jobs) if jobs.isdigit() else known(cpu.usable_cores or cpu.logical_cores, "the number of cores")
    at_once = min(cores, _SOURCES_AT_ONCE)
    if memory.usable_bytes >= at_once * _BYTES_PER_JOB:
        return
    fits = max(1, memory.usable_bytes // _BYTES_PER_JOB)
    yield Finding(
        message=f"{memory.usable_bytes / 1024**3:.1f} GiB of memory are free; a build would start {at_once} compilers of about 2 GiB",
        cause="compile-oom",
        remedy=Remedy(order="Let fewer compilers run at once", commands=(prescriber.set("MAX_JOBS", str(fits)),)),
    )
