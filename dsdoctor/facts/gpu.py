"""NVIDIA GPUs as NVML tells them, the driver, and a plain reason when NVML has nothing to tell."""

from typing import Literal

from dsdoctor.facts.base import Fact

NvmlState = Literal[
    "ok",
    "library-missing",  # no libnvidia-ml.so.1: no driver, or a container without --gpus
    "driver-not-loaded",  # library there, kernel module not
    "version-mismatch",  # user-space library and kernel module differ (update without reboot)
    "no-permission",
    "no-devices",  # driver runs, no GPU answered
    "lost",  # a GPU fell off the bus
    "error",
    "not-supported",  # this platform has no NVML (macOS)
]


class GpuProcess(Fact, frozen=True, kw_only=True):
    pid: int
    name: str | None = None
    used_bytes: int | None = None


class Gpu(Fact, frozen=True, kw_only=True):
    index: int
    name: str
    compute_capability: str | None = None  # "9.0"
    total_bytes: int | None = None
    free_bytes: int | None = None
    used_bytes: int | None = None
    processes: tuple[GpuProcess, ...] = ()
    mig_enabled: bool | None = None
    compute_mode: Literal["default", "exclusive-process", "prohibited", "exclusive-thread"] | None = None
    persistence: bool | None = None
    ecc_uncorrected: int | None = None  # volatile, since the last driver load
    rows_pending: bool | None = None  # row remapping waits for a reset
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_generation_max: int | None = None  # an idle GPU runs its link below this: compare only the width
    pcie_width_max: int | None = None
    fabric_state: str | None = None  # "completed", "in-progress", "not-supported", ...
    error: str | None = None  # NVML's word when this device could not be read


class GpuLink(Fact, frozen=True, kw_only=True):
    """How two GPUs reach each other."""

    first: int
    second: int
    path: str  # "NVLINK", "PIX", "PXB", "PHB", "NODE", "SYS"
    p2p_read: bool | None = None


class Gpus(Fact, frozen=True, kw_only=True):
    nvml: NvmlState
    nvml_detail: str | None = None
    driver_version: str | None = None  # "580.159.04"
    driver_cuda: str | None = None  # highest CUDA that this driver runs: "13.0"
    kernel_module_version: str | None = None  # /proc/driver/nvidia/version
    libcuda: str | None = None  # path the loader finds for libcuda.so.1
    device_nodes: tuple[str, ...] = ()  # /dev/nvidia0, /dev/nvidiactl, ...
    pci_nvidia: int | None = None  # NVIDIA display/3D functions on the PCI bus, driver or not
    others: tuple[str, ...] = ()  # "AMD ...", "Intel ...", "Apple M2": named, not examined
    devices: tuple[Gpu, ...] = ()
    links: tuple[GpuLink, ...] = ()
    xid_errors: tuple[str, ...] = ()  # lines of the kernel log, when readable
    read_from: Literal["nvml", "nvidia-smi", "torch", "text"] = "nvml"

    @property
    def expected(self) -> bool:
        """True when something says that an NVIDIA GPU is or should be here."""
        return bool(self.devices or self.pci_nvidia or self.device_nodes or self.kernel_module_version)
