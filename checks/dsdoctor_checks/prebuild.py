"""Checks of ops that are, or shall be, compiled while DeepSpeed is installed (DS_BUILD_*)."""

from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    DeepSpeed,
    Environment,
    Finding,
    Gpus,
    Host,
    Prescriber,
    Remedy,
    Severity,
    Toolkits,
    Torch,
    TorchLive,
    check,
    not_applicable,
)
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, series

_NONE = ("0.0", "", None)
_REBUILD = "--force-reinstall --no-deps --no-cache-dir --no-build-isolation"


def wanted_ops(environment: Environment) -> list[str]:
    """The DS_BUILD_* variables that ask for ops to be compiled at install time."""
    return [
        n for n in environment.variables if n.startswith("DS_BUILD_") and n != "DS_BUILD_STRING" and environment.on(n)
    ]


def _requirement(deepspeed: DeepSpeed) -> str:
    return f"deepspeed=={deepspeed.version.split('+')[0]}"


@check(
    "DS010",
    "Ops compiled into DeepSpeed fit the torch that is installed",
    causes=["prebuilt-ops-torch-mismatch"],
    guards=["op"],
)
def prebuilt_ops_fit(deepspeed: DeepSpeed, torch: Torch, prescriber: Prescriber) -> Iterator[Finding]:
    """A pre-built op refuses to load under another torch. ds_report still prints [YES] and [OKAY] for it."""
    if not deepspeed.prebuilt_ops and not deepspeed.prebuilt_files:
        not_applicable("no op was compiled into this DeepSpeed")
    if deepspeed.built_torch in _NONE:
        not_applicable("the torch of the build was not recorded")
    ops = ", ".join(deepspeed.prebuilt_ops or (name.partition("_op.")[0] for name in deepspeed.prebuilt_files))
    built, here = series(deepspeed.built_torch or ""), series(torch.version)
    cuda = deepspeed.built_cuda not in _NONE and torch.cuda is not None and deepspeed.built_cuda != torch.cuda
    if built == here and not cuda:
        return
    told = f"torch {built}, CUDA {deepspeed.built_cuda}" if cuda else f"torch {built}"
    now = f"torch {here}, CUDA {torch.cuda}" if cuda else f"torch {torch.version}"
    yield Finding(
        message=f"DeepSpeed's ops ({ops}) were compiled with {told}; installed is {now}",
        cause="prebuilt-ops-torch-mismatch",
        subject=ops,
        remedy=Remedy(
            order="Build DeepSpeed anew for this torch, or without ops compiled in advance",
            commands=(prescriber.pip(_requirement(deepspeed), options=_REBUILD),),
            safety="careful",
            verify=prescriber.shell("ds_report"),
        ),
    )


@check(
    "DS011",
    "DeepSpeed was installed when this torch was there",
    causes=["prebuilt-stale-wheel-cxx14"],
    severity=Severity.INFO,
)
def wheel_is_fresh(deepspeed: DeepSpeed, torch: Torch, prescriber: Prescriber) -> Iterator[Finding]:
    """The build records torch's version and its compile flags. Across torch 1 and 2 the old flags no longer do."""
    if deepspeed.built_torch in _NONE or deepspeed.prebuilt_ops:
        not_applicable("nothing of another torch is recorded, or DS010 judges it")
    built = deepspeed.built_torch or ""
    if before(built, "2.0") and not before(torch.version, "2.0"):
        yield Finding(
            message=f"DeepSpeed was built beside torch {built}; installed is torch {torch.version}",
            cause="prebuilt-stale-wheel-cxx14",
            remedy=Remedy(
                order="Build DeepSpeed anew for this torch",
                commands=(
                    prescriber.pip(_requirement(deepspeed), options="--force-reinstall --no-deps --no-cache-dir"),
                ),
            ),
        )


