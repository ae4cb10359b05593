"""torch: what its files say (static) and what happens when it is imported (live)."""

from typing import Literal

from dsdoctor.facts.base import Fact

Outcome = Literal["ok", "error", "signal", "timed-out", "exited", "not-reached"]


class Import(Fact, frozen=True, kw_only=True):
    """How one import ended in a child process."""

    outcome: Outcome
    seconds: float | None = None
    error_type: str | None = None  # "ImportError"
    error: str | None = None  # message, first 2,000 characters
    traceback: str | None = None  # last lines
    signal: str | None = None  # "SIGSEGV"
    exit_code: int | None = None  # for "exited": someone called os._exit
    during: str | None = None  # what the child was doing: "import torch"


class Torch(Fact, frozen=True, kw_only=True):
    """From torch/version.py and the metadata: no import."""

    version: str  # "2.11.0+cu130"
    cuda: str | None = None  # "13.0"; None: not a CUDA build
    hip: str | None = None
    xpu: str | None = None
    path: str  # folder of the package
    debug: bool = False
    cxx11_abi: bool | None = None
    nccl: str | None = None  # version of the nvidia-nccl-* wheel
    from_text: bool = False  # taken from pasted text

    @property
    def base_version(self) -> str:
        return self.version.split("+")[0]


class TorchLive(Fact, frozen=True, kw_only=True):
    """From importing torch in the patient."""

    imported: Import
    version: str | None = None
    cuda: str | None = None
    cuda_available: bool | None = None
    cuda_error: str | None = None  # text of the warning or exception when CUDA could not start
    device_count: int | None = None
    devices: tuple[str, ...] = ()  # names
    capabilities: tuple[str, ...] = ()  # "9.0", one per device
    architectures: tuple[str, ...] = ()  # torch.cuda.get_arch_list(): "sm_90", "compute_120"
    nccl: str | None = None
    cudnn: str | None = None
    bf16: bool | None = None
    mps: bool | None = None
    cuda_home: str | None = None  # torch.utils.cpp_extension.CUDA_HOME
    cpp_extension: Import | None = None  # import of torch.utils.cpp_extension
    cxx11_abi: bool | None = None
    kernel: Import | None = None  # a tiny kernel really ran on the GPU (only when cuda_available)
