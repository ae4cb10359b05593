"""Checks of torch: that it is there, that it can be imported, that CUDA starts in it, and that it fits what is around it."""

from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    Environment,
    Evidence,
    Finding,
    Gpus,
    Host,
    Packages,
    Prescriber,
    Purpose,
    Remedy,
    Severity,
    Torch,
    TorchLive,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.imports import IMPORT_CAUSES, import_findings
from dsdoctor_checks.pairs import pair_findings
from dsdoctor_checks.rows import first_match, remedy_of, run_python
from dsdoctor_checks.tables import causes_in, table
from dsdoctor_checks.versions import before, release, series

_CUDA_CAUSES = tuple(dict.fromkeys(["no-gpu-visible", *causes_in("torch_releases", "cuda_error")]))
_AGAIN = "--force-reinstall --no-deps"
_SEES_GPU = "import torch; print(torch.cuda.is_available())"


def torch_imports(live: TorchLive | None) -> bool:
    """False when torch was tried and could not be imported: checks of what comes after do not apply then."""
    return live is None or live.imported.outcome == "ok"


def install_command(prescriber: Prescriber, gpus: Gpus | None, options: str = "") -> str:
    """pip's command for a CUDA build of torch that this machine's driver runs."""
    releases = table("torch_releases")
    newest = releases["series"][releases["meta"]["latest"]]["cuda"]
    limit = gpus.driver_cuda if gpus is not None else None
    linux = prescriber.host is None or prescriber.host.system == "linux"
    if linux and (limit is None or not before(limit, newest.split(".")[0])):
        return prescriber.pip("torch", options=options)
    fits = [v for v in releases["meta"]["variants"] if limit is None or not before(limit, v)]
    variant = (fits or releases["meta"]["variants"])[-1 if fits else 0].replace(".", "")
    index = f"--index-url {releases['meta']['index']}/cu{variant}"
    return prescriber.pip("torch", options=f"{options} {index}".strip())


