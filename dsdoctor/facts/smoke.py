"""What tiny but real training runs did: one ``SmokeRun`` per recipe."""

from typing import Literal

from dsdoctor.facts.base import Fact

SmokeOutcome = Literal[
    "ok",  # every rank came to its end; whether the numbers are right is the checks' question
    "failed",  # a rank raised an error
    "signal",  # a rank was ended by a signal
    "exited",  # a rank ended without the worker's last word, and without an error
    "hung",  # a rank said nothing for longer than its phase may be silent
    "timed-out",  # the run's whole time was over
    "not-started",  # no process could be started
    "not-applicable",  # this recipe can't run here; ``because`` says why
]
RankEnding = Literal["ok", "failed", "signal", "exited", "hung", "timed-out", "torn-down", "not-started"]


class SmokePhase(Fact, frozen=True, kw_only=True):
    """``seconds`` is None when the phase did not end."""

    name: str  # "import torch", "rendezvous", "initialize", "compile cpu_adam", "load cpu_adam", "first step", "steps"
    seconds: float | None
    start_s: float = 0.0  # since the run began
    rank: int = 0


class SmokeStep(Fact, frozen=True, kw_only=True):
    """One optimizer step: ``loss`` is the mean over the global batch, None when it was no finite number (JSON has none)."""

    number: int  # from 1
    loss: float | None
    ms: float
    grad_norm: float | None = None
    loss_scale: float | None = None


class SmokeRank(Fact, frozen=True, kw_only=True):
    """How one rank fared. ``torn-down``: ended by the launcher or by us because another rank had fallen."""

    rank: int
    ending: RankEnding
    exit_code: int | None = None
    signal: str | None = None  # "SIGKILL"
    error_type: str | None = None
    error: str | None = None
    last_phase: str | None = None  # where it stood
    silent_s: float | None = None  # since its last event, when it was ended
    stack: str | None = None  # of its threads, when it hung or crashed (faulthandler's form, newest call first)
    device: str | None = None
    loss: float | None = None  # of the common batch, after the last step
    parameter_elements: int | None = None  # of the whole model
    held_parameter_elements: int | None = None  # that this rank keeps between steps (ZeRO-3: its partition)
    held_state_elements: int | None = None  # master weights that its optimizer updates (ZeRO-1 and up: its partition)
    state_bytes: int | None = None  # of those and of the optimizer's moments, wherever they lie
    peak_bytes: int | None = None  # torch's allocator on the GPU
    peak_reserved_bytes: int | None = None
    peak_phase: str | None = None  # in which ``peak_bytes`` was reached
    peak_host_bytes: int | None = None  # max RSS


class SmokeProof(Fact, frozen=True, kw_only=True):
    """Something that the run itself compared: "partitioned", "ranks-agree", "resumes", "collective all_reduce", ..."""

    name: str
    ok: bool
    detail: str  # both values, in one sentence


class Collective(Fact, frozen=True, kw_only=True):
    """Rates of one collective: bytes of one rank's message over the time of a call, in the order of the repetitions."""

    name: str  # "all_reduce", "all_gather", "reduce_scatter", "broadcast", "point_to_point"
    message_bytes: int
    bytes_per_s: tuple[float, ...]
    correct: bool


class SmokeSwap(Fact, frozen=True, kw_only=True):
    """NVMe offload: what was moved while training, and what the folder gave in a plain read and write just before."""

    path: str
    filesystem: str | None = None
    direct: bool | None = None  # O_DIRECT works there
    plain_write_bytes_per_s: float | None = None
    plain_read_bytes_per_s: float | None = None
    swapped_bytes: int | None = None  # in files of this run, after the last step
    files: int | None = None
    written_bytes: int | None = None  # all ranks, while steps ran, as the kernel counted
    read_bytes: int | None = None
    step_seconds: float | None = None  # that those took


