"""Checks of host memory: RAM, cgroup limits, shared memory, and the limits on locked memory and open files."""

from collections.abc import Iterator

from dsdoctor.api import (
    UNLIMITED,
    DsConfig,
    Environment,
    Finding,
    Gpus,
    Host,
    Limits,
    Memory,
    Network,
    Prescriber,
    Purpose,
    Remedy,
    Severity,
    Storage,
    check,
    known,
    not_applicable,
)

_GIB = 1024**3
_SHM_FLOOR = 512 * 1024**2  # below it ds_report warns (deepspeed/env_report.py of 0.19.8)
_SHM_FREE = 128 * 1024**2
_LOCKED_FLOOR = _GIB  # RDMA and async_io lock buffers of about this size
_FILES, _FILES_MANY = 1024, 4096
_START_ERROR, _START_WARNING = 2 * _GIB, 6 * _GIB  # torch and DeepSpeed with a CUDA context take about 3 GiB
_WSL_SMALL = 32 * _GIB
_BYTES_PER_PARAMETER = 16  # optimizer offload: master copy, two states, gradient


def _gib(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / 1024**2:.0f} MiB"


def _many(purpose: Purpose | None, gpus: Gpus | None) -> bool:
    several = gpus is not None and len(gpus.devices) > 1
    return several or (purpose is not None and purpose.name in ("multi-gpu", "multi-node"))


def _offloads(config: DsConfig | None) -> list[str]:
    """The offload sections of the config that put something into host memory."""
    parts = [f"zero_optimization.offload_{part}" for part in ("optimizer", "param")]
    return [p for p in parts if config is not None and config.get(f"{p}.device") in ("cpu", "nvme")]


@check("MEM001", "/dev/shm is large enough", causes=["shm-too-small"], severity=Severity.WARNING)
def shm_large(memory: Memory, host: Host | None, prescriber: Prescriber) -> Iterator[Finding]:
    """NCCL, gloo and data loaders pass data through /dev/shm. Containers give it 64 MiB unless told otherwise."""
    if host is not None and host.system != "linux":
        not_applicable("this is not Linux")
    size = known(memory.shm_bytes, "the size of /dev/shm")
    if size >= _SHM_FLOOR:
        return
    yield Finding(
        message=f"/dev/shm has {_gib(size)}; DeepSpeed wants {_gib(_SHM_FLOOR)} or more, and a run that fills it is ended by SIGBUS",
        cause="shm-too-small",
        remedy=_enlarge_shm(host, prescriber),
    )


def _enlarge_shm(host: Host | None, prescriber: Prescriber) -> Remedy:
    container = host.container if host is not None else None
    sudo, verify = "" if prescriber.root else "sudo ", "df -h /dev/shm"
    if container == "kubernetes":
        order = "Mount an emptyDir with medium: Memory on /dev/shm in the pod"
        return Remedy(order=order, safety="manual", verify=verify)
    if container in ("docker", "podman", "container"):
        program = "podman" if container == "podman" else "docker"
        commands: tuple[str, ...] = (f"{program} run --shm-size=8g IMAGE",)
        order, note = "Start the container with a larger /dev/shm (on the host)", "or with --ipc=host"
        return Remedy(order=order, commands=commands, safety="manual", verify=verify, note=note)
    commands = (f"{sudo}mount -o remount,size=8G /dev/shm",)
    note = "till the next boot; slower without it: export NCCL_SHM_DISABLE=1"
    return Remedy(order="Make /dev/shm larger", commands=commands, safety="careful", verify=verify, note=note)


