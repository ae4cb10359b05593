"""Host memory: RAM, cgroup limits, /dev/shm and the limits that pinned buffers and NCCL meet."""

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    UNLIMITED,
    Evidence,
    Finding,
    Gpus,
    Host,
    Limits,
    Memory,
    Network,
    Prescriber,
    Remedy,
    Severity,
    check,
    known,
    not_applicable,
)

_MIB, _GIB = 1024**2, 1024**3
SHM_WARNED_BYTES = 512 * _MIB  # deepspeed/env_report.py warns below (0.10.1 to 0.19.8, read)
SHM_EMPTY_BYTES = 64 * _MIB
LEAST_BYTES = 2 * _GIB  # importing torch and DeepSpeed takes 0.4 GiB on a CPU build and 1.9 GiB on CUDA 13 (measured)
PINNED_LOCK_BYTES = 64 * _MIB
FEW_FILES = 4096
_NAMES = {"windows": "Windows", "darwin": "macOS"}


def gib(size: int) -> str:
    """A size for people."""
    return f"{size / _GIB:.1f} GiB" if size >= _GIB else f"{size / _MIB:.0f} MiB"


@check(
    "MEM001", "/dev/shm is large enough for NCCL and data loaders", causes=["shm-too-small"], severity=Severity.WARNING
)
def shm_large_enough(memory: Memory, host: Host | None, prescriber: Prescriber) -> Iterator[Finding]:
    """NCCL and worker processes exchange tensors through /dev/shm; containers get 64 MiB unless told otherwise.

    DeepSpeed's own report warns below 512 MiB. Too little ends in a bus error (return code -7) without a word.
    """
    if host is not None and host.system != "linux":
        not_applicable("this system has no /dev/shm")
    size = known(memory.shm_bytes, "the size of /dev/shm")
    if size < SHM_WARNED_BYTES:
        yield Finding(
            message=f"/dev/shm holds {gib(size)}; DeepSpeed warns below {gib(SHM_WARNED_BYTES)}",
            cause="shm-too-small",
            evidence=(Evidence(where="statvfs(/dev/shm)", text=f"{size} bytes"),),
            remedy=_larger_shm(host, prescriber),
        )


def _larger_shm(host: Host | None, prescriber: Prescriber) -> Remedy:
    verify = prescriber.shell("df -h /dev/shm")
    if host is not None and host.container in ("docker", "podman"):
        command = f"{host.container} run --shm-size=8g IMAGE"
        return Remedy(
            order="Start the container with more shared memory", commands=(command,), safety="manual", verify=verify
        )
    if host is not None and host.container == "kubernetes":
        order = "Mount an emptyDir with medium: Memory at /dev/shm"
        return Remedy(order=order, safety="manual", verify=verify)
    sudo = "" if prescriber.root else "sudo "
    command = prescriber.shell(f"{sudo}mount -o remount,size=8G /dev/shm")
    return Remedy(order="Enlarge /dev/shm", commands=(command,), safety="careful", verify=verify)


