"""The GPU checks that concern the driver: it answers, it is whole, and it runs what torch and nvcc make."""

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
    Toolkits,
    Torch,
    TorchLive,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.host import gpu_wanted, in_container_without_gpu, on_login_node
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.torch import install_command
from dsdoctor_checks.versions import before, release, series

_SEES_GPU = "import torch; print(torch.cuda.is_available())"
_CONSUMER = re.compile(r"GeForce|TITAN", re.IGNORECASE)
_COMPAT = re.compile(r"cuda[^/]*/compat(?:/|$)")
_FABRIC_WAITS = ("in-progress", "not-started")
_STATES = {
    "library-missing": "libnvidia-ml.so.1 was not found",
    "driver-not-loaded": "the driver's library is here, its kernel module is not loaded",
    "no-permission": "this user may not talk to the driver",
    "error": "NVML failed",
}


def need_devices(gpus: Gpus) -> None:
    """End the check when there is no GPU to judge: GPU001 tells why, once."""
    if not gpus.devices:
        silent = gpus.nvml != "ok" and gpus.expected
        not_applicable("NVML does not answer; see GPU001" if silent else "no NVIDIA GPU was found")


def named(gpu: Gpu) -> str:
    """``GPU 0 (NVIDIA H200)``, for messages."""
    return f"GPU {gpu.index} ({gpu.name})"


@check("GPU001", "The NVIDIA driver answers", causes=["nvml-unavailable", "no-gpu-visible"], guards=["gpu"])
def nvml_answers(gpus: Gpus, purpose: Purpose | None, host: Host | None, prescriber: Prescriber) -> Iterator[Finding]:
    """NVML is the driver's own word on its GPUs. Without it CUDA does not start either."""
    if gpus.nvml == "ok" and gpus.devices:
        return
    elsewhere = {"version-mismatch": "GPU002", "lost": "GPU007"}.get(gpus.nvml)
    if elsewhere:
        not_applicable(f"the driver's state is {gpus.nvml}; see {elsewhere}")
    wanted = gpu_wanted(purpose)
    if gpus.nvml == "not-supported" or wanted is False or (not wanted and not gpus.expected):
        not_applicable("no NVIDIA GPU is expected here")
    if host is not None and host.wsl == 1:
        not_applicable("this is WSL 1; see HOST007")
    if in_container_without_gpu(host, gpus):
        not_applicable("the container has no GPU; see HOST003")
    if on_login_node(host, gpus):
        unknown("this looks like a login node; run dsdoctor inside a job (HOST004)")
    yield _silent(gpus, purpose, prescriber)


def _silent(gpus: Gpus, purpose: Purpose | None, prescriber: Prescriber) -> Finding:
    """What NVML's silence means."""
    said = f": {gpus.nvml_detail}" if gpus.nvml_detail else ""
    evidence = (Evidence(where=gpus.read_from, text=gpus.nvml_detail),) if gpus.nvml_detail else ()
    verify = prescriber.shell("nvidia-smi -L")
    if gpus.nvml in ("ok", "no-devices"):
        order = "Find out why the driver has no GPU: its kernel messages name the reason"
        commands = (prescriber.shell("lspci -nn | grep -i nvidia"), prescriber.shell(_dmesg(prescriber)))
        remedy = Remedy(order=order, commands=commands, safety="manual", verify=verify)
        message = f"the driver {gpus.driver_version or ''} runs, but lists no GPU".replace("  ", " ") + said
        return Finding(message=message, cause="no-gpu-visible", evidence=evidence, remedy=remedy)
    if not gpus.expected and gpus.nvml == "library-missing" and purpose is not None:
        bus = "the PCI bus shows no NVIDIA GPU" if gpus.pci_nvidia == 0 else "the PCI bus could not tell"
        message = f"the purpose is {purpose.name} ({purpose.because}), but no NVIDIA GPU is seen: {bus}, /dev has no nvidia node, no driver library"
        order = "Use a machine with an NVIDIA GPU, or examine this one with --purpose ci-cpu"
        return Finding(message=message, cause="no-gpu-visible", remedy=Remedy(order=order, safety="manual"))
    bus = f"; the PCI bus shows {gpus.pci_nvidia} NVIDIA GPU(s)" if gpus.pci_nvidia else ""
    return Finding(
        message=f"{_STATES.get(gpus.nvml, gpus.nvml)}{said}{bus}",
        cause="nvml-unavailable",
        evidence=evidence,
        remedy=_wake(gpus, prescriber, verify),
    )


def _dmesg(prescriber: Prescriber) -> str:
    return f"{'' if prescriber.root else 'sudo '}dmesg | grep -i -E 'nvrm|nvidia'"