@check("MEM002", "There is room in /dev/shm", causes=["shm-no-space"], severity=Severity.WARNING)
def shm_free(memory: Memory, host: Host | None) -> Iterator[Finding]:
    """Runs that were killed leave their segments in /dev/shm, until a new run finds no room there."""
    if host is not None and host.system != "linux":
        not_applicable("this is not Linux")
    size, free = known(memory.shm_bytes, "the size of /dev/shm"), known(memory.shm_free_bytes, "the room in /dev/shm")
    if size < _SHM_FLOOR and free > size // 2:
        not_applicable("/dev/shm is too small as a whole; see MEM001")
    if free >= _SHM_FREE:
        return
    left = memory.shm_leftovers
    names = f"; left there: {', '.join(left[:5])}{', ...' if len(left) > 5 else ''}" if left else ""
    yield Finding(
        message=f"{_gib(free)} of {_gib(size)} in /dev/shm are free{names}",
        cause="shm-no-space",
        remedy=Remedy(
            order="Delete what dead runs left in /dev/shm, when no run of yours is alive"
            if left
            else "Find out what fills /dev/shm",
            commands=tuple(f"rm /dev/shm/{name}" for name in left) or ("ls -lhS /dev/shm",),
            safety="careful" if left else "manual",
            verify="df -h /dev/shm",
        ),
    )