@check("MEM002", "/dev/shm has room", causes=["shm-no-space"], guards=["many-gpus"])
def shm_has_room(memory: Memory, host: Host | None, prescriber: Prescriber) -> Iterator[Finding]:
    """Runs that were killed leave their segments behind; when /dev/shm is full NCCL cannot start."""
    if host is not None and host.system != "linux":
        not_applicable("this system has no /dev/shm")
    size, free = known(memory.shm_bytes, "the size of /dev/shm"), known(memory.shm_free_bytes, "free /dev/shm")
    if size < SHM_WARNED_BYTES:
        not_applicable("/dev/shm is small altogether; see MEM001")
    if free >= min(SHM_EMPTY_BYTES, size // 20):
        return
    left = ", ".join(memory.shm_leftovers[:5])
    paths = " ".join(shlex.quote(f"/dev/shm/{name}") for name in memory.shm_leftovers)
    look = (prescriber.shell("ls -lhS /dev/shm"), prescriber.shell("fuser -v /dev/shm/* 2>&1 | tail"))
    yield Finding(
        message=f"/dev/shm has {gib(free)} of {gib(size)} free" + (f"; leftovers: {left}" if left else ""),
        cause="shm-no-space",
        remedy=Remedy(
            order="Remove the segments that no running process uses" if left else "Find out what fills /dev/shm",
            commands=(prescriber.shell(f"rm -- {paths}"),) if left else look,
            safety="careful",
            verify=prescriber.shell("df -h /dev/shm"),
            note="processes outside this container were not seen"
            if left and host is not None and host.container
            else None,
        ),
    )


@check(
    "MEM003", "Memory can be locked for RDMA and pinned buffers", causes=["memlock-limit"], severity=Severity.WARNING
)
def memory_can_be_locked(limits: Limits, network: Network | None, host: Host | None) -> Iterator[Finding]:
    """InfiniBand registers memory, which counts against `ulimit -l`. CUDA's own pinned memory does not."""
    if host is not None and host.system != "linux":
        not_applicable("InfiniBand is used on Linux only")
    soft = known(limits.memlock_bytes, "the limit of locked memory").soft
    if soft == UNLIMITED or soft >= PINNED_LOCK_BYTES:
        return
    if network is None or not network.infiniband:
        not_applicable(f"the limit is {gib(soft)}, but there is no InfiniBand that would need more")
    docker = host is not None and host.container in ("docker", "podman")
    command = f"{host.container} run --ulimit memlock=-1 IMAGE" if docker and host else "ulimit -l unlimited"
    yield Finding(
        message=f"`ulimit -l` is {gib(soft)} and InfiniBand is here ({', '.join(network.infiniband)})",
        cause="memlock-limit",
        remedy=Remedy(
            order="Lift the limit of locked memory", commands=(command,), safety="manual", verify="ulimit -l"
        ),
    )


@check("MEM004", "Enough files may be open", causes=["too-many-open-files"], severity=Severity.INFO)
def files_may_be_open(limits: Limits, gpus: Gpus | None, host: Host | None) -> Iterator[Finding]:
    """Data loader workers and sharded checkpoints hold many files; 1,024 is soon used up with several GPUs."""
    if limits.open_files is None and host is not None and host.system != "linux":
        not_applicable(f"{_NAMES[host.system]} tells no limit of open files")
    limit = known(limits.open_files, "the limit of open files")
    if limit.soft == UNLIMITED or limit.soft >= FEW_FILES:
        return
    several = gpus is not None and len(gpus.devices) > 1
    target = limit.hard if limit.hard != UNLIMITED else 65536
    yield Finding(
        message=f"`ulimit -n` is {limit.soft} (hard limit {'none' if limit.hard == UNLIMITED else limit.hard})",
        cause="too-many-open-files",
        severity=Severity.WARNING if several else Severity.INFO,
        remedy=Remedy(order="Lift the soft limit", commands=(f"ulimit -n {min(target, 1048576)}",), verify="ulimit -n"),
    )


@check("MEM005", "Nothing was killed for memory here", causes=["rc-minus-9-host-oom"], severity=Severity.WARNING)
def nothing_killed(memory: Memory, host: Host | None, prescriber: Prescriber) -> Iterator[Finding]:
    """The kernel's own count of processes killed in this control group: the proof behind `return code = -9`."""
    if host is not None and host.system != "linux":
        not_applicable(f"{_NAMES[host.system]} has no control groups")
    kills = known(memory.cgroup_oom_kills, "the cgroup's count of OOM kills")
    if kills:
        limit = (
            f"its limit is {gib(memory.cgroup_limit_bytes)}"
            if memory.cgroup_limit_bytes
            else "it has no limit of its own"
        )
        yield Finding(
            message=f"the kernel killed {kills} process(es) of this control group for memory; {limit}",
            cause="rc-minus-9-host-oom",
            evidence=(Evidence(where="cgroup memory.events", text=f"oom_kill {kills}"),),
            remedy=Remedy(
                order="Give the group more memory, or use less: fewer loader workers, no CPU offload, one rank that loads",
                commands=(prescriber.shell("cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak"),),
                safety="manual",
            ),
        )


@check(
    "MEM006",
    "The control group leaves the machine's memory usable",
    causes=["pinned-memory-ram"],
    severity=Severity.INFO,
)
def group_leaves_memory(memory: Memory) -> Iterator[Finding]:
    """Frameworks size their pinned buffers by the machine's RAM; a container's limit may be far below it."""
    limit = memory.cgroup_limit_bytes
    if limit is not None and limit < memory.total_bytes // 4:
        yield Finding(
            message=f"this control group may use {gib(limit)} of the machine's {gib(memory.total_bytes)}",
            cause="pinned-memory-ram",
            remedy=Remedy(order="Plan offload by the group's limit, or raise it", safety="manual"),
        )


@check("MEM007", "WSL may use most of the machine's memory", causes=["wsl-memory-cap"], severity=Severity.INFO)
def wsl_memory(memory: Memory, host: Host) -> Iterator[Finding]:
    """WSL 2 gets half of the Windows machine's RAM by default; offload soon needs more."""
    if host.wsl != 2:
        not_applicable("this is not WSL 2")
    if memory.total_bytes < 32 * _GIB:
        yield Finding(
            message=f"WSL sees {gib(memory.total_bytes)} of RAM; by default it gets half of the machine's",
            cause="wsl-memory-cap",
            remedy=Remedy(
                order="Raise memory= under [wsl2] in %UserProfile%\\.wslconfig, then restart WSL",
                commands=("wsl --shutdown",),
                safety="careful",
                verify="free -g",
            ),
        )


@check("MEM009", "There is memory to start with", causes=["rc-minus-9-host-oom"], guards=["host-memory"])
def memory_to_start(memory: Memory) -> Iterator[Finding]:
    """Importing torch and DeepSpeed and holding a small model takes about 2 GiB on a CUDA build."""
    if memory.usable_bytes < LEAST_BYTES:
        swap = f", swap {gib(memory.swap_free_bytes)}" if memory.swap_free_bytes else ""
        yield Finding(
            message=f"{gib(memory.usable_bytes)} of RAM is usable here{swap}; torch and DeepSpeed need about {gib(LEAST_BYTES)}",
            cause="rc-minus-9-host-oom",
            remedy=Remedy(
                order="Stop other programs, or raise the container's memory limit", safety="manual", verify="free -m"
            ),
        )
