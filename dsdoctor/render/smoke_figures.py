"""What a smoke run measured, in sentences: steps, memory, load, and what went to a disk."""

from collections.abc import Iterator

from dsdoctor.facts import SmokeRun
from dsdoctor.render.quantity import amount, counted, finite, known, loss, percent, rate, seconds, size
from dsdoctor.render.smoke_summary import largest

BUSY_PERCENT, IDLE_PERCENT = 75.0, 50.0  # a processor above and a GPU below: the GPU waits for the processor


def numbers(run: SmokeRun) -> Iterator[str]:
    """First and last of what a step tells beside its loss."""
    for name, told in (
        ("gradient norm", [step.grad_norm for step in run.steps]),
        ("loss scale", [step.loss_scale for step in run.steps]),
    ):
        seen = [loss(number) for number in told if number is not None]
        if seen:
            yield f"{name} {seen[0]}" + (f" -> {seen[-1]}" if len(seen) > 1 else "")


def memory(run: SmokeRun, depth: int) -> Iterator[str]:
    """Peaks, and where they come from; in brief that of the host alone, for the row has the other."""
    rank = largest(run) if depth > 0 else None
    if rank is not None:
        where = f" in {rank.peak_phase}" if rank.peak_phase else ""
        reserved = f" ({size(rank.peak_reserved_bytes)} reserved)" if known(rank.peak_reserved_bytes) else ""
        who = f", rank {rank.rank} held most" if run.world_size > 1 else ""
        yield f"VRAM: torch's allocator peaked at {size(rank.peak_bytes)}{reserved}{where}{who}"
    used = finite(run.curves.gpu_bytes) if run.curves and depth > 0 else []
    if used:
        yield f"NVML saw up to {size(max(used))} in use on the GPUs of the run: with CUDA contexts and other programs"
    hosts = [(r.peak_host_bytes or 0, r.rank) for r in run.ranks if known(r.peak_host_bytes)]
    if hosts:
        most, holder = max(hosts)
        yield f"host memory peaked at {size(most)}" + (f" in rank {holder}" if run.world_size > 1 else "")


def load(run: SmokeRun, depth: int) -> Iterator[str]:
    """What was busy while steps ran; of a run that offloads always, for that is where the processor may be the brake."""
    seen = run.load
    if seen is None or not seen.samples or (depth < 2 and run.offload is None):
        return
    cpu, gpu = seen.cpu_percent, seen.gpu_percent
    told = [f"CPU {percent(cpu)} busy"] if known(cpu) else []
    told += [f"GPU idle {percent(100 - gpu)}"] if known(gpu) else []
    cores = finite(seen.core_percent)
    told += [f"the busiest core {percent(max(cores))}"] if len(cores) > 1 else []
    if told:
        bound = known(cpu) and known(gpu) and cpu >= BUSY_PERCENT and gpu <= IDLE_PERCENT
        few = f" ({counted(seen.samples, 'sample')} while steps ran)"
        yield ("CPU-bound: " if bound else "") + ", ".join(told) + few


def swap(run: SmokeRun) -> Iterator[str]:
    """What went to the disk while training, and what the folder gives when nothing else happens."""
    disk = run.swap
    if disk is None:
        return
    direct = {True: "O_DIRECT works", False: "no O_DIRECT", None: None}[disk.direct]
    where = ", ".join(part for part in (disk.filesystem, direct) if part)
    held = amount(disk.swapped_bytes)
    if held and disk.files is not None:
        held += f" in {counted(disk.files, 'file')}"
    yield f"swapped to {disk.path}" + (f" ({where})" if where else "") + (f": {held}" if held else "")
    moved = [("read", disk.read_bytes), ("wrote", disk.written_bytes)]
    told = [f"{what} {_moved(number, disk.step_seconds)}" for what, number in moved if number is not None]
    if told:
        yield f"steps {' and '.join(told)}" + (f" in {seconds(disk.step_seconds)}" if disk.step_seconds else "")
    plain = [("read", disk.plain_read_bytes_per_s), ("write", disk.plain_write_bytes_per_s)]
    gave = [f"{rate(speed)} {what}" for what, speed in plain if known(speed)]
    yield (
        f"the folder gave {', '.join(gave)} in a plain test just before"
        if gave
        else "no plain test tells what the folder gives"
    )


def _moved(number: int, took: float | None) -> str:
    return f"{amount(number)} ({rate(number / took)})" if took and known(took) else amount(number)
