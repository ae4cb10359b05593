"""DeepSpeed: what its files say (static), what its import says (live), and what ds_report says (a witness)."""

from dsdoctor.facts.base import Fact
from dsdoctor.facts.torch import Import


class DeepSpeed(Fact, frozen=True, kw_only=True):
    version: str  # "0.19.8", "0.9.5+abc"
    path: str
    editable: bool = False
    built_torch: str | None = None  # torch recorded at build time: "2.4", "0.0" for none
    built_cuda: str | None = None
    built_accelerator: str | None = None
    prebuilt_ops: tuple[str, ...] = ()  # ops compiled into the install
    prebuilt_files: tuple[str, ...] = ()  # *_op*.so found in the package
    has_accelerator_package: bool | None = None  # deepspeed/accelerator is there (incomplete copies lack it)
    has_op_builder: bool | None = None
    launcher: str | None = None  # path of the `deepspeed` script in the environment
    launcher_executable: bool | None = None
    launcher_interpreter: str | None = None  # from its shebang
    launcher_interpreter_exists: bool | None = None
    launcher_on_path: str | None = None  # what `which deepspeed` gives
    from_text: bool = False


class DeepSpeedLive(Fact, frozen=True, kw_only=True):
    imported: Import
    version: str | None = None
    accelerator: str | None = None  # "cuda", "cpu", "mps", ...
    accelerator_why: str | None = None  # "DS_ACCELERATOR", "detected"
    communication_backend: str | None = None  # "nccl", "gloo", "ccl"
    bf16: bool | None = None
    fp16: bool | None = None


class DsOp(Fact, frozen=True, kw_only=True):
    """One row of ds_report."""

    name: str
    installed: bool
    compatible: bool
    warnings: tuple[str, ...] = ()


class DsReport(Fact, frozen=True, kw_only=True):
    """ds_report's words, parsed. ``complete`` is False when the text stops early."""

    source: str  # "ran in the patient", a file name
    complete: bool = True
    ninja: bool | None = None  # [OKAY] / [FAIL]
    ops: tuple[DsOp, ...] = ()
    torch_path: str | None = None
    torch_version: str | None = None
    torch_cuda: str | None = None  # None also when printed as None
    torch_hip: str | None = None
    nvcc_version: str | None = None
    nvcc_problem: str | None = None  # "nvcc missing", "cannot find CUDA_HOME ..."
    deepspeed_path: str | None = None
    deepspeed_version: str | None = None
    deepspeed_info: str | None = None  # the whole value
    wheel_torch: str | None = None
    wheel_cuda: str | None = None
    shm_bytes: int | None = None
    accelerator: str | None = None  # from the log line or the rows
    accelerator_fallback: bool = False  # the "unable to detect" line was there
    info: dict[str, str] = {}  # every key as printed
    general_warnings: tuple[str, ...] = ()  # not tied to an op
    fault_type: str | None = None  # exception that ended it
    fault: str | None = None  # its message
    seconds: float | None = None

    def op(self, name: str) -> DsOp | None:
        return next((op for op in self.ops if op.name == name), None)
