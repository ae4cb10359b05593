"""A run that stood still: which rank waits where, and which one the others wait for."""

import re

from dsdoctor.api import Evidence, Finding, Prescriber, Remedy, SmokeRank, SmokeRun
from dsdoctor_checks.rows import first_match, remedy_of
from dsdoctor_checks.run_text import again, fallen, frames, known_failure, newest_frame, own_stack, place, speaker

CAUSES = (
    "smoke-out-of-time",
    "jit-lock-hang",
    "import-hangs",
    "nccl-watchdog-timeout",
    "p2p-broken-consumer-gpu",
    "smoke-hangs",
)
_BUILDING = (
    "(?i)building extension module|Using .*torch_extensions.*as PyTorch extensions root|Loading extension module"
)
_COLLECTIVE = re.compile(
    r"all_?reduce|all_?gather|reduce_scatter|all_to_all|broadcast|barrier|\breduce|gather|scatter|send|recv|wait|monitored"
)
_COMM_FILES = re.compile(r"torch/distributed/|deepspeed/comm/|deepspeed/runtime/pipe/p2p")
_GPU_FILES = re.compile(
    r"torch/cuda/|cuda_accelerator\.py"
)  # NCCL's work is queued: a rank waits for it where it waits for the GPU
_P2P = re.compile(r"via P2P|P2P/(?:IPC|CUMEM|direct)")
_QUIET_S = 10.0
_REACHED = ("rendezvous", "init_distributed")


def stood_still(run: SmokeRun, prescriber: Prescriber) -> Finding:
    """Builds and imports by their phase, then words that a table knows, then the rank that the others wait for."""
    rank = _stillest(run)
    builder = next((r for r in run.ranks if place(r).startswith(("compile ", "load "))), None)
    if run.outcome == "timed-out" and (builder or _at_work(run)):
        return _slow(run, builder or rank, prescriber)
    if builder or first_match([{"pattern": _BUILDING}], run.output_tail if not run.steps else None):
        return _building(run, builder or rank, prescriber)
    if place(rank).startswith("import "):
        order = "Find out what the import waits for: a network folder, a driver, a lock"
        remedy = Remedy(order=order, safety="manual", verify=again(run, prescriber))
        return fallen(run, rank, _how(run, rank), "import-hangs", remedy)
    after = run.aftermath
    found = known_failure(run, rank.error, run.output_tail, after.nccl_words if after else None)
    if found is not None:
        row, match = found
        words = match.string[match.start() :].splitlines()[0][:200]
        remedy = remedy_of(row, prescriber, again(run, prescriber), match)
        return fallen(run, rank, f"{_how(run, rank)}, after: {words}", row["cause"], remedy)
    return _waiting(run, rank, prescriber)


def _stillest(run: SmokeRun) -> SmokeRank:
    """The rank that has been silent for longest: the others stopped when they came to wait for it."""
    told = [rank for rank in run.ranks if rank.silent_s is not None]
    return max(told, key=lambda rank: rank.silent_s or 0.0) if told else speaker(run)


def _at_work(run: SmokeRun) -> bool:
    """No rank had been silent when the time was over: it was slow, or had too much to do."""
    return bool(run.ranks) and all(r.silent_s is not None and r.silent_s < _QUIET_S for r in run.ranks)


def _how(run: SmokeRun, rank: SmokeRank) -> str:
    """How it stood still: silence of its rank, or the end of the run's time."""
    who = f"rank {rank.rank}" if run.world_size > 1 else "it"
    if run.outcome == "hung" and rank.silent_s is not None:
        return f"did not end; {who} said nothing for {rank.silent_s:.0f} s in: {place(rank)}"
    after = f" after {run.limit_s or run.seconds:.0f} s" if run.limit_s or run.seconds else ""
    return f"did not end{after}; {who} stopped in: {place(rank)}"


