"""Checks of the GPUs themselves: they are there, healthy, free, visible, and torch has code for them.

The checks of the driver are in driver.py, those of what a GPU can run in architectures.py; they belong to this family too.
"""

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Environment,
    Evidence,
    Finding,
    Gpu,
    Gpus,
    Host,
    Prescriber,
    Purpose,
    Remedy,
    Severity,
    Torch,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.architectures import bf16_hardware, fp16_accepted, torch_has_code
from dsdoctor_checks.driver import (
    driver_runs_torch,
    driver_takes_ptx,
    driver_whole,
    fabric_ready,
    named,
    need_devices,
    no_compat,
    nvml_answers,
)
from dsdoctor_checks.host import gpu_wanted
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table

__all__ = [
    "bf16_hardware", "driver_runs_torch", "driver_takes_ptx", "driver_whole", "fabric_ready", "fp16_accepted",
    "no_compat", "nvml_answers", "torch_has_code",
]  # fmt: skip

_GIB = 1024**3
_BUSY_SHARE = 0.2
_XID = re.compile(r"Xid(?: \(PCI:[^)]*\))?: *(\d+)")
_LOST = re.compile(r"lost|fallen off", re.IGNORECASE)
_NO_P2P = re.compile(r"RTX [45]0\d\d")
_HIDDEN = ("", "-1", "NoDevFiles")


def _xid_lines(gpus: Gpus, kind: str) -> list[str]:
    wanted = table("driver")["xid"][kind]
    return [line for line in gpus.xid_errors if (m := _XID.search(line)) and int(m.group(1)) in wanted]


@check("GPU007", "No GPU fell off the bus", causes=["gpu-lost"], guards=["gpu"])
def none_lost(gpus: Gpus) -> Iterator[Finding]:
    """A GPU that lost its link answers nothing any more, and programs that touch it hang."""
    lost = [gpu for gpu in gpus.devices if gpu.error and _LOST.search(gpu.error)]
    lines = _xid_lines(gpus, "lost")
    if gpus.nvml != "lost" and not lost and not lines:
        need_devices(gpus)
        return
    who = ", ".join(f"GPU {gpu.index}: {gpu.error}" for gpu in lost) or gpus.nvml_detail or (lines or ["a GPU"])[-1]
    yield Finding(
        message=f"a GPU was lost: {who}",
        cause="gpu-lost",
        severity=None if gpus.nvml == "lost" or lost else Severity.WARNING,
        evidence=tuple(Evidence(where="kernel log", text=line) for line in lines),
        remedy=Remedy(
            order="Restart the machine; when it comes again, have the GPU's seat, power and cooling looked at",
            commands=("nvidia-smi -L",),
            safety="manual",
            verify="nvidia-smi -L",
        ),
    )


@check("GPU008", "The GPUs report no broken memory", causes=["gpu-ecc-xid"], severity=Severity.WARNING)
def memory_whole(gpus: Gpus, prescriber: Prescriber) -> Iterator[Finding]:
    """Uncorrected memory errors end runs, or spoil them without a word."""
    need_devices(gpus)
    said = []
    for gpu in gpus.devices:
        if gpu.ecc_uncorrected:
            said.append(
                f"{named(gpu)} counts {gpu.ecc_uncorrected} uncorrected memory errors since the driver was loaded"
            )
        if gpu.rows_pending:
            said.append(f"{named(gpu)} waits for a reset to replace broken memory rows")
    lines = _xid_lines(gpus, "hardware")
    said += [f"the kernel log has {len(lines)} hardware messages, the last: {lines[-1]}"] if lines else []
    if said:
        yield Finding(
            message="; ".join(said),
            cause="gpu-ecc-xid",
            evidence=tuple(Evidence(where="kernel log", text=line) for line in lines),
            remedy=Remedy(
                order="Reset the GPU when nothing runs on it; replace it when the errors come back",
                commands=(f"{'' if prescriber.root else 'sudo '}nvidia-smi --gpu-reset",),
                safety="careful",
                verify="nvidia-smi -q -d ECC,ROW_REMAPPER",
            ),
        )