def _wake(gpus: Gpus, prescriber: Prescriber, verify: str) -> Remedy:
    """How the driver is brought to answer, on this machine."""
    host, sudo = prescriber.host, "" if prescriber.root else "sudo "
    commands: tuple[str, ...]
    if gpus.nvml == "library-missing":
        note = "the driver belongs on the host, not into a container"
        if host is not None and (host.wsl or host.system == "windows"):
            order, commands, note = "Install the NVIDIA driver in Windows, then restart", (), "install none inside WSL"
        elif host is not None and host.distribution == "ubuntu":
            order, commands = "Install the NVIDIA driver, then restart", (f"{sudo}ubuntu-drivers install",)
        else:
            order, commands = "Install the NVIDIA driver of your distribution, then restart", ()
        return Remedy(
            order=order, commands=commands, safety="careful" if commands else "manual", verify=verify, note=note
        )
    if gpus.nvml == "driver-not-loaded":
        order, commands = "Load the NVIDIA kernel module", (f"{sudo}modprobe nvidia", _dmesg(prescriber))
        note = "when it cannot be loaded: it was not built for this kernel (dkms status), or Secure Boot refuses it"
        return Remedy(order=order, commands=commands, safety="careful", verify=verify, note=note)
    if gpus.nvml == "no-permission":
        order, commands = "Get access to the device nodes, or to the job's GPUs", ("ls -l /dev/nvidia*", "id")
        return Remedy(order=order, commands=commands, safety="manual", verify=verify)
    order, commands = "Read what the driver says, then restart the machine", ("nvidia-smi", _dmesg(prescriber))
    return Remedy(order=order, commands=commands, safety="manual", verify=verify)


@check(
    "GPU002", "The driver's libraries and its kernel module agree", causes=["driver-lib-mismatch-803"], guards=["gpu"]
)
def driver_whole(gpus: Gpus, host: Host | None, prescriber: Prescriber) -> Iterator[Finding]:
    """An update replaces the libraries at once, the loaded kernel module only at the next boot."""
    module, library = gpus.kernel_module_version, gpus.driver_version
    differ = module is not None and library is not None and release(module) != release(library)
    if gpus.nvml != "version-mismatch" and not differ:
        if gpus.nvml != "ok":
            not_applicable("NVML does not answer; see GPU001")
        return
    where = f"/proc/driver/nvidia/version says {module}" if module else "the kernel module has another version"
    sudo = "" if prescriber.root else "sudo "
    note = None
    if host is not None and host.container is not None:
        note = "in a container: restart the container first; when that does not help, restart the host"
    yield Finding(
        message=f"{where}, the libraries say {library or gpus.nvml_detail or 'something else'}",
        cause="driver-lib-mismatch-803",
        remedy=Remedy(
            order="Restart the machine, so that the kernel loads the module of the installed driver",
            commands=(f"{sudo}reboot",),
            safety="careful",
            verify="nvidia-smi",
            note=note,
        ),
    )