def _slow(run: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    within = f" within {run.limit_s or run.seconds:.0f} s" if run.limit_s or run.seconds else " in its time"
    steps = f" ({len(run.steps)} steps taken)" if run.steps else ""
    remedy = Remedy(
        order="Give it more time (--timeout), or fewer steps; a build goes on where it stopped",
        safety="manual",
        verify=again(run, prescriber),
        note="a first build of an op takes about a minute on two idle cores; a busy or slow machine needs longer",
    )
    what = f"did not end{within}, and was still at work in: {place(rank)}{steps}"
    return fallen(run, rank, what, "smoke-out-of-time", remedy)


def _building(run: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    order = "Remove the `lock` file that a killed build left in the extension cache, and run once more; if it stands still again, look for a compiler that hangs"
    what = f"{_how(run, rank)}, with an op to build or to load"
    remedy = Remedy(order=order, safety="careful", verify=again(run, prescriber))
    return fallen(run, rank, what, "jit-lock-hang", remedy)


def _waiting(run: SmokeRun, rank: SmokeRank, prescriber: Prescriber) -> Finding:
    stands = tuple(
        Evidence(where=f"rank {r.rank}, {r.ending}, in {place(r)}", text=newest_frame(r) or "no stack was recorded")
        for r in run.ranks[:8]
        if run.world_size > 1
    )
    absent, suspects, shared = _absent(run), _suspects(run), _shared_collective(run)
    if absent:
        what = f"{_how(run, rank)}; {absent}"
        order = "Find out why that rank does not come: its own error is above, or it waits for something else"
        cause = "smoke-hangs"
    elif suspects:
        what = f"{_how(run, rank)}; the others wait in {_where_others_wait(run, suspects)} for {_named(suspects)}"
        order = "Make every rank take the same steps: one that skips a collective leaves the others waiting for ever"
        cause = "nccl-watchdog-timeout"
    elif mute := _mute(run):
        return _unanswered(run, rank, mute, stands, prescriber)
    elif shared and run.accelerator == "cuda" and _P2P.search(_nccl(run)):
        return _peer_to_peer(run, rank, shared, stands, prescriber)
    else:
        what = _how(run, rank) + (f"; all ranks wait in {shared}, so none of them is missing" if shared else "")
        order = "Find out what the step waits for: another rank, a driver, a network folder"
        cause = "smoke-hangs"
    return fallen(run, rank, what, cause, Remedy(order=order, safety="manual", verify=again(run, prescriber)), *stands)


def _unanswered(
    run: SmokeRun, rank: SmokeRank, mute: list[SmokeRank], stands: tuple[Evidence, ...], prescriber: Prescriber
) -> Finding:
    names = ", ".join(f"rank {r.rank}" for r in mute[:4])
    what = f"{_how(run, rank)}; {names} gave no stack when asked, as the others did: stopped, or stuck in the kernel"
    remedy = Remedy(
        order="Look at the state of that process: T is stopped, D waits in the kernel for a driver, a disk or a network folder",
        commands=(prescriber.shell("ps -eo pid,stat,wchan:32,args | grep -E '^ *[0-9]+ +[TD]'"),),
        safety="careful",
        verify=again(run, prescriber),
    )
    return fallen(run, rank, what, "smoke-hangs", remedy, *stands)


def _peer_to_peer(
    run: SmokeRun, rank: SmokeRank, shared: str, stands: tuple[Evidence, ...], prescriber: Prescriber
) -> Finding:
    what = f"{_how(run, rank)}; all ranks wait in {shared}, and NCCL moves the bytes by GPU peer-to-peer access"
    remedy = Remedy(
        order="Run once without peer-to-peer access: if that ends, peer access is broken or blocked here",
        commands=(prescriber.set("NCCL_P2P_DISABLE", "1"), again(run, prescriber)),
        safety="careful",
        verify=again(run, prescriber),
        note="PCIe ACS or an IOMMU that redirects peer traffic has the same effect; without peer access collectives are slower",
    )
    return fallen(run, rank, what, "p2p-broken-consumer-gpu", remedy, *stands)


def _nccl(run: SmokeRun) -> str:
    return (run.aftermath.nccl_words or "") if run.aftermath else ""


def _absent(run: SmokeRun) -> str | None:
    """In a rendezvous: the ranks that never came to it."""
    here = [r for r in run.ranks if place(r).startswith(_REACHED)]
    if not here or len(here) == len(run.ranks):
        return None
    away = [r for r in run.ranks if r not in here]
    if any(run.steps) or any(place(r) in ("first step", "steps") for r in away):
        return None
    return f"{len(here)} of {run.world_size} ranks came to the rendezvous, and {_named(away)} did not"


def _suspects(run: SmokeRun) -> list[SmokeRank]:
    """When some ranks wait in a collective: the fewer others, which stand elsewhere or have ended."""
    waiting = [r for r in run.ranks if collective(r)]
    others = [
        r for r in run.ranks if not collective(r) and (r.stack or r.ending not in ("hung", "timed-out", "torn-down"))
    ]
    return others if waiting and len(waiting) + len(others) == len(run.ranks) and len(others) <= len(waiting) else []


def _mute(run: SmokeRun) -> list[SmokeRank]:
    """Ranks that were still there and wrote no stack, while others did: not even their signal handlers ran."""
    alive = [r for r in run.ranks if r.ending in ("hung", "timed-out")]
    silent = [r for r in alive if not r.stack]
    return silent if 0 < len(silent) < len(alive) else []


def collective(rank: SmokeRank) -> str | None:
    """The call in which a rank waits for others: its outermost frame in torch.distributed or deepspeed.comm, or for its GPU."""
    stack = [(file.replace("\\", "/"), function) for file, _, function in frames(own_stack(rank.stack))]
    inside = [function for file, function in stack if _COMM_FILES.search(file)]
    for_gpu = [function for file, function in stack[:2] if _GPU_FILES.search(file) and function == "synchronize"]
    told = (name for name in reversed(inside) if _COLLECTIVE.search(name) and "wrapper" not in name)
    return next(told, None) or next(iter(for_gpu), None)


def _where_others_wait(run: SmokeRun, suspects: list[SmokeRank]) -> str:
    names = [collective(r) or "" for r in run.ranks if r not in suspects]
    return ", ".join(dict.fromkeys(name for name in names if name))


def _shared_collective(run: SmokeRun) -> str | None:
    """The one collective in which all ranks stand."""
    names = {collective(r) for r in run.ranks}
    return names.pop() if len(names) == 1 and len(run.ranks) > 1 else None


def _named(ranks: list[SmokeRank]) -> str:
    return ", ".join(f"rank {r.rank}, {_standing(r)}" for r in ranks[:3]) + (" and more" if len(ranks) > 3 else "")


def _standing(rank: SmokeRank) -> str:
    if rank.ending in ("ok", "exited", "failed", "signal"):
        how = {"ok": "with success", "signal": f"by {rank.signal}"}.get(rank.ending, f"with exit code {rank.exit_code}")
        return f"which had ended {how} in {place(rank)}"
    frame = newest_frame(rank)
    return f"which stands in {frame or place(rank)}"