@check("GPU009", "The memory of the GPUs is free", causes=["gpu-busy"], severity=Severity.WARNING)
def memory_free(gpus: Gpus) -> Iterator[Finding]:
    """A GPU that somebody else fills ends a run with an out-of-memory error that looks like one's own."""
    need_devices(gpus)
    if all(gpu.used_bytes is None or not gpu.total_bytes for gpu in gpus.devices):
        unknown("how much memory is in use is not known")
    for gpu in gpus.devices:
        large = [p for p in gpu.processes if (p.used_bytes or 0) >= _GIB]
        used, total = gpu.used_bytes or 0, gpu.total_bytes or 0
        if not large and used <= total * _BUSY_SHARE:
            continue
        who = ", ".join(
            f"{p.pid} {p.name or '(no name)'}" + (f" {p.used_bytes / _GIB:.1f} GiB" if p.used_bytes else "")
            for p in (large or gpu.processes)
        )
        yield Finding(
            message=f"{named(gpu)}: {used / _GIB:.1f} of {total / _GIB:.1f} GiB are in use, by {who or 'a process that NVML does not show here'}",
            cause="gpu-busy",
            subject=f"GPU {gpu.index}",
            remedy=_free(gpu, gpus),
        )


def _free(busy: Gpu, gpus: Gpus) -> Remedy:
    others = [
        g.index for g in gpus.devices if g.index != busy.index and (g.used_bytes or 0) <= (g.total_bytes or 0) * 0.2
    ]
    note = f"or train on GPU {', '.join(map(str, others))}: deepspeed --include localhost:{','.join(map(str, others))}"
    pids = tuple(f"ps -fp {p.pid}" for p in busy.processes)
    return Remedy(
        order="End the process if it is yours and no longer needed, or wait for it",
        commands=pids or ("nvidia-smi",),
        safety="manual",
        verify="nvidia-smi",
        note=note if others else None,
    )


@check(
    "GPU010",
    "The GPUs accept any number of processes",
    causes=["gpu-exclusive-mode"],
    severity=Severity.WARNING,
    guards=["gpu"],
)
def mode_default(gpus: Gpus, prescriber: Prescriber) -> Iterator[Finding]:
    """In an exclusive mode a second process on the GPU is refused: a debugger, an evaluation, a rank that strays."""
    need_devices(gpus)
    if all(gpu.compute_mode is None for gpu in gpus.devices):
        unknown("the compute mode is not known")
    for gpu in gpus.devices:
        if gpu.compute_mode in (None, "default"):
            continue
        yield Finding(
            message=f"{named(gpu)} has compute mode {gpu.compute_mode}",
            cause="gpu-exclusive-mode",
            subject=f"GPU {gpu.index}",
            severity=Severity.ERROR if gpu.compute_mode == "prohibited" else None,
            remedy=Remedy(
                order="Set the compute mode to DEFAULT",
                commands=(f"{'' if prescriber.root else 'sudo '}nvidia-smi -i {gpu.index} -c DEFAULT",),
                safety="careful",
                verify="nvidia-smi --query-gpu=compute_mode --format=csv",
            ),
        )


@check("GPU011", "The GPUs are whole, not cut by MIG", causes=["mig-unsupported"], severity=Severity.INFO)
def no_mig(gpus: Gpus, prescriber: Prescriber) -> Iterator[Finding]:
    """NCCL does not join slices of GPUs. One slice trains like a small GPU."""
    need_devices(gpus)
    cut = [gpu for gpu in gpus.devices if gpu.mig_enabled]
    if cut:
        several = len(gpus.devices) > 1
        yield Finding(
            message=f"MIG is on for {', '.join(map(named, cut))}: one process sees one slice, NCCL joins none",
            cause="mig-unsupported",
            severity=Severity.WARNING if several else None,
            remedy=Remedy(
                order="Train on one slice only, or have MIG turned off"
                if several
                else "Train on one slice, as on one small GPU",
                commands=tuple(f"{'' if prescriber.root else 'sudo '}nvidia-smi -i {g.index} -mig 0" for g in cut)
                if several
                else ("nvidia-smi -L",),
                safety="manual",
                verify="nvidia-smi -L",
            ),
        )