@check("GPU003", "The driver runs the CUDA that torch was built for", causes=["driver-too-old"], guards=["gpu"])
def driver_runs_torch(
    gpus: Gpus, torch: Torch | None, live: TorchLive | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """A driver runs every CUDA of its own major version and of older ones, by NVIDIA's release notes."""
    need_devices(gpus)
    torch = known(torch, "which torch is installed")
    if torch.cuda is None:
        not_applicable(f"torch {torch.version} is not a CUDA build")
    if live is not None and live.cuda_available:
        return  # a driver that is older by its number and runs it all the same: forward compatibility
    major = torch.cuda.split(".")[0]
    floor = table("driver")["floor_linux"].get(major, {}).get("driver")
    if gpus.driver_cuda is not None:
        old = release(gpus.driver_cuda)[0] < release(torch.cuda)[0]
    elif floor is None or gpus.driver_version is None:
        unknown(f"it is not known which driver CUDA {torch.cuda} needs, or which CUDA this driver runs")
    else:
        old = before(gpus.driver_version, floor)
    if old:
        yield _too_old(gpus, torch, floor, prescriber)


def _too_old(gpus: Gpus, torch: Torch, floor: str | None, prescriber: Prescriber) -> Finding:
    runs = f" (up to CUDA {gpus.driver_cuda})" if gpus.driver_cuda else ""
    windows = prescriber.host is not None and (prescriber.host.system == "windows" or prescriber.host.wsl)
    needs = f"; that needs driver {floor} or newer on Linux, by NVIDIA's release notes" if floor and not windows else ""
    order = "Install a torch for the CUDA that this driver runs" if gpus.driver_cuda else "Update the NVIDIA driver"
    commands = (install_command(prescriber, gpus, "--force-reinstall"),) if gpus.driver_cuda else ()
    return Finding(
        message=f"the driver is {gpus.driver_version or 'unknown'}{runs}, torch {torch.version} was built for CUDA {torch.cuda}{needs}",
        cause="driver-too-old",
        remedy=Remedy(
            order=order,
            commands=commands,
            safety="careful" if commands else "manual",
            verify=run_python(prescriber, _SEES_GPU),
            note="or update the NVIDIA driver on the host, then restart" if commands else None,
        ),
    )


@check(
    "GPU004",
    "The driver takes the PTX that nvcc makes",
    causes=["ptx-unsupported-toolchain"],
    severity=Severity.WARNING,
)
def driver_takes_ptx(gpus: Gpus, kits: Toolkits | None, prescriber: Prescriber) -> Iterator[Finding]:
    """A driver compiles PTX of toolkits up to its own CUDA only. DeepSpeed builds for the GPU at hand, which needs none."""
    need_devices(gpus)
    kit = known(kits, "which CUDA toolkits are here").selected
    if kit is None or kit.version is None or kit.nvcc is None:
        not_applicable("no nvcc was found")
    runs = known(gpus.driver_cuda, "which CUDA the driver runs")
    if release(kit.version)[:2] <= release(runs)[:2]:
        return
    full = table("driver")["full_linux"]["driver"].get(series(kit.version))
    came = f" (that toolkit came with driver {full}, by NVIDIA's release notes)" if full else ""
    arch = next((gpu.compute_capability for gpu in gpus.devices if gpu.compute_capability), None)
    same = release(kit.version)[0] == release(runs)[0]
    yield Finding(
        message=f"nvcc in {kit.root} is {kit.version}, the driver {gpus.driver_version or ''} takes PTX up to CUDA {gpus.driver_cuda}{came}".replace(
            "  ", " "
        ),
        cause="ptx-unsupported-toolchain",
        severity=Severity.INFO if same else None,
        remedy=Remedy(
            order="Build ops for the exact GPU, without PTX; or update the driver",
            commands=(prescriber.set("TORCH_CUDA_ARCH_LIST", arch),) if arch else (),
            safety="safe" if arch else "manual",
        ),
    )


@check("GPU005", "No forward-compatibility libraries on a consumer GPU", causes=["cuda-compat-804"], guards=["gpu"])
def no_compat(
    gpus: Gpus, environment: Environment, live: TorchLive | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """cuda-compat brings a newer libcuda than the driver's. GeForce GPUs refuse it with error 804, by NVIDIA's release notes."""
    need_devices(gpus)
    names = [gpu.name for gpu in gpus.devices if _CONSUMER.search(gpu.name)]
    if not names:
        not_applicable("no GeForce or TITAN GPU is here")
    folders = [f for f in environment.get("LD_LIBRARY_PATH").split(":") if f]
    compat = [f for f in folders if _COMPAT.search(f)]
    if not compat or (live is not None and live.cuda_available):
        return
    rest = ":".join(f for f in folders if f not in compat)
    yield Finding(
        message=f"LD_LIBRARY_PATH holds {', '.join(compat)}, and the GPU is a {names[0]}",
        cause="cuda-compat-804",
        remedy=Remedy(
            order="Take the compat folder off LD_LIBRARY_PATH",
            commands=(prescriber.set("LD_LIBRARY_PATH", rest) if rest else prescriber.unset("LD_LIBRARY_PATH"),),
            verify=run_python(prescriber, _SEES_GPU),
            note="when torch then calls the driver too old, update the host's driver",
        ),
    )


@check("GPU006", "The NVSwitch fabric is ready", causes=["fabric-manager-802"], guards=["gpu"])
def fabric_ready(gpus: Gpus, live: TorchLive | None, prescriber: Prescriber) -> Iterator[Finding]:
    """On machines with NVSwitch, CUDA starts only after the fabric manager has set the switches up."""
    need_devices(gpus)
    started = live is not None and bool(live.cuda_available)
    states = {gpu.index: gpu.fabric_state for gpu in gpus.devices if gpu.fabric_state not in (None, "not-supported")}
    switches = any("nvswitch" in node for node in gpus.device_nodes)
    if not states and not switches:
        not_applicable("there is no NVSwitch fabric")
    if not states and not started:
        unknown("there are NVSwitches, but the driver does not tell the state of the fabric")
    waiting = {i: s for i, s in states.items() if s in _FABRIC_WAITS}
    if not waiting or started:
        return
    listed = ", ".join(f"GPU {i}: {s}" for i, s in waiting.items())
    yield Finding(
        message=f"the fabric is not ready ({listed}), driver {gpus.driver_version or 'unknown'}",
        cause="fabric-manager-802",
        remedy=Remedy(
            order=f"Start the fabric manager of exactly driver {gpus.driver_version or 'the same version'}",
            commands=(f"{'' if prescriber.root else 'sudo '}systemctl enable --now nvidia-fabricmanager",),
            safety="careful",
            verify="nvidia-smi -q | grep -A 3 Fabric",
            note="it runs on the host, not in a container",
        ),
    )