@check("TORCH001", "torch is installed", causes=["pip-needs-torch-first"], guards=["import"])
def torch_installed(
    packages: Packages, torch: Torch | None, gpus: Gpus | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """DeepSpeed needs torch to be installed, and to be built. pip does not always install the two in the right order."""
    if torch is not None or not known(packages.lacks("torch"), "whether torch is installed"):
        return
    where = prescriber.python_facts.executable if prescriber.python_facts else "the examined Python"
    yield Finding(
        message=f"torch is not installed for {where}",
        cause="pip-needs-torch-first",
        remedy=Remedy(
            order="Install torch first, then DeepSpeed",
            commands=(install_command(prescriber, gpus),),
            verify=run_python(prescriber, "import torch; print(torch.__version__)"),
        ),
    )


@check("TORCH002", "torch can be imported", causes=IMPORT_CAUSES, guards=["import"])
def torch_import(live: TorchLive, prescriber: Prescriber) -> Iterator[Finding]:
    """Imported in a child process, so that a crash or a hang is seen and told apart from an exception."""
    said = live.imported.error or ""
    if live.imported.outcome == "error" and "No module named 'torch'" in said:
        not_applicable("torch is not installed; see TORCH001")
    yield from import_findings("torch", live.imported, prescriber)


@check(
    "TORCH003",
    "torch's extension builder can be imported",
    causes=IMPORT_CAUSES,
    guards=["cpp-build", "cuda-build"],
)
def extension_builder(live: TorchLive, prescriber: Prescriber) -> Iterator[Finding]:
    """Every op that DeepSpeed builds goes through torch.utils.cpp_extension, which wants setuptools."""
    if not torch_imports(live):
        not_applicable("torch cannot be imported; see TORCH002")
    builder = known(live.cpp_extension, "whether torch.utils.cpp_extension imports")
    yield from import_findings("torch.utils.cpp_extension", builder, prescriber)


@check("TORCH004", "torch is a CUDA build where there is an NVIDIA GPU", causes=["cpu-only-torch"], guards=["gpu"])
def torch_has_cuda(torch: Torch, gpus: Gpus, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:
    """A resolver that finds no matching wheel, or a CPU index, gives a torch that cannot see any GPU."""
    count = len(gpus.devices) or (gpus.pci_nvidia or 0)
    if not count:
        not_applicable("no NVIDIA GPU was found")
    if purpose is not None and not purpose.guessed and not purpose.wants_gpu:
        not_applicable(f"the purpose is {purpose.name}")
    if torch.cuda or torch.hip or torch.xpu:
        return
    yield Finding(
        message=f"torch {torch.version} is a CPU-only build, but the machine has {count} NVIDIA GPU{'s' * (count > 1)}",
        cause="cpu-only-torch",
        remedy=Remedy(
            order="Install a CUDA build of torch over it",
            commands=(install_command(prescriber, gpus, "--force-reinstall"),),
            safety="careful",
            verify=run_python(prescriber, _SEES_GPU),
        ),
    )


@check("TORCH005", "CUDA starts in torch", causes=_CUDA_CAUSES, guards=["gpu"])
def cuda_starts(
    torch: Torch, live: TorchLive, gpus: Gpus | None, purpose: Purpose | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """A CUDA build falls back to no GPU with a warning when the driver does not answer. The warning names the reason."""
    if not torch_imports(live):
        not_applicable("torch cannot be imported; see TORCH002")
    if torch.cuda is None:
        not_applicable(f"torch {torch.version} is not a CUDA build")
    if known(live.cuda_available, "whether torch sees a GPU"):
        return
    present = gpus is not None and (gpus.devices or gpus.pci_nvidia or gpus.device_nodes)
    if not present and (purpose is None or not purpose.wants_gpu):
        not_applicable("no NVIDIA GPU was found")
    yield _cuda_finding("torch.cuda does not start", live.cuda_error, prescriber)


@check("TORCH006", "A tiny kernel runs on the GPU", causes=_CUDA_CAUSES, guards=["gpu"])
def kernel_runs(live: TorchLive, prescriber: Prescriber) -> Iterator[Finding]:
    """torch may list a GPU and still hold no code for it. Only a kernel that ran shows that it works."""
    if not torch_imports(live):
        not_applicable("torch cannot be imported; see TORCH002")
    if not live.cuda_available:
        not_applicable("torch sees no GPU")
    ran = known(live.kernel, "whether a kernel runs on the GPU")
    if ran.outcome == "ok":
        return
    how = {"timed-out": "did not end in time", "signal": f"was ended by {ran.signal}"}.get(ran.outcome, "failed")
    yield _cuda_finding(f"a matrix product on the GPU {how}", ran.error, prescriber)


def _cuda_finding(what: str, error: str | None, prescriber: Prescriber) -> Finding:
    found = first_match(table("torch_releases")["cuda_error"], error)
    said = " ".join((error or "").split())[:300]
    message = f"{what}: {said}" if said else f"{what}, and it gives no reason"
    if found is None:
        remedy = Remedy(
            order="Find out why CUDA does not start", commands=(prescriber.shell("nvidia-smi"),), safety="manual"
        )
        return Finding(message=message, cause="no-gpu-visible", remedy=remedy)
    row, match = found
    evidence = (Evidence(where="torch.cuda", text=error or ""),)
    remedy = remedy_of(row, prescriber, run_python(prescriber, _SEES_GPU), match)
    return Finding(message=message, cause=row["cause"], evidence=evidence, remedy=remedy)


@check(
    "TORCH007",
    "This DeepSpeed was made for a torch as new as this one",
    causes=["torch-six-removed", "torch-elastic-private-import"],
    guards=["import"],
)
def torch_not_too_new(torch: Torch, deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """Old DeepSpeed releases import private names of torch that newer torch releases removed."""
    for cause in ("torch-six-removed", "torch-elastic-private-import"):
        findings = list(pair_findings(cause, torch.version, deepspeed.version, prescriber))
        if findings:
            yield findings[0]
            return


@check(
    "TORCH008",
    "This torch loads the checkpoints of this DeepSpeed",
    causes=["torch26-weights-only"],
    severity=Severity.WARNING,
)
def checkpoints_load(torch: Torch, deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """torch 2.6 made torch.load refuse anything but plain tensors, unless the caller says otherwise."""
    yield from pair_findings("torch26-weights-only", torch.version, deepspeed.version, prescriber)


@check("TORCH009", "torch's own NCCL is the one installed", causes=["nccl-lib-conflict"], severity=Severity.WARNING)
def nccl_is_torchs(torch: Torch, packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """torch is linked against one NCCL release. Another wheel puts its library in the same folder."""
    wheels = {n: d.version for n, d in packages.distributions.items() if n.startswith("nvidia-nccl-cu")}
    if torch.cuda is None or not wheels:
        not_applicable("torch brings no NCCL wheel here")
    expected = table("torch_releases")["series"].get(series(torch.version), {}).get("nccl")
    own = f"nvidia-nccl-cu{torch.cuda.split('.')[0]}"
    strangers = sorted(set(wheels) - {own})
    fix: tuple[str, ...]
    if own not in wheels:
        unknown(f"{own} is not among the NCCL wheels: {', '.join(wheels)}")
    if strangers:
        said = f"{', '.join(strangers)} is installed beside {own}: both put libnccl.so.2 into one folder"
        fix = (prescriber.pip_uninstall(*strangers), prescriber.pip(f"{own}=={wheels[own]}", options=_AGAIN))
        yield _nccl_finding(said, f"Remove the stranger, then reinstall {own}", fix, prescriber)
    elif expected and before(series(wheels[own]), series(expected)):
        said = f"{own} is {wheels[own]}; torch {torch.version} was built with NCCL {expected}"
        fix = (prescriber.pip(f"{own}=={expected}", options="--no-deps"),)
        yield _nccl_finding(said, "Install the NCCL that torch was built with", fix, prescriber)


def _nccl_finding(message: str, order: str, commands: tuple[str, ...], prescriber: Prescriber) -> Finding:
    verify = run_python(prescriber, "import torch; print(torch.cuda.nccl.version())")
    remedy = Remedy(order=order, commands=commands, safety="careful", verify=verify)
    return Finding(message=message, cause="nccl-lib-conflict", remedy=remedy)


@check(
    "TORCH010", "Triton is the one that belongs to torch", causes=["triton-old-or-shadowed"], severity=Severity.WARNING
)
def triton_is_torchs(torch: Torch, packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """DeepSpeed imports its Triton kernels whenever Triton is there; a stray one breaks the import."""
    found = packages.version("triton")
    expected = table("torch_releases")["series"].get(series(torch.version), {}).get("triton")
    if found is None or torch.cuda is None:
        not_applicable("Triton is not installed, or torch is not a CUDA build")
    if expected is None:
        unknown(f"torch {torch.version} is newer than this dsdoctor knows")
    if series(found) != series(expected):
        yield Finding(
            message=f"triton is {found}; torch {torch.version} belongs to triton {expected}",
            cause="triton-old-or-shadowed",
            remedy=Remedy(
                order="Install torch's Triton",
                commands=(prescriber.pip(f"triton=={expected}", options="--no-deps"),),
                safety="careful",
                verify=run_python(prescriber, "import triton; print(triton.__version__)"),
            ),
        )


@check(
    "TORCH011",
    "torch sees as many GPUs as the driver",
    causes=["pip-install-gpu-probe-crash"],
    severity=Severity.WARNING,
)
def counts_agree(live: TorchLive, gpus: Gpus, environment: Environment, host: Host | None) -> Iterator[Finding]:
    """When torch and NVML disagree, a GPU is broken or half configured, and programs that walk over all GPUs die."""
    if not live.cuda_available or "CUDA_VISIBLE_DEVICES" in environment.variables:
        not_applicable("torch sees no GPU, or CUDA_VISIBLE_DEVICES chooses among them")
    if any(gpu.mig_enabled for gpu in gpus.devices) or (host is not None and host.wsl):
        not_applicable("with MIG or WSL the two count differently")
    seen = known(live.device_count, "how many GPUs torch sees")
    if gpus.devices and seen != len(gpus.devices):
        yield Finding(
            message=f"torch sees {seen} GPUs, the driver lists {len(gpus.devices)}",
            cause="pip-install-gpu-probe-crash",
            remedy=Remedy(
                order="Compare the two lists and name the good GPUs", commands=("nvidia-smi -L",), safety="manual"
            ),
        )


@check("TORCH012", "This torch release is known to dsdoctor", causes=[], severity=Severity.INFO)
def torch_known(torch: Torch) -> Iterator[Finding]:
    """Tables end somewhere. A newer torch may be fine; dsdoctor says that it cannot tell."""
    latest = table("torch_releases")["meta"]["latest"]
    if release(torch.version)[:2] > release(latest)[:2]:
        unknown(f"torch {torch.version} is newer than I know (up to {latest})")
    yield from ()