@check("GPU012", "CUDA_VISIBLE_DEVICES names GPUs that are here", causes=["no-gpu-visible"], guards=["gpu"])
def visible(gpus: Gpus, environment: Environment, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:
    """CUDA hides every GPU that the list does not name, and all that follow the first wrong entry."""
    need_devices(gpus)
    if "CUDA_VISIBLE_DEVICES" not in environment.variables or gpu_wanted(purpose) is False:
        not_applicable("CUDA_VISIBLE_DEVICES is not set, or no GPU is asked for")
    value = environment.get("CUDA_VISIBLE_DEVICES").strip()
    entries = [entry.strip() for entry in value.split(",")]
    if value not in _HIDDEN and not all(re.fullmatch(r"-?\d+", entry) for entry in entries):
        not_applicable("CUDA_VISIBLE_DEVICES names GPUs by their UUID")
    here = {str(gpu.index) for gpu in gpus.devices}
    wrong = next((i for i, entry in enumerate(entries) if entry not in here), None)
    if wrong is None:
        return
    what = "hides every GPU" if wrong == 0 else f"shows only {', '.join(entries[:wrong])}: {entries[wrong]} is not here"
    yield Finding(
        message=f'CUDA_VISIBLE_DEVICES="{value}" {what}; the driver lists {", ".join(sorted(here))}',
        cause="no-gpu-visible",
        severity=None if wrong == 0 else Severity.WARNING,
        remedy=Remedy(
            order="Take the variable away, or name GPUs that are here",
            commands=(prescriber.unset("CUDA_VISIBLE_DEVICES"),),
            verify=run_python(prescriber, "import torch; print(torch.cuda.device_count())"),
        ),
    )


@check("GPU017", "GPU pairs can reach each other's memory", causes=["p2p-broken-consumer-gpu"], severity=Severity.INFO)
def p2p_works(gpus: Gpus, environment: Environment, prescriber: Prescriber) -> Iterator[Finding]:
    """RTX 40 and 50 cards have no P2P over PCIe. Drivers that claimed it made collectives hang."""
    need_devices(gpus)
    cards = {gpu.index: gpu.name for gpu in gpus.devices if _NO_P2P.search(gpu.name) and "Ada" not in gpu.name}
    pairs = [link for link in gpus.links if link.first in cards and link.second in cards]
    if len(cards) < 2:
        not_applicable("there are no two GeForce RTX 40 or 50 cards")
    if environment.get("NCCL_P2P_DISABLE") == "1":
        return
    claimed = any(link.p2p_read for link in pairs)
    if not claimed and not any(link.p2p_read is False for link in pairs):
        unknown("whether the cards can reach each other's memory is not known")
    does = "the driver claims P2P, which such cards do not have over PCIe" if claimed else "the driver allows no P2P"
    yield Finding(
        message=f"{len(cards)} x {next(iter(cards.values()))}: {does}",
        cause="p2p-broken-consumer-gpu",
        severity=Severity.WARNING if claimed else None,
        remedy=Remedy(
            order="Tell NCCL not to try P2P",
            commands=(prescriber.set("NCCL_P2P_DISABLE", "1"),),
            note="needed when collectives hang; NCCL then copies through host memory",
        ),
    )


@check(
    "GPU018",
    "The accelerator is one that dsdoctor examines",
    causes=["rocm-treated-as-cuda", "xpu-not-detected"],
    severity=Severity.INFO,
)
def maker_known(gpus: Gpus, torch: Torch | None, purpose: Purpose | None) -> Iterator[Finding]:
    """dsdoctor examines NVIDIA GPUs. It names AMD and Intel GPUs, and says no more about them."""
    amd = any("AMD" in other for other in gpus.others) or bool(torch and torch.hip)
    intel = any("Intel" in other for other in gpus.others) or bool(torch and torch.xpu)
    asked = bool(torch and (torch.hip or torch.xpu)) or gpu_wanted(purpose)
    if gpus.expected or not (amd or intel) or not asked:
        not_applicable("there is no GPU of another maker to train on")
    maker = "AMD" if (torch and torch.hip) or not intel else "Intel"
    build = "ROCm (torch.version.hip)" if maker == "AMD" else "XPU (torch.version.xpu)"
    yield Finding(
        message=f"the GPU is {', '.join(gpus.others) or maker}: dsdoctor does not examine {maker} GPUs",
        cause="rocm-treated-as-cuda" if maker == "AMD" else "xpu-not-detected",
        remedy=Remedy(
            order=f"Make sure that torch is a build for {build}, and read ds_report",
            commands=("ds_report",),
            safety="manual",
        ),
    )


@check("GPU020", "The driver lists every NVIDIA GPU on the bus", causes=["gpu-lost"], severity=Severity.WARNING)
def all_listed(gpus: Gpus, host: Host) -> Iterator[Finding]:
    """A GPU on the PCI bus that the driver does not list is broken, not powered, or not supported by this driver."""
    need_devices(gpus)
    if host.container is not None or host.inside_job or gpus.nvml == "lost":
        not_applicable("a container or a job is given some of the GPUs only, or one is lost (GPU007)")
    bus = known(gpus.pci_nvidia, "how many GPUs are on the PCI bus")
    if bus > len(gpus.devices):
        yield Finding(
            message=f"the PCI bus shows {bus} NVIDIA GPUs, driver {gpus.driver_version or ''} lists {len(gpus.devices)}".replace(
                "  ", " "
            ),
            cause="gpu-lost",
            remedy=Remedy(
                order="Compare the two lists, and read why the driver left one out",
                commands=("lspci -nn | grep -i nvidia", "nvidia-smi -L"),
                safety="manual",
                verify="nvidia-smi -L",
            ),
        )