@check(
    "DS012",
    "Ops compiled in advance are compiled for architectures that nvcc knows",
    causes=["prebuild-default-archs-too-old"],
    severity=Severity.WARNING,
)
def default_archs(
    environment: Environment, toolkits: Toolkits, gpus: Gpus | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """Without TORCH_CUDA_ARCH_LIST a build at install time takes a list that CUDA 13's nvcc refuses."""
    row, asked = table("deepspeed_releases")["prebuild"], wanted_ops(environment)
    if not asked:
        not_applicable("no DS_BUILD_* variable asks for ops to be compiled at install time")
    nvcc = toolkits.selected.version if toolkits.selected else None
    if nvcc is None or before(nvcc, row["refused_by_nvcc"]) or environment.get("TORCH_CUDA_ARCH_LIST"):
        return
    found = sorted({gpu.compute_capability for gpu in gpus.devices if gpu.compute_capability}) if gpus else []
    arch = ";".join(found) or "9.0"
    yield Finding(
        message=f"{', '.join(asked)} is set, nvcc is {nvcc} and TORCH_CUDA_ARCH_LIST is not set: DeepSpeed would compile for "
        f"{row['default_archs']}, which nvcc {row['refused_by_nvcc']} and newer refuse",
        cause="prebuild-default-archs-too-old",
        remedy=Remedy(
            order="Name the GPU's architecture before you install DeepSpeed",
            commands=(prescriber.set("TORCH_CUDA_ARCH_LIST", arch),),
            note=None if found else "9.0 is an example: no GPU was seen here",
        ),
    )


@check(
    "DS013",
    "What DS_BUILD_* asks for can be compiled here",
    causes=[
        "ds-build-ops-aborts-on-libaio",
        "conda-forge-build-oneccl",
        "windows-libaio",
        "build-isolation-hides-torch",
    ],
    severity=Severity.WARNING,
)
def ops_can_be_built(environment: Environment, compilers: Compilers | None, host: Host | None, torch: Torch | None,
                     live: TorchLive | None, deepspeed: DeepSpeed | None, prescriber: Prescriber) -> Iterator[Finding]:  # fmt: skip
    """DS_BUILD_OPS=1 turns on every op, also those whose libraries are missing; the accelerator decides which ops there are."""
    asked = wanted_ops(environment)
    if not asked:
        not_applicable("no DS_BUILD_* variable asks for ops to be compiled at install time")
    aio = environment.variables.get("DS_BUILD_AIO") != "0" and ("DS_BUILD_OPS" in asked or "DS_BUILD_AIO" in asked)
    windows = host is not None and host.system == "windows"
    if aio and (windows or (compilers is not None and not compilers.from_text and compilers.libaio_header is None)):
        yield _without_aio(windows, asked, prescriber)
    blind = torch is not None and torch.cuda and live is not None and live.cuda_available is False
    if blind and not environment.get("DS_ACCELERATOR"):
        yield _blind_build(asked, prescriber)
    if deepspeed is not None and deepspeed.built_torch == "0.0" and not deepspeed.prebuilt_ops and torch is not None:
        yield _isolated(asked, deepspeed, prescriber)


def _without_aio(windows: bool, asked: list[str], prescriber: Prescriber) -> Finding:
    reason = "libaio exists on Linux only" if windows else "libaio's header is missing"
    return Finding(
        message=f"{', '.join(asked)} asks for the async_io op, but {reason}",
        cause="windows-libaio" if windows else "ds-build-ops-aborts-on-libaio",
        remedy=Remedy(
            order="Leave async_io out of the build" + ("" if windows else ", or install libaio's headers"),
            commands=(prescriber.set("DS_BUILD_AIO", "0"), prescriber.set("DS_BUILD_GDS", "0")),
        ),
    )


def _blind_build(asked: list[str], prescriber: Prescriber) -> Finding:
    return Finding(
        message=f"{', '.join(asked)} is set and torch is a CUDA build that sees no GPU here: DeepSpeed would compile the CPU's ops",
        cause="conda-forge-build-oneccl",
        remedy=Remedy(order="Name the accelerator for the build", commands=(prescriber.set("DS_ACCELERATOR", "cuda"),)),
    )


def _isolated(asked: list[str], deepspeed: DeepSpeed, prescriber: Prescriber) -> Finding:
    return Finding(
        message=f"{', '.join(asked)} is set, but DeepSpeed {deepspeed.version} was built where torch was hidden and holds no op",
        cause="build-isolation-hides-torch",
        severity=Severity.INFO,
        remedy=Remedy(
            order="Build DeepSpeed where torch can be seen",
            commands=(prescriber.pip(_requirement(deepspeed), options=_REBUILD),),
            verify=run_python(prescriber, "from deepspeed.git_version_info import installed_ops; print(installed_ops)"),
        ),
    )
