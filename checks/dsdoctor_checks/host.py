"""Checks of the place where training is to run: operating system, kernel, container, WSL, scheduler."""

from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    DsConfig,
    Environment,
    Finding,
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
)
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.versions import before

_KERNEL_FLOOR = "5.5"  # accelerate warns below it
_LIBUV_FROM, _LIBUV_BEFORE, _LIBUV_GUARDED = "2.4", "2.7", "0.16.4"
_BUILT_IN_ARM = "0.9.3"  # the first releases that pick an accelerator by themselves
_WSL_LIBRARIES = "/usr/lib/wsl/lib"


def on_login_node(host: Host | None, gpus: Gpus) -> bool:
    """True on a cluster's machine without GPU, outside of any job."""
    return host is not None and host.scheduler == "slurm" and not host.inside_job and not gpus.expected


_RUNTIMES = {"colab": "Runtime > Change runtime type > T4 GPU", "kaggle": "Settings > Accelerator > GPU"}


def in_container_without_gpu(host: Host | None, gpus: Gpus) -> bool:
    """True in a container that was given neither the driver's library nor a device."""
    return host is not None and host.container is not None and gpus.nvml == "library-missing" and not gpus.device_nodes


def gpu_wanted(purpose: Purpose | None) -> bool | None:
    """What the purpose says of a GPU; None when it was guessed to be none, or is not known."""
    if purpose is None or (purpose.guessed and not purpose.wants_gpu):
        return None
    return purpose.wants_gpu


@check(
    "HOST001",
    "DeepSpeed trains on this operating system",
    causes=["windows-shell-used-instead-of-wsl", "macos-mps"],
    severity=Severity.WARNING,
)
def platform_trains(host: Host) -> Iterator[Finding]:
    """DeepSpeed is made for Linux. On Windows many ops do not build; on a Mac there is no CUDA."""
    if host.system == "windows":
        yield Finding(
            message=f"this is {host.distribution_name or 'Windows'}: async_io, GDS and NCCL do not exist here",
            cause="windows-shell-used-instead-of-wsl",
            remedy=Remedy(
                order="Install WSL 2 and set DeepSpeed up inside of it",
                commands=("wsl --install -d Ubuntu",),
                safety="careful",
                verify="wsl -l -v",
                note="the NVIDIA driver stays on the Windows side; install none inside WSL",
            ),
        )
    elif host.system == "darwin":
        yield Finding(
            message=f"this is {host.distribution_name or 'macOS'}: there is no CUDA, DeepSpeed runs on CPU or MPS to try things out",
            cause="macos-mps",
            severity=Severity.INFO,
            remedy=Remedy(
                order="Train on a Linux machine with an NVIDIA GPU; here, use the CPU accelerator for small tests",
                commands=("export DS_ACCELERATOR=cpu",),
            ),
        )


@check("HOST002", "The kernel is 5.5 or newer", causes=["kernel-too-old-hang"], severity=Severity.WARNING)
def kernel_new(host: Host) -> Iterator[Finding]:
    """Training with several processes may hang on kernels before 5.5. Hugging Face accelerate warns of them too."""
    if host.system != "linux" or host.container == "gvisor" or host.wsl == 1:
        not_applicable("no Linux kernel runs here")
    if not host.kernel[:1].isdigit():
        known(None, "the kernel's version")
    if before(host.kernel, _KERNEL_FLOOR):
        yield Finding(
            message=f"the kernel is {host.kernel}, older than {_KERNEL_FLOOR}",
            cause="kernel-too-old-hang",
            remedy=Remedy(
                order="Boot a kernel of 5.5 or newer, or move to a newer release of the distribution",
                safety="manual",
                verify="uname -r",
                note="a container shares its host's kernel; distributions with long support may have the mend in an older number",
            ),
        )


