"""What a smoke run that did not end well left to look at: counters of the machine, and what the ranks said last."""

from collections.abc import Iterator

from dsdoctor.facts import SmokeRun
from dsdoctor.render.quantity import counted, known, size


def evidence(run: SmokeRun) -> Iterator[str]:
    """Numbers of the machine that tell why a rank was killed, one sentence each."""
    after = run.aftermath
    if after is None:
        return
    if after.oom_kills is not None:
        kills = counted(after.oom_kills, "kill") if after.oom_kills else "no kill"
        yield f"the cgroup counted {kills} for want of memory while it ran"
    if known(after.memory_limit_bytes):
        yield f"the cgroup allows {size(after.memory_limit_bytes)} of memory"
    if known(after.least_available_bytes):
        yield f"at the least {size(after.least_available_bytes)} of host memory were free"
    if known(after.shm_least_free_bytes):
        of = f" of {size(after.shm_total_bytes)}" if known(after.shm_total_bytes) else ""
        yield f"at the least {size(after.shm_least_free_bytes)}{of} in /dev/shm were free"
    if after.kernel_log:
        yield f"the kernel said: {after.kernel_log}"
    if after.nccl_words:
        yield f"NCCL said: {after.nccl_words}"
    if after.left_behind:
        yield f"could not be removed: {', '.join(after.left_behind)}"


def verbatim(run: SmokeRun) -> Iterator[tuple[str, str]]:
    """Stacks of the ranks, those that are alike once, and the last lines of their output."""
    stacks: dict[str, list[str]] = {}
    for rank in run.ranks:
        if rank.stack:
            stacks.setdefault(rank.stack, []).append(str(rank.rank))
    for stack, numbers in stacks.items():
        yield f"stack of rank{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}", stack
    if run.output_tail:
        yield "last output", run.output_tail
