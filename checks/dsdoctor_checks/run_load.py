"""What kept a smoke run busy, where it swapped to, and what it left. A tiny model: notes, no benchmark."""

from collections.abc import Iterator

from dsdoctor.api import Finding, Prescriber, Remedy, Severity, Smoke, SmokeRun, SmokeSwap, check, not_applicable
from dsdoctor_checks.run_results import ended
from dsdoctor_checks.run_text import about, again, size

LEAST_SAMPLES = 5  # of ten a second
CPU_BUSY, GPU_IDLE = 80.0, 50.0  # per cent
LEAST_MOVED_BYTES = 64 << 20
SLOW_SHARE = 0.2  # of the time that a plain read and write of the same bytes takes


@check(
    "RUN020",
    "Offloading does not leave the GPU waiting for the CPU",
    causes=["offload-cpu-bound"],
    severity=Severity.INFO,
)
def offload_keeps_up(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """With the optimizer on the CPU its step runs there, while the GPU waits. The samples of the steps after the first tell who
    was busy."""
    loads = [(run, run.load) for run in ended(smoke.runs) if run.offload and run.accelerator == "cuda" and run.load]
    enough = [(run, load) for run, load in loads if load.samples >= LEAST_SAMPLES]
    if not enough:
        not_applicable("no run with offload on a GPU was sampled often enough")
    for run, load in enough:
        cpu, gpu = load.cpu_percent, load.gpu_percent
        if cpu is not None and gpu is not None and cpu >= CPU_BUSY and gpu <= GPU_IDLE:
            who = f"CPU {cpu:.0f} % busy, GPU {gpu:.0f} % ({load.samples} samples; {_cores(load.core_percent)})"
            yield Finding(
                message=f"{about(run)}, with {run.offload}, is bound by the CPU: {who}",
                cause="offload-cpu-bound",
                subject=run.recipe,
                remedy=_more_cpu(run, prescriber),
            )


def _cores(percent: tuple[float, ...]) -> str:
    full = sum(1 for value in percent if value >= 90)
    return f"{full} of {len(percent)} cores above 90 %" if percent else "single cores were not seen"


def _more_cpu(run: SmokeRun, prescriber: Prescriber) -> Remedy:
    return Remedy(
        order="Give the run more cores (the container's limit, OMP_NUM_THREADS), accumulate more steps, or offload a part only",
        safety="manual",
        verify=again(run, prescriber),
        note="a model of a few thousand parameters; a real one has more work for the GPU between two optimizer steps",
    )


def _swapping(smoke: Smoke) -> list[tuple[SmokeRun, SmokeSwap]]:
    found = [(run, run.swap) for run in ended(smoke.runs) if run.swap]
    if not found:
        not_applicable("no run with NVMe offload came to its end")
    return found


@check("RUN021", "NVMe offload makes use of its disk", causes=["nvme-swap-slow"], severity=Severity.INFO)
def swap_is_fast(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """The bytes that the kernel counted while steps ran, against a plain read and write of the same folder just before. Under a fifth
    of that rate most of the disk is idle."""
    for run, swap in _swapping(smoke):
        moved = (swap.written_bytes or 0) + (swap.read_bytes or 0)
        share = _share(swap)
        if moved >= LEAST_MOVED_BYTES and share is not None and share < SLOW_SHARE:
            rates = f"{_rate(swap.plain_write_bytes_per_s)} written and {_rate(swap.plain_read_bytes_per_s)} read"
            yield Finding(
                message=f"{about(run)} moved {size(moved)} in {swap.step_seconds:.2f} s of steps, {_rate(moved / (swap.step_seconds or 1))}, at {swap.path}; plainly it gives {rates}",
                cause="nvme-swap-slow",
                subject=run.recipe,
                remedy=Remedy(
                    order="Tune the aio section of the config to this disk",
                    commands=(prescriber.shell(f"ds_nvme_tune --nvme_dir {prescriber.quote(swap.path)}"),),
                    safety="careful",
                    note="it writes some GiB there; on a tiny model the optimizer's own work counts, too",
                ),
            )


def _share(swap: SmokeSwap) -> float | None:
    """The time that the disk alone would need for these bytes, as a share of the time that the steps took."""
    if not swap.step_seconds or not swap.plain_write_bytes_per_s or not swap.plain_read_bytes_per_s:
        return None
    needed = (swap.written_bytes or 0) / swap.plain_write_bytes_per_s + (
        swap.read_bytes or 0
    ) / swap.plain_read_bytes_per_s
    return needed / swap.step_seconds


def _rate(per_second: float | None) -> str:
    return f"{(per_second or 0) / 1e9:.2f} GB/s"


@check("RUN022", "The folder of NVMe offload takes direct I/O", causes=["nvme-no-odirect"], severity=Severity.WARNING)
def swap_is_direct(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """DeepSpeed opens its swap files with O_DIRECT; a tmpfs, an overlay or a network filesystem may refuse that, or answer it from
    memory."""
    for run, swap in _swapping(smoke):
        if swap.direct is False:
            yield Finding(
                message=f"{about(run)} swapped to {swap.path} on {swap.filesystem or 'an unknown filesystem'}, which refuses O_DIRECT",
                cause="nvme-no-odirect",
                subject=run.recipe,
                remedy=Remedy(
                    order="Name a folder on a local NVMe disk with ext4 or xfs",
                    commands=(prescriber.shell("df -T | grep -E 'ext4|xfs'"),),
                    safety="manual",
                ),
            )


@check("RUN023", "NVMe offload writes its files", causes=["nvme-not-swapped"], severity=Severity.WARNING)
def swap_files_appear(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """Tensors under 1 MiB stay in memory, and below stage 3 DeepSpeed treats nvme like cpu without a word: then no file appears, and
    the run proves nothing about the disk."""
    for run, swap in _swapping(smoke):
        if swap.files == 0 or swap.swapped_bytes == 0:
            yield Finding(
                message=f"{about(run)}, with {run.offload or 'NVMe offload'} at ZeRO stage {run.stage}, wrote {swap.files or 0} files of {size(swap.swapped_bytes)} to {swap.path}",
                cause="nvme-not-swapped",
                subject=run.recipe,
                remedy=Remedy(
                    order="Use stage 3 for NVMe offload, with tensors of 1 MiB or more",
                    safety="manual",
                    verify=again(run, prescriber),
                ),
            )


@check("RUN024", "A smoke run leaves nothing behind", causes=["smoke-left-behind"], severity=Severity.WARNING)
def nothing_is_left(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """Swap files and temporary folders are removed after a run, however it ended; what could not be removed fills the disk or
    /dev/shm."""
    if not smoke.runs:
        not_applicable("no recipe was run")
    for run in smoke.runs:
        left = run.aftermath.left_behind if run.aftermath else ()
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            yield Finding(
                message=f"{about(run)} left {', '.join(left[:3])}{more}",
                cause="smoke-left-behind",
                subject=run.recipe,
                remedy=Remedy(
                    order="Remove what it left, when no run is using it",
                    commands=(prescriber.remove(*left),),
                    safety="careful",
                ),
            )