@check("HOST003", "The container was given its GPU", causes=["container-no-gpu"], guards=["gpu"])
def container_has_gpu(host: Host, gpus: Gpus, purpose: Purpose | None) -> Iterator[Finding]:
    """A container sees no GPU and no driver library unless it is started with them."""
    if host.container is None:
        not_applicable("this is not a container")
    wanted = gpu_wanted(purpose)
    if wanted is False or (not wanted and not gpus.pci_nvidia):
        not_applicable("nothing here asks for a GPU")
    if not in_container_without_gpu(host, gpus):
        return
    if host.hosted_on in _RUNTIMES:
        yield Finding(
            message=f"this {host.hosted_on} runtime has no GPU: no /dev/nvidia* and no libnvidia-ml.so.1",
            cause="container-no-gpu",
            remedy=Remedy(order=f"Attach a GPU: {_RUNTIMES[host.hosted_on]}", safety="manual", verify="!nvidia-smi -L"),
        )
        return
    seen = f"the PCI bus shows {gpus.pci_nvidia} NVIDIA GPU(s), but " if gpus.pci_nvidia else ""
    yield Finding(
        message=f"{seen}this container ({host.container}) has no /dev/nvidia* and no libnvidia-ml.so.1",
        cause="container-no-gpu",
        remedy=_give_gpu(host.container),
    )


def _give_gpu(container: str) -> Remedy:
    orders = {
        "kubernetes": ("Ask for a GPU in the pod's resources (nvidia.com/gpu: 1)", ()),
        "singularity": ("Start the container with --nv", ("apptainer exec --nv IMAGE nvidia-smi",)),
        "podman": (
            "Start the container with its GPUs (on the host)",
            ("podman run --device nvidia.com/gpu=all IMAGE nvidia-smi",),
        ),
    }
    plain = ("Start the container with its GPUs (on the host)", ("docker run --rm --gpus all IMAGE nvidia-smi",))
    order, commands = orders.get(container, plain)
    note = "the host needs the NVIDIA driver and nvidia-container-toolkit"
    return Remedy(order=order, commands=commands, safety="manual", verify="nvidia-smi -L", note=note)


@check("HOST004", "This is not a cluster's login node", causes=["login-node-report"], severity=Severity.INFO)
def not_login_node(host: Host, gpus: Gpus) -> Iterator[Finding]:
    """A login node has other hardware, and often other modules, than the nodes that train."""
    if host.scheduler != "slurm":
        not_applicable("there is no Slurm here")
    if on_login_node(host, gpus):
        yield Finding(
            message="Slurm is here, this is no job (no SLURM_JOB_ID), and there is no GPU: it looks like a login node",
            cause="login-node-report",
            remedy=Remedy(
                order="Run dsdoctor on a node that trains",
                commands=("srun --gres=gpu:1 --pty dsdoctor check",),
                note="add the partition and account that your cluster asks for",
            ),
        )


