"""What a machine has left for a training: each GPU's free memory, usable RAM, the NVMe drive, /dev/shm."""

import msgspec

from dsdoctor.facts.gpu import Gpu
from dsdoctor.facts.snapshot import Snapshot

SMALL_SHM = 1 << 30


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes; None: not known."""

    gpus: int = 0  # that the machine has
    gpu: int | None = None  # free on the fullest of those that are used
    gpu_total: int | None = None
    host: int | None = None  # what a process may take: the cgroup's limit counts
    nvme: int | None = None
    nvme_path: str | None = None
    shm: int | None = None
    notes: tuple[str, ...] = ()


def room_of(snapshot: Snapshot, gpus: int | None = None) -> Room:
    """The room of this machine for a training on ``gpus`` of its GPUs (all of them when not said), the emptiest taken."""
    devices = sorted(snapshot.gpus.devices, key=lambda gpu: -(free_of(gpu) or 0)) if snapshot.gpus else []
    usable = [gpu for gpu in devices if gpu.error is None and not gpu.mig_enabled]
    used = usable[: gpus or len(usable)]
    free = [bytes_ for gpu in used if (bytes_ := free_of(gpu)) is not None]
    place = snapshot.storage.place("nvme") if snapshot.storage else None
    memory = snapshot.memory
    return Room(
        gpus=len(usable),
        gpu=min(free) if free and len(free) == len(used) else None,
        gpu_total=min((gpu.total_bytes for gpu in used if gpu.total_bytes), default=None),
        host=memory.usable_bytes if memory else None,
        nvme=place.free_bytes if place and place.writable is not False else None,
        nvme_path=place.path if place else None,
        shm=memory.shm_free_bytes if memory else None,
        notes=tuple(_notes(snapshot, used, gpus)),
    )


def free_of(gpu: Gpu) -> int | None:
    """NVML's word; else what is not used; other processes are counted in both."""
    if gpu.free_bytes is not None:
        return gpu.free_bytes
    if gpu.total_bytes is None:
        return None
    return gpu.total_bytes - (gpu.used_bytes or 0)


def _notes(snapshot: Snapshot, used: list[Gpu], asked: int | None) -> list[str]:
    notes = []
    if snapshot.gpus and not used:
        notes.append("no usable GPU is here: what a GPU needs is said, not judged")
    if asked and used and len(used) < asked:
        notes.append(f"{asked} GPUs are asked for, {len(used)} are here: judged by those that are here")
    for gpu in used:
        others = [process for process in gpu.processes if process.used_bytes]
        if others:
            taken = sum(process.used_bytes or 0 for process in others)
            who = "1 other process holds" if len(others) == 1 else f"{len(others)} other processes hold"
            notes.append(f"GPU {gpu.index}: {who} {taken / (1 << 30):.1f} GiB")
    memory = snapshot.memory
    if memory and memory.shm_bytes is not None and len(used) > 1 and memory.shm_bytes < SMALL_SHM:
        notes.append(f"/dev/shm has {memory.shm_bytes >> 20} MiB: NCCL and data loaders share it")
    if memory and memory.cgroup_limit_bytes is not None and memory.cgroup_limit_bytes < memory.total_bytes:
        notes.append(f"a cgroup limits RAM to {memory.cgroup_limit_bytes / (1 << 30):.1f} GiB")
    return notes
