"""What the engine is told about DeepSpeed's world: causes, capabilities, purposes, platforms."""

from collections.abc import Iterator, Mapping
from typing import Any

from dsdoctor.api import CauseInfo, Gpus, Host, Platform, Purpose, Snapshot
from dsdoctor_checks import tables
from dsdoctor_checks.tables import signatures

__all__ = ["causes", "describe_platform", "guess_purpose", "signatures"]


def __getattr__(name: str) -> Any:
    """CAPABILITIES and ops are loaded when they are asked for: who judges a config alone asks for neither."""
    if name == "CAPABILITIES":
        from dsdoctor_checks.capabilities import CAPABILITIES

        return CAPABILITIES
    if name == "ops":
        from dsdoctor_checks.op_specs import specs

        return specs
    raise AttributeError(name)


class Causes(Mapping[str, CauseInfo]):
    """The vocabulary, a row read when it is wanted."""

    def __getitem__(self, slug: str) -> CauseInfo:
        row = tables.causes()[slug]
        return CauseInfo(
            title=row["title"],
            layer=row["layer"],
            why=row["why"],
            remedy=row["remedy"],
            explains=tuple(row.get("explains", ())),
            sources=tuple(row.get("sources", ())),
            seen_by=row["seen_by"],
        )

    def __iter__(self) -> Iterator[str]:
        return iter(tables.causes())

    def __len__(self) -> int:
        return len(tables.causes())


def causes() -> Causes:
    """tables/causes.toml."""
    return Causes()


def guess_purpose(snapshot: Snapshot) -> Purpose:
    """What a machine is for, from what it has; the user can say better with --purpose."""
    gpus, programs, storage = snapshot.gpus, snapshot.programs, snapshot.storage
    count = len(gpus.devices) if gpus else 0
    if programs and programs.hostfile and len(programs.hostfile.hosts) > 1:
        return Purpose(name="multi-node", because=f"the hostfile names {len(programs.hostfile.hosts)} hosts")
    nodes = snapshot.environment.get("SLURM_NNODES") if snapshot.environment else ""
    if nodes.isdigit() and int(nodes) > 1:
        return Purpose(name="multi-node", because=f"Slurm gave {nodes} nodes")
    if storage and storage.place("nvme") and count:
        return Purpose(name="offload-nvme", because="a place for NVMe offload was named")
    if count > 1:
        return Purpose(name="multi-gpu", because=f"{count} GPUs are here")
    if count == 1 or (gpus and gpus.expected):
        return Purpose(
            name="single-gpu", because="one GPU is here" if count else "the machine has an NVIDIA GPU or driver"
        )
    return _without_gpu(snapshot)


def _without_gpu(snapshot: Snapshot) -> Purpose:
    cuda = snapshot.torch is not None and snapshot.torch.cuda is not None
    asked = snapshot.environment.get("NVIDIA_VISIBLE_DEVICES") if snapshot.environment else ""
    if cuda and snapshot.host and snapshot.host.hosted_on in ("colab", "kaggle"):
        return Purpose(name="single-gpu", because="a notebook with a CUDA build of torch")
    if cuda and asked not in ("", "void", "none"):
        return Purpose(name="single-gpu", because=f"NVIDIA_VISIBLE_DEVICES={asked} asks for GPUs")
    if cuda and snapshot.environment and snapshot.environment.get("DS_ACCELERATOR") == "cuda":
        return Purpose(name="builder", because="no GPU, but DS_ACCELERATOR=cuda")
    toolkit = snapshot.toolkits.selected if snapshot.toolkits else None
    if snapshot.torch and snapshot.torch.cuda and toolkit and toolkit.nvcc:
        return Purpose(name="builder", because="no GPU, but a CUDA build of torch and nvcc")
    report = snapshot.ds_report
    if snapshot.gpus is None and report and report.accelerator == "cuda":
        return Purpose(name="single-gpu", because="the ds_report is of the CUDA accelerator")
    return Purpose(name="ci-cpu", because="no NVIDIA GPU is here" if snapshot.gpus else "nothing tells of a GPU")