@check("HOST005", "WSL finds the libcuda of Windows", causes=["wsl-cuda-stub"], severity=Severity.WARNING)
def wsl_libcuda(host: Host, gpus: Gpus, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:
    """In WSL 2 the driver lives in Windows. Its libcuda lies in /usr/lib/wsl/lib; a second one from apt shadows it."""
    if host.wsl != 2:
        not_applicable("this is not WSL 2")
    if not gpus.devices and gpu_wanted(purpose) is not True:
        not_applicable("nothing here asks for a GPU")
    if gpus.libcuda is not None and gpus.libcuda.startswith(_WSL_LIBRARIES):
        return
    found = f"the loader finds {gpus.libcuda}" if gpus.libcuda else "the loader finds no libcuda.so.1"
    yield Finding(
        message=f"{found}, not the one in {_WSL_LIBRARIES}",
        cause="wsl-cuda-stub",
        remedy=Remedy(
            order="Put the library folder of WSL first",
            commands=(
                prescriber.set("LD_LIBRARY_PATH", f"{_WSL_LIBRARIES}:$LD_LIBRARY_PATH"),
                prescriber.set("LIBRARY_PATH", f"{_WSL_LIBRARIES}:$LIBRARY_PATH"),
            ),
            verify=run_python(prescriber, "import torch; print(torch.cuda.is_available())"),
            note="remove NVIDIA driver packages that were installed inside WSL",
        ),
    )


@check(
    "HOST006", "Offload needs no large pinned memory in WSL", causes=["wsl-pinned-memory-limit"], severity=Severity.INFO
)
def wsl_pinned(host: Host, gpus: Gpus, config: DsConfig | None) -> Iterator[Finding]:
    """WSL 2 limits pinned host memory. Pinning offload buffers may end with a CUDA out-of-memory error though both memories are free."""
    if host.wsl != 2 or not gpus.devices:
        not_applicable("this is not WSL 2 with a GPU")
    parts = [f"zero_optimization.offload_{part}" for part in ("optimizer", "param")]
    pinned = [p for p in parts if config is not None and config.get(f"{p}.pin_memory") is True]
    if config is not None and not pinned:
        return
    where = f"{config.where(pinned[0])} pins memory" if config is not None else "offload with pin_memory may fail"
    yield Finding(
        message=f"WSL 2 limits pinned memory; {where}",
        cause="wsl-pinned-memory-limit",
        severity=Severity.WARNING if pinned else None,
        remedy=Remedy(
            order='Set "pin_memory": false in offload_optimizer and offload_param, or raise memory= in .wslconfig',
            safety="manual",
        ),
    )


@check("HOST007", "WSL is version 2", causes=["no-gpu-visible"], guards=["gpu"])
def wsl_two(host: Host, purpose: Purpose | None, environment: Environment | None) -> Iterator[Finding]:
    """WSL 1 has no Linux kernel of its own, so there is no CUDA in it; WSL 2 has both."""
    if host.wsl is None:
        not_applicable("this is not WSL")
    if host.wsl == 1 and gpu_wanted(purpose) is not True:
        not_applicable("this is WSL 1, and nothing here asks for a GPU")
    if host.wsl == 1:
        name = (environment.get("WSL_DISTRO_NAME") if environment else "") or "Ubuntu"
        yield Finding(
            message=f"this is WSL 1 (kernel {host.kernel}), which has no CUDA",
            cause="no-gpu-visible",
            remedy=Remedy(
                order="Convert the distribution to WSL 2, from PowerShell",
                commands=(f"wsl --set-version {name} 2",),
                safety="careful",
                verify="wsl -l -v",
            ),
        )


@check("HOST008", "torch's rendezvous works on Windows", causes=["windows-libuv"], severity=Severity.WARNING)
def windows_store(
    host: Host, torch: Torch | None, deepspeed: DeepSpeed | None, environment: Environment, prescriber: Prescriber
) -> Iterator[Finding]:
    """torch 2.4 to 2.6 take libuv for their store on Windows, but were built without it. DeepSpeed 0.16.4 minds that."""
    if host.system != "windows":
        not_applicable("this is not Windows")
    torch, deepspeed = known(torch, "which torch is installed"), known(deepspeed, "which DeepSpeed is installed")
    affected = not before(torch.version, _LIBUV_FROM) and before(torch.version, _LIBUV_BEFORE)
    if affected and before(deepspeed.version, _LIBUV_GUARDED) and environment.get("USE_LIBUV") != "0":
        yield Finding(
            message=f"torch {torch.version} wants libuv, DeepSpeed {deepspeed.version} does not turn it off",
            cause="windows-libuv",
            remedy=Remedy(
                order="Tell torch to do without libuv, or update DeepSpeed to 0.16.4 or newer",
                commands=(prescriber.set("USE_LIBUV", "0"),),
                note="not needed when USE_LIBUV=0 is set already",
            ),
        )


@check("HOST009", "DeepSpeed is new enough for ARM", causes=["aarch64-install"], severity=Severity.INFO)
def arm_supported(host: Host, deepspeed: DeepSpeed | None, prescriber: Prescriber) -> Iterator[Finding]:
    """Old DeepSpeed releases demanded CUDA and x86. Newer ones choose an accelerator by themselves."""
    if host.system != "linux" or host.machine not in ("aarch64", "arm64"):
        not_applicable("this is not Linux on ARM")
    deepspeed = known(deepspeed, "which DeepSpeed is installed")
    if before(deepspeed.version, _BUILT_IN_ARM):
        yield Finding(
            message=f"DeepSpeed {deepspeed.version} on {host.machine} takes CUDA for granted (before {_BUILT_IN_ARM})",
            cause="aarch64-install",
            remedy=Remedy(
                order="Update DeepSpeed with pip, not with install.sh",
                commands=(prescriber.pip("deepspeed", options="--upgrade"),),
                verify=run_python(prescriber, "import deepspeed"),
            ),
        )