class SmokeCurves(Fact, frozen=True, kw_only=True):
    """Samples ten times a second, thinned to at most 600. All series are as long as ``seconds``; None: no sample."""

    seconds: tuple[float, ...] = ()
    gpu_bytes: tuple[int | None, ...] = ()  # NVML, used on the run's GPUs together
    torch_bytes: tuple[int | None, ...] = ()  # torch's allocator, all ranks together
    gpu_percent: tuple[float | None, ...] = ()  # NVML utilisation, mean of the run's GPUs
    rss_bytes: tuple[int | None, ...] = ()  # all ranks together
    cpu_percent: tuple[float | None, ...] = ()  # of all cores
    busiest_core_percent: tuple[float | None, ...] = ()
    read_bytes_per_s: tuple[float | None, ...] = ()  # of the run's processes, from disks
    write_bytes_per_s: tuple[float | None, ...] = ()


class SmokeLoad(Fact, frozen=True, kw_only=True):
    """What was busy while the steps after the first ran. None: no sample fell into them."""

    samples: int = 0
    core_percent: tuple[float, ...] = ()  # per core
    cpu_percent: float | None = None  # of the cores that this run may use
    gpu_percent: float | None = None


class SmokeAftermath(Fact, frozen=True, kw_only=True):
    """Numbers that tell why a rank was killed, and what a failed run left."""

    oom_kills: int | None = None  # that the cgroup counted while the run ran
    memory_limit_bytes: int | None = None
    least_available_bytes: int | None = None  # the least host memory that was seen free
    shm_total_bytes: int | None = None
    shm_least_free_bytes: int | None = None
    kernel_log: str | None = None  # dmesg lines about our processes, where it may be read
    nccl_words: str | None = None  # last lines of NCCL's log, by rank
    left_behind: tuple[str, ...] = ()  # files that could not be removed


class SmokeRun(Fact, frozen=True, kw_only=True):
    """One recipe, once. Times are seconds since the first process was started."""

    recipe: str  # "zero2"
    outcome: SmokeOutcome
    because: str | None = None  # for not-applicable and not-started
    launcher: str = "none"  # "none": dsdoctor started the ranks
    config: str | None = None  # the user's ds_config, when it was used
    notes: tuple[str, ...] = ()  # what of it was changed for this run
    accelerator: str | None = None  # "cuda", "cpu"
    device: str | None = None  # "NVIDIA H200", "cpu"
    world_size: int = 1
    stage: int | None = None
    dtype: str | None = None
    offload: str | None = None  # "optimizer to cpu", "optimizer and parameters to nvme"
    parallel: str | None = None  # "pipeline 2 x data 1 x tensor 2", "experts over 2 ranks"
    phases: tuple[SmokePhase, ...] = ()  # of rank 0, and of the rank that fell first
    steps: tuple[SmokeStep, ...] = ()
    ranks: tuple[SmokeRank, ...] = ()
    fell_first: int | None = None  # rank
    proofs: tuple[SmokeProof, ...] = ()
    collectives: tuple[Collective, ...] = ()
    swap: SmokeSwap | None = None
    curves: SmokeCurves | None = None
    load: SmokeLoad | None = None
    aftermath: SmokeAftermath | None = None
    output_tail: str | None = None  # last lines of what the ranks printed, when the run did not end well
    seconds: float | None = None
    limit_s: float | None = None  # that a hung or timed-out run reached

    @property
    def losses(self) -> tuple[float, ...]:
        """Those that were finite numbers."""
        return tuple(step.loss for step in self.steps if step.loss is not None)

    @property
    def culprit(self) -> SmokeRank | None:
        """The rank that fell first; of a run that ended well none."""
        return next((rank for rank in self.ranks if rank.rank == self.fell_first), None)


class Smoke(Fact, frozen=True, kw_only=True):
    """All runs of one examination, in the order in which they ran."""

    runs: tuple[SmokeRun, ...] = ()

    def get(self, recipe: str) -> SmokeRun | None:
        return next((run for run in self.runs if run.recipe == recipe), None)