def describe_platform(snapshot: Snapshot) -> Platform:
    """The first lines of a report: what kind of machine this is and what DeepSpeed can do on it."""
    host, gpus = snapshot.host, snapshot.gpus
    if host is None:
        return Platform(headline=f"{snapshot.origin}: the text does not say what machine it comes from")
    if host.system == "darwin":
        return _mac(host)
    if host.system == "windows":
        return _windows(gpus)
    where = _where(host)
    if host.hosted_on in ("colab", "kaggle"):
        return _notebook(host, gpus)
    if host.scheduler == "slurm" and not host.inside_job and not (gpus and gpus.devices):
        return Platform(
            headline=f"{where}: a Slurm login node without a GPU",
            can="install, compile CPU ops, judge configs; what DeepSpeed reports here is the CPU accelerator",
            cannot="tell what the compute nodes have",
            instead="run this on a compute node: srun --gres=gpu:1 --pty dsdoctor check",
        )
    if host.wsl == 1:
        return Platform(
            headline=f"{where}: WSL 1 has no CUDA",
            can="train on the CPU accelerator",
            cannot="use the GPU",
            instead="convert the distribution: wsl --set-version NAME 2",
        )
    if host.wsl == 2:
        return Platform(
            headline=f"{where}: {_gpu_words(gpus)}",
            can="train with ZeRO and CPU offload; the driver is the Windows one",
            cannot="pin much memory, use GPUDirect Storage, or swap fast to /mnt/c",
            instead="keep data and NVMe swap inside the Linux file system; never install a Linux driver here",
        )
    return _linux(snapshot, where)


def _where(host: Host) -> str:
    name = host.distribution_name or host.distribution or host.system
    if host.wsl:
        return f"{name} under WSL {host.wsl}"
    return f"{name} in a container ({host.container})" if host.container else name


def _gpu_words(gpus: Gpus | None) -> str:
    if gpus is None:
        return "GPUs were not looked at"
    if not gpus.devices:
        return "no usable NVIDIA GPU" if gpus.expected else "no NVIDIA GPU"
    names = [g.name for g in gpus.devices]
    kinds = ", ".join(f"{names.count(n)} x {n}" for n in dict.fromkeys(names))
    driver = f", driver {gpus.driver_version}" if gpus.driver_version else ""
    return kinds + driver + (f" (runs CUDA up to {gpus.driver_cuda})" if gpus.driver_cuda else "")


def _linux(snapshot: Snapshot, where: str) -> Platform:
    gpus = snapshot.gpus
    headline = f"{where}: {_gpu_words(gpus)}"
    if gpus is not None and not gpus.devices:
        if gpus.others and not gpus.expected:
            headline += f"; {', '.join(gpus.others)} is named here but not examined"
        return Platform(
            headline=headline,
            can="train small models on DeepSpeed's CPU accelerator (gloo), build ops, check configs",
            cannot="run NCCL or CUDA kernels",
        )
    return Platform(headline=headline)


def _mac(host: Host) -> Platform:
    silicon = host.machine == "arm64"
    return Platform(
        headline=f"macOS {host.distribution_version or ''} on {'Apple silicon' if silicon else 'Intel'}: no NVIDIA GPU".replace(
            "  ", " "
        ),
        can="try out small models on the CPU"
        + (" or MPS accelerator" if silicon else "")
        + ", check configs, plan memory",
        cannot="run CUDA ops, NCCL, NVMe offload or real training",
        instead="train on a Linux machine with an NVIDIA GPU, or on Colab; `dsdoctor check --snapshot` reads its record here",
    )


def _windows(gpus: Gpus | None) -> Platform:
    return Platform(
        headline=f"Windows: {_gpu_words(gpus)}",
        can="inference and single-GPU training with prebuilt ops",
        cannot="use async_io, GPUDirect Storage or NCCL (gloo only); building ops needs Visual Studio and the CUDA toolkit",
        instead="WSL 2 is the way that DeepSpeed supports best: wsl --install",
    )


def _notebook(host: Host, gpus: Gpus | None) -> Platform:
    name = "Google Colab" if host.hosted_on == "colab" else "Kaggle"
    devices = gpus.devices if gpus else ()
    old = any(g.compute_capability and float(g.compute_capability) < 8.0 for g in devices)
    change = "Runtime > Change runtime type > GPU" if host.hosted_on == "colab" else "Settings > Accelerator > GPU"
    if not devices:
        return Platform(
            headline=f"{name}: no GPU is attached",
            can="train tiny models on the CPU accelerator",
            cannot="use CUDA until a GPU is attached",
            instead=f"attach one: {change}",
        )
    return Platform(
        headline=f"{name}: {_gpu_words(gpus)}",
        can="ZeRO with CPU offload; set RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT when a notebook cell trains",
        cannot="swap to a real NVMe disk" + ("; bf16 is emulated on this GPU, use fp16" if old else ""),
        instead=None,
    )
