"""DeepSpeed's ops: what their builders say, how tiny programs of the same kind fared, what real builds did."""

from typing import Literal

from dsdoctor.facts.base import Fact


class OpBuilder(Fact, frozen=True, kw_only=True):
    """One builder of the patient's own DeepSpeed, asked without building anything."""

    name: str  # "fused_adam"
    builder: str  # "FusedAdamBuilder"
    cuda: bool = False  # compiled for CUDA: a CUDAOpBuilder
    installed: bool = False  # compiled while DeepSpeed was installed
    sources: tuple[str, ...] = ()
    missing_sources: tuple[str, ...] = ()  # named, and not in the package
    libraries: tuple[str, ...] = ()  # "curand" for -lcurand
    architectures: tuple[str, ...] | None = None  # of those that this machine would build for, what its filter leaves
    error: str | None = None  # what asking it raised: "ModuleNotFoundError: No module named 'dskernels'"


class OpBuilders(Fact, frozen=True, kw_only=True):
    """All builders that this DeepSpeed has for its accelerator."""

    accelerator: str | None = None
    builders: tuple[OpBuilder, ...] = ()

    def get(self, name: str) -> OpBuilder | None:
        return next((builder for builder in self.builders if builder.name == name), None)


TRIALS = ("cxx", "openmp", "nvcc", "nvcc-headers", "python-headers", "torch-headers", "cuda-headers", "curand-headers", "nccl-headers",
          "aio-headers", "cufile-headers", "link-cudart", "link-curand", "link-cuda", "link-aio", "link-cufile")  # fmt: skip
TrialOutcome = Literal["ok", "failed", "timed-out", "not-tried"]


class Trial(Fact, frozen=True, kw_only=True):
    """A tiny program that fails where a real build would. ``not-tried``: what it needs is not here, ``error`` says what."""

    name: str  # "cxx", "python-headers", "nvcc", "link-curand", ...
    outcome: TrialOutcome
    command: str | None = None  # to repeat it
    error: str | None = None  # the first line that names an error
    output: str | None = None  # its last lines, when it failed
    seconds: float | None = None


class Trials(Fact, frozen=True, kw_only=True):
    tried: tuple[Trial, ...] = ()

    def get(self, name: str) -> Trial | None:
        return next((trial for trial in self.tried if trial.name == name), None)

    def ok(self, name: str) -> bool:
        """True when this trial was made and worked."""
        trial = self.get(name)
        return trial is not None and trial.outcome == "ok"


BuildOutcome = Literal["ok", "failed", "crashed", "timed-out", "not-reached"]


class OpBuild(Fact, frozen=True, kw_only=True):
    """A real build: DeepSpeed's own builder compiled, linked and loaded the op (or did not)."""

    name: str
    outcome: BuildOutcome
    seconds: float | None = None
    cached: bool = False  # it was compiled before: only loaded
    error_type: str | None = None
    error: str | None = None  # of the exception
    first_error: str | None = None  # the compiler's first line that names an error
    signal: str | None = None
    retried: str | None = None  # why it was built a second time: "a compiler was killed: one at a time"
    log: str | None = None  # path of the whole output, when it was kept
    log_tail: str | None = None  # last lines of what the build printed


class OpBuilds(Fact, frozen=True, kw_only=True):
    cache: Literal["private", "user"]
    builds: tuple[OpBuild, ...] = ()
    jobs: int = 1  # compilers at once, over all ops
    seconds: float | None = None

    def get(self, name: str) -> OpBuild | None:
        return next((build for build in self.builds if build.name == name), None)
