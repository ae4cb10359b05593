"""The healthy machine itself: hardware, system, places."""

from typing import Any

from dsdoctor.facts import (
    UNLIMITED,
    CacheFolder,
    Caches,
    Cpu,
    Environment,
    Gpu,
    GpuLink,
    Gpus,
    Host,
    Interface,
    Limit,
    Limits,
    Memory,
    Network,
    Place,
    Programs,
    Storage,
)
from dsdoctor.healthy.base import GIB, bent

_UNLIMITED = Limit(soft=UNLIMITED, hard=UNLIMITED)


def host(**changes: Any) -> Host:
    fact = Host(
        system="linux",
        kernel="6.8.0-60-generic",
        machine="x86_64",
        distribution="ubuntu",
        distribution_version="24.04",
        distribution_name="Ubuntu 24.04.3 LTS",
        libc="glibc 2.39",
        package_manager="apt",
        has_sudo=True,
    )
    return bent(fact, changes)


def cpu(**changes: Any) -> Cpu:
    fact = Cpu(
        model="Intel(R) Xeon(R) Platinum 8480C",
        vendor="GenuineIntel",
        architecture="X86_64",
        logical_cores=16,
        usable_cores=16,
        flags=("avx", "avx2", "avx512f", "fma"),
        simd="avx512",
    )
    return bent(fact, changes)


def memory(**changes: Any) -> Memory:
    fact = Memory(
        total_bytes=128 * GIB,
        available_bytes=120 * GIB,
        swap_total_bytes=0,
        swap_free_bytes=0,
        cgroup_version=2,
        cgroup_oom_kills=0,
        shm_bytes=64 * GIB,
        shm_free_bytes=64 * GIB,
    )
    return bent(fact, changes)


def limits(**changes: Any) -> Limits:
    fact = Limits(
        memlock_bytes=_UNLIMITED,
        open_files=Limit(soft=65536, hard=1048576),
        processes=Limit(soft=500000, hard=500000),
        aio_max_nr=1048576,
        aio_nr=0,
    )
    return bent(fact, changes)


def gpu(**changes: Any) -> Gpu:
    fact = Gpu(
        index=0,
        name="NVIDIA H200",
        compute_capability="9.0",
        total_bytes=143771 << 20,
        free_bytes=143155 << 20,
        used_bytes=616 << 20,
        mig_enabled=False,
        compute_mode="default",
        persistence=True,
        ecc_uncorrected=0,
        rows_pending=False,
        pcie_generation=5,
        pcie_width=16,
        fabric_state="completed",
    )
    return bent(fact, changes)


def gpus(count: int = 1, **changes: Any) -> Gpus:
    """``count`` H200s; with several, NVLink between each pair."""
    fact = Gpus(
        nvml="ok",
        driver_version="580.159.04",
        driver_cuda="13.0",
        kernel_module_version="580.159.04",
        libcuda="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        device_nodes=(*(f"/dev/nvidia{i}" for i in range(count)), "/dev/nvidiactl", "/dev/nvidia-uvm"),
        pci_nvidia=count,
        devices=tuple(gpu(index=i) for i in range(count)),
        links=tuple(
            GpuLink(first=i, second=j, path="NVLINK", p2p_read=True) for i in range(count) for j in range(i + 1, count)
        ),
    )
    return bent(fact, changes)


def no_gpus(**changes: Any) -> Gpus:
    """A machine without any NVIDIA part."""
    fact = Gpus(nvml="library-missing", nvml_detail="NVML Shared Library Not Found", pci_nvidia=0)
    return bent(fact, changes)


def environment(**variables: str) -> Environment:
    """The given variables over a plain set."""
    plain = {
        "PATH": "/home/user/env/bin:/usr/local/cuda/bin:/usr/bin:/bin",
        "HOME": "/home/user",
        "CUDA_HOME": "/usr/local/cuda",
    }
    return Environment(variables={k: v for k, v in {**plain, **variables}.items() if v is not None})


def caches(**changes: Any) -> Caches:
    def folder(path: str) -> CacheFolder:
        return CacheFolder(path=path, because="default", exists=True, writable=True, owner_uid=1000, filesystem="ext4")

    fact = Caches(
        extensions=folder("/home/user/.cache/torch_extensions/py312_cu130"), triton=folder("/home/user/.triton")
    )
    return bent(fact, changes)


def place(**changes: Any) -> Place:
    fact = Place(
        path="/mnt/nvme",
        role="nvme",
        named_by="--nvme",
        writable=True,
        filesystem="ext4",
        device="nvme",
        total_bytes=2000 * GIB,
        free_bytes=1500 * GIB,
        free_inodes=10**8,
        o_direct=True,
        aio=True,
    )
    return bent(fact, changes)


def storage(*places: Place) -> Storage:
    """The given places; without any, a working folder and /tmp on a local disk, and no place for NVMe offload."""
    plain = {"filesystem": "ext4", "device": "nvme", "named_by": "default"}
    return Storage(
        places=places
        or (place(path="/home/user/project", role="cwd", **plain), place(path="/tmp", role="tmp", **plain))
    )


def network(**changes: Any) -> Network:
    fact = Network(
        hostname_resolves=True,
        hostname_loopback=False,
        hostname_i_works=True,
        interfaces=(
            Interface(name="lo", up=True, addresses=("127.0.0.1",), loopback=True),
            Interface(name="eth0", up=True, addresses=("10.0.0.2",)),
        ),
        master_port_free=True,
    )
    return bent(fact, changes)


def programs(*missing: str, **changes: Any) -> Programs:
    """All programs but ``missing``."""
    from dsdoctor.facts.programs import NAMES

    fact = Programs(paths={name: f"/usr/bin/{name}" for name in NAMES if name not in missing})
    return bent(fact, changes)
