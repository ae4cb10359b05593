"""Run one job in the patient, watch it, end it when it hangs, and say what happened."""

import contextlib
import os
import signal
import tempfile
import time

import msgspec

from dsdoctor.events import Event, Observer
from dsdoctor.facts import Python, SmokeRun, SmokeSwap
from dsdoctor.probes.answers import entry
from dsdoctor.probes.mounts import mount_of
from dsdoctor.probes.processes import Stall, stat
from dsdoctor.probes.runner import NotStarted, Running
from dsdoctor.probes.system import System
from dsdoctor.smoke import aftermath, folder, launch, watchdog
from dsdoctor.smoke.clearing import Clearing
from dsdoctor.smoke.ends import Ends, Verdict, told
from dsdoctor.smoke.order import Job
from dsdoctor.smoke.own_config import Filled, filled
from dsdoctor.smoke.sampler import Sampler
from dsdoctor.smoke.story import Story

LOOK_S = 0.05
GRACE_S = 4.0  # for the others to tell their side when a rank has fallen
STACK_S = 0.7  # for faulthandler to write
MICRO_BATCH, HIDDEN_SIZE = 8, 64  # of the tiny model: patient/tiny.py
_SHOWN = ("gpu_bytes", "torch_bytes", "gpu_percent", "rss_bytes", "cpu_percent")


def run(system: System, python: Python, job: Job, observe: Observer) -> SmokeRun:
    """Train as ``job`` says. Never raises for what the training does; on Ctrl-C all is ended and cleared first.

    Ops are compiled into a cache of dsdoctor's own, so the user's extension cache is neither used nor changed.
    """
    with contextlib.ExitStack() as stack:
        try:
            private = stack.enter_context(folder.private(job.ranks))
        except OSError as error:
            return _not_started(job, f"{tempfile.gettempdir()}: {error.strerror or error}")
        return _Run(system, python, job, private, observe).carry_out()


def _not_started(job: Job, why: str) -> SmokeRun:
    return SmokeRun(recipe=job.recipe.name, outcome="not-started", because=why, world_size=job.ranks)