@check("MEM003", "Enough memory may be locked", causes=["memlock-limit"], severity=Severity.WARNING)
def locked_memory(
    limits: Limits, network: Network | None, storage: Storage | None, environment: Environment | None,
    host: Host | None, prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """InfiniBand and async_io lock their buffers in memory, up to `ulimit -l`. CUDA's own pinned memory does not count."""
    native = environment is not None and environment.get("DS_PIN_MEMORY_BACKEND") == "native"
    users = [
        name
        for name, there in (
            (
                f"InfiniBand ({', '.join(network.infiniband) if network else ''})",
                network is not None and network.infiniband,
            ),
            ("NVMe offload", storage is not None and storage.place("nvme") is not None),
            ("DS_PIN_MEMORY_BACKEND=native", native),
        )
        if there
    ]
    if not users:
        not_applicable("nothing here locks memory: no InfiniBand, no NVMe offload")
    limit = known(limits.memlock_bytes, "the limit on locked memory")
    if limit.soft == UNLIMITED or limit.soft >= _LOCKED_FLOOR:
        return
    yield Finding(
        message=f"{_gib(limit.soft)} may be locked (ulimit -l), and {', '.join(users)} locks buffers",
        cause="memlock-limit",
        remedy=_raise_memlock(limit.hard, host, prescriber),
    )


def _raise_memlock(hard: int, host: Host | None, prescriber: Prescriber) -> Remedy:
    verify = "ulimit -l"
    if hard == UNLIMITED or prescriber.root:
        return Remedy(order="Raise the limit before the run", commands=("ulimit -l unlimited",), verify=verify)
    if host is not None and host.container is not None:
        order, commands = (
            "Start the container without the limit (on the host)",
            ("docker run --ulimit memlock=-1 IMAGE",),
        )
        return Remedy(order=order, commands=commands, safety="manual", verify=verify)
    order = "Have an administrator put `* - memlock unlimited` into /etc/security/limits.conf, then log in again"
    note = "under Slurm: LimitMEMLOCK=infinity for slurmd" if host is not None and host.scheduler == "slurm" else None
    return Remedy(order=order, safety="manual", verify=verify, note=note)


@check("MEM004", "Enough files may be open", causes=["too-many-open-files"], severity=Severity.WARNING)
def open_files(limits: Limits, gpus: Gpus | None, purpose: Purpose | None, host: Host | None) -> Iterator[Finding]:
    """Sockets, shared tensors and swap files are open files. Many ranks, workers and NVMe tensors need more than the default."""
    if host is not None and host.system != "linux":
        not_applicable("this is not Linux")
    limit = known(limits.open_files, "the limit on open files")
    wanted = _FILES_MANY if _many(purpose, gpus) else _FILES
    if limit.soft == UNLIMITED or limit.soft >= wanted:
        return
    target = 65536 if limit.hard == UNLIMITED else min(65536, limit.hard)
    possible = target > limit.soft
    yield Finding(
        message=f"a process may open {limit.soft} files (ulimit -n)",
        cause="too-many-open-files",
        severity=Severity.INFO if limit.soft >= _FILES else None,
        remedy=Remedy(
            order="Raise the limit before the run" if possible else "Have an administrator raise the hard limit",
            commands=(f"ulimit -n {target}",) if possible else (),
            safety="safe" if possible else "manual",
            verify="ulimit -n",
        ),
    )


@check("MEM005", "Nothing was killed here for memory", causes=["rc-minus-9-host-oom"], severity=Severity.WARNING)
def no_oom_kill(memory: Memory) -> Iterator[Finding]:
    """The kernel ends a process of a full cgroup with SIGKILL. The run says `return code = -9` and nothing else."""
    kills = known(memory.cgroup_oom_kills, "whether the kernel killed anything here")
    if not kills:
        return
    limit = f", whose limit is {_gib(memory.cgroup_limit_bytes)}" if memory.cgroup_limit_bytes else ""
    yield Finding(
        message=f"the kernel has killed {kills} process{'es' if kills > 1 else ''} of this cgroup{limit} because memory ran out",
        cause="rc-minus-9-host-oom",
        remedy=Remedy(
            order="Ask for more memory, or offload less: fewer ranks per node, no offload_param, or offload to NVMe",
            commands=("dmesg -T | grep -i 'killed process'",),
            safety="manual",
        ),
    )


@check("MEM006", "There is memory to start a training", causes=["cpu-init-memory"], guards=["host-memory"])
def memory_to_start(memory: Memory) -> Iterator[Finding]:
    """torch, DeepSpeed and a CUDA context take about 3 GiB before the model comes."""
    usable = memory.usable_bytes
    if usable >= _START_WARNING:
        return
    limit = memory.cgroup_limit_bytes
    cap = f", cgroup limit {_gib(limit)}" if limit is not None and limit < memory.total_bytes else ""
    yield Finding(
        message=f"{_gib(usable)} of host memory can be had ({_gib(memory.total_bytes)} in all{cap})",
        cause="cpu-init-memory",
        severity=None if usable < _START_ERROR else Severity.WARNING,
        remedy=Remedy(
            order="End programs that hold memory, or ask for more of it",
            commands=("ps -eo pid,rss,args --sort=-rss | head",),
            safety="manual",
            verify="free -g",
        ),
    )


@check("MEM007", "Host memory can hold what is offloaded to it", causes=["pinned-memory-ram"], severity=Severity.INFO)
def offload_fits(memory: Memory, gpus: Gpus, config: DsConfig | None) -> Iterator[Finding]:
    """Offloading the optimizer takes 16 bytes of pinned host memory per parameter. A model that fills the GPU may not fit there."""
    video = sum(gpu.total_bytes or 0 for gpu in gpus.devices)
    if not video:
        not_applicable("no GPU was found, or its memory is not known")
    usable = memory.usable_bytes
    if usable >= video:
        return
    parts = _offloads(config)
    where = f"{config.where(parts[0])} offloads" if config is not None and parts else "optimizer offload"
    yield Finding(
        message=f"{_gib(usable)} of host memory stand beside {_gib(video)} of GPU memory; {where} fits up to "
        f"{usable / _BYTES_PER_PARAMETER / 1e9:.1f} billion parameters",
        cause="pinned-memory-ram",
        severity=Severity.WARNING if parts else None,
        remedy=Remedy(
            order="Keep the optimizer on the GPU, offload to NVMe, or ask for more host memory", safety="manual"
        ),
    )


@check("MEM008", "WSL is given enough memory", causes=["wsl-memory-cap"], severity=Severity.INFO)
def wsl_memory(memory: Memory, host: Host, config: DsConfig | None) -> Iterator[Finding]:
    """WSL 2 gets half of the machine's memory unless .wslconfig says otherwise. Offload meets that limit first."""
    if host.wsl != 2:
        not_applicable("this is not WSL 2")
    if memory.total_bytes >= _WSL_SMALL:
        return
    parts = _offloads(config)
    yield Finding(
        message=f"WSL has {_gib(memory.total_bytes)} of memory; by default that is half of what Windows has",
        cause="wsl-memory-cap",
        severity=Severity.WARNING if parts else None,
        remedy=Remedy(
            order="Write memory= and swap= under [wsl2] in %UserProfile%\\.wslconfig, then restart WSL from PowerShell",
            commands=("wsl --shutdown",),
            safety="careful",
            verify="free -g",
        ),
    )
