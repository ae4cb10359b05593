"""What the GPUs can run: torch's binaries, bf16, fp16. The rules for architectures are NVIDIA's."""

import re
from collections.abc import Iterator, Sequence

from dsdoctor.api import (
    Environment,
    Finding,
    Gpu,
    Gpus,
    Prescriber,
    Remedy,
    Severity,
    Torch,
    TorchLive,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.driver import named, need_devices
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.torch import install_command
from dsdoctor_checks.versions import before, release, series

_NAME = re.compile(r"^(sm|compute)_(\d+)(\d)([af]?)$")


def runs_on(capability: str, architectures: Sequence[str]) -> bool:
    """True when one of torch's names (``sm_86``, ``sm_90a``, ``compute_120``) holds for a GPU of ``capability`` ("8.9")."""
    major, minor = release(capability)[:2]
    return any(_runs(major, minor, name) for name in architectures)


def _runs(major: int, minor: int, name: str) -> bool:
    match = _NAME.match(name)
    if match is None:
        return False
    kind, its_major, its_minor, suffix = match.group(1), int(match.group(2)), int(match.group(3)), match.group(4)
    if suffix == "a":
        return (major, minor) == (its_major, its_minor)
    if kind == "sm" or suffix == "f":
        return major == its_major and minor >= its_minor
    return (major, minor) >= (its_major, its_minor)


def older_than_all(capability: str, architectures: Sequence[str]) -> bool:
    """True when every one of the architectures is newer than ``capability``."""
    found = [m for m in map(_NAME.match, architectures) if m]
    return all((int(m.group(2)), int(m.group(3))) > release(capability)[:2] for m in found)


def of_wheel(version: str, cuda: str | None) -> tuple[str, ...] | None:
    """The architectures of torch's default wheel of ``version``; None when that wheel was not looked into."""
    row = table("architectures")["torch"]["series"].get(series(version))
    if row is None or cuda is None or series(row["cuda"]) != series(cuda):
        return None
    return tuple(f"sm_{arch.replace('.', '')}" for arch in row["archs"])


@check(
    "GPU013",
    "torch has code for the GPUs",
    causes=["gpu-newer-than-torch-binaries", "unsupported-gpu-arch"],
    guards=["gpu"],
)
def torch_has_code(
    gpus: Gpus, torch: Torch | None, live: TorchLive | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """A wheel holds code for some architectures. A GPU without any ends with "no kernel image is available"."""
    need_devices(gpus)
    torch = known(torch, "which torch is installed")
    if torch.cuda is None:
        not_applicable(f"torch {torch.version} is not a CUDA build")
    if live is not None and len(gpus.devices) == 1 and live.kernel is not None and live.kernel.outcome == "ok":
        return
    found = live.architectures if live is not None and live.architectures else of_wheel(torch.version, torch.cuda)
    names = known(found, f"which GPUs torch {torch.version} has code for")
    if any(gpu.compute_capability is None for gpu in gpus.devices):
        unknown("the compute capability of a GPU is not known")
    unfit = [gpu for gpu in gpus.devices if gpu.compute_capability and not runs_on(gpu.compute_capability, names)]
    for gpu in unfit:
        severity = None if len(unfit) == len(gpus.devices) else Severity.WARNING
        yield _no_code(gpu, gpus, torch, names, severity, prescriber)


def _no_code(
    gpu: Gpu, gpus: Gpus, torch: Torch, names: tuple[str, ...], severity: Severity | None, prescriber: Prescriber
) -> Finding:
    capability = gpu.compute_capability or ""
    old = older_than_all(capability, names)
    row = next((r for r in table("architectures")["old"] if not before(capability, r["at_least"])), None)
    if not old:
        order, note = "Install a newer torch, whose wheels hold code for this GPU", None
        commands: tuple[str, ...] = (install_command(prescriber, gpus, "--upgrade"),)
    elif row is None:
        order, commands, note = "Use a newer GPU: no torch 1.13 or newer holds code for this one", (), None
    else:
        index = f"--index-url {table('torch_releases')['meta']['index']}/{row['variant']}" if "variant" in row else ""
        order, note = "Install a torch that still holds code for this GPU", row["note"]
        commands = (prescriber.pip(row.get("requirement", "torch"), options=f"--force-reinstall {index}".strip()),)
    return Finding(
        message=f"{named(gpu)} has compute capability {capability}, torch {torch.version} holds code for {', '.join(names)}",
        cause="unsupported-gpu-arch" if old else "gpu-newer-than-torch-binaries",
        subject=f"GPU {gpu.index}",
        severity=severity,
        remedy=Remedy(
            order=order,
            commands=commands,
            safety="careful" if commands else "manual",
            verify=run_python(prescriber, "import torch; print(torch.ones(2, device='cuda') * 2)"),
            note=note,
        ),
    )


@check(
    "GPU015", "The GPUs have bf16 in hardware", causes=["bf16-unsupported-gpu"], severity=Severity.INFO, guards=["bf16"]
)
def bf16_hardware(gpus: Gpus) -> Iterator[Finding]:
    """bf16 needs compute capability 8.0. torch emulates it on older GPUs, slowly."""
    yield from _below(
        gpus, table("architectures")["precision"]["bf16_at_least"], "bf16", "bf16-unsupported-gpu", "Use fp16"
    )


@check(
    "GPU016",
    "DeepSpeed accepts fp16 on the GPUs",
    causes=["fp16-unsupported-gpu"],
    severity=Severity.INFO,
    guards=["fp16"],
)
def fp16_accepted(gpus: Gpus, environment: Environment) -> Iterator[Finding]:
    """DeepSpeed refuses fp16 below capability 7.0; with DS_ALLOW_DEPRECATED_FP16=1 it accepts 6.x."""
    row = table("architectures")["precision"]
    allowed = environment.on("DS_ALLOW_DEPRECATED_FP16")
    floor = row["fp16_deprecated_at_least"] if allowed else row["fp16_at_least"]
    order = "Train in fp32, or set DS_ALLOW_DEPRECATED_FP16=1 on a GPU of capability 6.x"
    yield from _below(gpus, floor, "fp16 in DeepSpeed", "fp16-unsupported-gpu", order)


def _below(gpus: Gpus, floor: str, what: str, cause: str, order: str) -> Iterator[Finding]:
    need_devices(gpus)
    capabilities = [known(gpu.compute_capability, f"the compute capability of {named(gpu)}") for gpu in gpus.devices]
    low = [g for g, c in zip(gpus.devices, capabilities, strict=True) if before(c, floor)]
    if low:
        listed = ", ".join(f"{named(gpu)} has {gpu.compute_capability}" for gpu in low)
        remedy = Remedy(order=order, safety="manual")
        yield Finding(message=f"{what} needs compute capability {floor}; {listed}", cause=cause, remedy=remedy)