class _Run:
    """One run from its first process to the last file."""

    def __init__(self, system: System, python: Python, job: Job, private: folder.Folder, observe: Observer) -> None:
        self._system, self._job, self._folder, self._observe = system, job, private, observe
        swap = os.path.join(job.nvme, os.path.basename(private.path)) if job.nvme and job.swaps else None
        self._cache = folder.cache_folder(system, python)
        places = launch.Places(folder=private.path, port=launch.free_port(), swap=swap, cache=self._cache)
        self._own = _own_config(job, swap)
        config = self._own.config if self._own is not None else None
        self._launches = launch.launches(system, python, job, places, config)
        self._clearing = Clearing(system, places.port, swap)
        self._running: dict[int | None, Running] = {}
        self._began = time.monotonic()
        self._story = Story(job.ranks, self._began)
        self._ends = Ends()
        self._stalls: dict[int, Stall] = {}
        self._phase: str | None = None
        self._steps = 0
        self._patience_s = 0.0

    def carry_out(self) -> SmokeRun:
        if self._cache:
            folder.release_locks(self._system, self._cache, folder.OLD_LOCK_S)
        before = aftermath.Before(self._system)
        sampler = Sampler(self._system, began=self._began, usable_cores=launch.cores(), gpus=self._job.visible)
        try:
            problem = self._start()
            verdict = "ended" if problem else self._watch(sampler)
            ended = time.monotonic()
            stacks = self._stacks(verdict)
            self._clearing.note(self._pids().values())
        finally:
            for running in self._running.values():
                running.stop()
            sampler.close()
            left_behind = self._clear()
        if problem:
            return _not_started(self._job, problem)
        self._listen()
        return self._facts(verdict, ended, stacks, before, sampler, left_behind)

    def _facts(
        self,
        verdict: Verdict,
        ended: float,
        stacks: dict[int, str],
        before: aftermath.Before,
        sampler: Sampler,
        left_behind: tuple[str, ...],
    ) -> SmokeRun:
        """All that was heard, sampled and looked at, when every process has ended."""
        ran = {rank: running.told() for rank, running in self._running.items()}
        limit_s = self._job.limit_s if verdict == "timed-out" else self._patience_s
        found = told(self._job, self._story, self._ends, verdict, ran, stacks, ended=ended, patience_s=limit_s)
        rest = aftermath.look(
            self._system, before, sampler, self._folder, self._pids(), began=self._began, well=found.outcome == "ok",
            left_behind=left_behind,
        )  # fmt: skip
        return msgspec.structs.replace(
            found,
            swap=self._swapped(found.swap),
            notes=self._own.notes if self._own is not None else (),
            curves=sampler.curves(),
            load=sampler.load(),
            aftermath=rest,
        )

    def _swapped(self, swap: SmokeSwap | None) -> SmokeSwap | None:
        """With the filesystem of its folder."""
        if swap is None or self._job.nvme is None or not self._system.linux:
            return swap
        mount = mount_of(self._system, os.path.realpath(self._job.nvme))
        return msgspec.structs.replace(swap, filesystem=mount.filesystem if mount else None)

    def _start(self) -> str | None:
        """Start all processes; the reason when one cannot be."""
        for one in self._launches:
            try:
                self._running[one.rank] = self._system.start(one.argv, env=one.env)
            except NotStarted as why:
                return f"{one.argv[0]}: {why}"
        return None

    def _watch(self, sampler: Sampler) -> Verdict:
        """Listen and look until all have ended or something is wrong."""
        while True:
            self._listen()
            self._look()
            self._sample(sampler)
            now = time.monotonic()
            if all(running.ended for running in self._running.values()):
                self._look()  # one may have ended since the last look
                return "ended"
            if self._ends.fell_at is not None and now - self._ends.fell_at > GRACE_S:
                return "fallen"
            if now - self._began > self._job.limit_s:
                return "timed-out"
            if self._silent(now):
                return "hung"
            time.sleep(LOOK_S)

    def _listen(self) -> None:
        """Take in what the ranks told since the last time, and tell the observer of the leading rank."""
        for rank, line in self._folder.lines():
            event = entry(line)
            self._story.hear(rank, event)
            if event.get("what") == "error":
                self._ends.fell(time.monotonic())
            self._tell_phase()
        for step in self._story.steps[self._steps :]:
            told = {"number": step.number, "steps": self._job.steps, "loss": step.loss, "ms": step.ms}
            values = {name: float(value) for name, value in told.items() if value is not None}
            self._observe(Event(kind="smoke-step", name=self._job.recipe.name, values=values))
        self._steps = len(self._story.steps)

    def _tell_phase(self) -> None:
        ending = all(one.done for one in self._story.ranks.values())
        phase = "ending" if ending else self._story.ranks[0].phase
        if phase is not None and phase != self._phase:
            self._phase = phase
            self._observe(Event(kind="smoke-phase", name=phase, detail=_words(phase)))

    def _look(self) -> None:
        """Notice ranks that have ended."""
        now = time.monotonic()
        for rank, one in self._story.ranks.items():
            own = self._running.get(rank)
            if own is not None and own.ended:
                self._ends.died(rank, now, well=one.done and own.code == 0)
            elif own is None and one.pid is not None and not _alive(one.pid):
                self._ends.died(rank, now, well=one.done)

    def _silent(self, now: float) -> bool:
        """True when nobody has told anything for longer than the phases allow."""
        phases = [
            one.phase for rank, one in self._story.ranks.items() if rank not in self._ends.died_at and not one.done
        ]
        if any(watchdog.building(phase) for phase in phases):
            for running in self._running.values():
                self._stalls.setdefault(running.pid, Stall(running.pid))
            return all(stall.idle_s() > watchdog.BUILD_IDLE_S for stall in self._stalls.values())
        self._stalls.clear()
        self._patience_s = watchdog.patience_s(phases)
        return now - self._story.spoke_at > self._patience_s

    def _sample(self, sampler: Sampler) -> None:
        ranks = self._story.ranks.values()
        sample = sampler.tick(
            self._pids().values(),
            sum(one.torch_bytes[0] for one in ranks),
            building=any(watchdog.building(one.phase) for one in ranks),
            steady=self._story.ranks[0].in_steps,
        )
        if sample is not None:
            values = {name: value for name in _SHOWN if (value := sample[name]) is not None}
            self._observe(Event(kind="smoke-sample", name=self._job.recipe.name, values=values))

    def _pids(self) -> dict[int, int]:
        """Rank -> process, of those that said hello."""
        return {rank: one.pid for rank, one in self._story.ranks.items() if one.pid is not None}

    def _stacks(self, verdict: Verdict) -> dict[int, str]:
        """Where the ranks stand, or what faulthandler wrote when they crashed."""
        if verdict != "ended" and hasattr(signal, "SIGUSR1"):
            asked = [pid for rank, pid in self._pids().items() if rank not in self._ends.died_at]
            for pid in asked:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGUSR1)
            time.sleep(STACK_S if asked else 0.0)
        return {rank: text for rank in self._story.ranks if (text := self._folder.stack(rank))}

    def _clear(self) -> tuple[str, ...]:
        if self._cache:
            folder.release_locks(self._system, self._cache, 0.0)  # what built is dead by now
        return self._clearing.clear()


def _own_config(job: Job, swap: str | None) -> Filled | None:
    """The user's configuration as it is used, or None: the recipe has its own."""
    if job.config is None:
        return None
    return filled(
        job.config, world_size=job.ranks, micro_batch=MICRO_BATCH, dtype=job.dtype or job.best_dtype,
        hidden_size=HIDDEN_SIZE, steps=job.steps, swap_folder=swap,
    )  # fmt: skip


def _alive(pid: int) -> bool:
    """False when the process is gone or is a zombie."""
    try:
        return stat(pid)[0] not in "ZX"
    except OSError:
        return False


def _words(phase: str) -> str:
    verb, _, op = phase.partition(" ")
    return {"compile": f"compiling {op} (first time only)", "load": f"loading {op}"}.get(verb, phase)
