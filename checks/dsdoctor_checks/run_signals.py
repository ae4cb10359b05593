"""A rank that was ended by a signal: which one, and the numbers that tell why."""

import re
from collections.abc import Callable

from dsdoctor.api import Evidence, Finding, Prescriber, SmokeAftermath, SmokeRank, SmokeRun
from dsdoctor_checks.rows import remedy_of
from dsdoctor_checks.run_text import TABLE, again, fallen, known_failure, newest_frame, place, size
from dsdoctor_checks.tables import table

GIB = 1 << 30
_OOM = re.compile(r"(?im)^.*(?:out of memory|oom-kill|oom_reaper|Killed process).*$")
_IN_LIBRARY = re.compile(r"(?:segfault|general protection|traps:|trap ).* in ([^\s\[]+)\[")
_LAST_WORDS = re.compile(
    r"(?m)^.*(?:terminate called|what\(\):|Assertion [`'].*failed|Fatal Python error|\*\*\* .* terminated|"
    r"(?:free|malloc|realloc|munmap_chunk|corrupted)\w*(?:\(\))?: |double free|NCCL WARN).*$"
)
CAUSES = (
    "rc-minus-9-host-oom",
    "run-killed",
    "shm-too-small",
    "shm-no-space",
    "rc-minus-11-segfault",
    "import-crashes",
)
Reading = tuple[str, str]  # the row of the table, and what proves it


def by_signal(run: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    """What a signal means here: the table's row for it, or for what the numbers say."""
    signal = rank.signal or "a signal"
    if signal in ("SIGABRT", "SIGBUS") and (found := known_failure(run, rank.error, run.output_tail)):
        row, match = found
        words = match.string[match.start() :].splitlines()[0][:200]
        what = f"was ended by {signal} in {place(rank)}, after: {words}"
        return fallen(run, rank, what, row["cause"], remedy_of(row, prescriber, again(run, prescriber), match))
    name, proof = _READINGS.get(signal, _unread)(run, rank)
    row = table(TABLE)["signal"].get(name, table(TABLE)["signal"]["other"])
    cause = row["cause"]
    if cause == "rc-minus-11-segfault" and place(rank).startswith("import "):
        cause = "import-crashes"
    what = f"was ended by {signal} in {place(rank)}: {row['means']}" + (f" ({proof})" if proof else "")
    return fallen(run, rank, what, cause, remedy_of(row, prescriber, again(run, prescriber)), *_kernel(run))


def _kernel(run: SmokeRun) -> tuple[Evidence, ...]:
    log = run.aftermath.kernel_log if run.aftermath else None
    return (Evidence(where="kernel log", text=log),) if log else ()


def _killed(run: SmokeRun, rank: SmokeRank) -> Reading:
    """SIGKILL says nothing by itself: the kernel sends it when memory is out, and so does anyone else."""
    after = run.aftermath or SmokeAftermath()
    line = _OOM.search(after.kernel_log or "")
    if after.oom_kills:
        return (
            "SIGKILL",
            f"the cgroup counted {after.oom_kills} OOM kill{'s' if after.oom_kills > 1 else ''} in this run{_room(after)}",
        )
    if line:
        return "SIGKILL", f"the kernel's log says: {line.group().strip()[:200]}"
    if _scarce(after):
        return "SIGKILL", f"no OOM kill was counted, but memory was used up{_room(after)}"
    looked = ["the cgroup counted no OOM kill"] if after.oom_kills == 0 else []
    looked += (
        [f"at least {size(after.least_available_bytes)} of host memory stayed free"]
        if after.least_available_bytes
        else []
    )
    looked += ["the kernel's log has no OOM line"] if after.kernel_log is not None else []
    if not looked:
        return "SIGKILL unproved", "neither the cgroup's count of OOM kills nor the free memory could be read"
    return "killed", "; ".join(looked)


def _scarce(after: SmokeAftermath) -> bool:
    if after.least_available_bytes is None:
        return False
    return after.least_available_bytes < max(256 << 20, (after.memory_limit_bytes or 0) // 50)


def _room(after: SmokeAftermath) -> str:
    least = (
        f"; at least {size(after.least_available_bytes)} stayed free" if after.least_available_bytes is not None else ""
    )
    return least + (f", the limit is {size(after.memory_limit_bytes)}" if after.memory_limit_bytes else "")


def _bus(run: SmokeRun, rank: SmokeRank) -> Reading:
    """A page of a mapped file that can't be had: /dev/shm is the usual one, and its numbers tell."""
    after = run.aftermath or SmokeAftermath()
    total, free = after.shm_total_bytes, after.shm_least_free_bytes
    if total is None:
        return "SIGBUS", "how large /dev/shm is, is not known"
    room = f"/dev/shm has {size(total)}" + (f", of which {size(free)} stayed free" if free is not None else "")
    if total <= 64 << 20:
        return "SIGBUS", room
    if free is not None and free < max(1 << 20, total // 100):
        return "SIGBUS" if total < GIB else "SIGBUS full", room
    return "SIGBUS elsewhere", room


def _native(run: SmokeRun, rank: SmokeRank) -> Reading:
    frame = newest_frame(rank)
    said = [f"the newest Python frame is {frame}" if frame else "no Python frame was recorded"]
    library = _IN_LIBRARY.search((run.aftermath and run.aftermath.kernel_log) or "")
    said += [f"the kernel's log places it in {library.group(1)}"] if library else []
    return rank.signal or "SIGSEGV", "; ".join(said)


def _aborted(run: SmokeRun, rank: SmokeRank) -> Reading:
    """abort() is called by whoever gives up, and mostly says why just before."""
    words = _LAST_WORDS.findall(run.output_tail or "") or _LAST_WORDS.findall(rank.stack or "")
    if words:
        return "SIGABRT", f"it said: {words[-1].strip()[:200]}"
    return _native(run, rank)


def _asked(run: SmokeRun, rank: SmokeRank) -> Reading:
    return "killed", "such a signal comes from another program: a scheduler, a supervisor, a user"


def _unread(run: SmokeRun, rank: SmokeRank) -> Reading:
    return "other", newest_frame(rank) or ""


_READINGS: dict[str, Callable[[SmokeRun, SmokeRank], Reading]] = {
    "SIGKILL": _killed, "SIGBUS": _bus, "SIGSEGV": _native, "SIGILL": _native, "SIGFPE": _native, "SIGABRT": _aborted,
    "SIGTERM": _asked, "SIGINT": _asked, "SIGHUP": _asked,
}  # fmt: skip
