"""Run the smoke worker in the patient and turn its events into facts."""

import os
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor.events import Event, Observer
from dsdoctor.facts import Python, Smoke, SmokePhase
from dsdoctor.probes import caches, packages
from dsdoctor.probes.answers import entry
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System

WORKER = Path(__file__).parent / "worker.py"
TAIL_CHARACTERS = 6000
OLD_LOCK_S = 30.0  # younger: its builder may not have started yet
_PLAIN = ("accelerator", "device", "dtype", "stage", "world_size", "peak_bytes", "peak_host_bytes", "error_type", "error", "steps")  # fmt: skip


def run(system: System, python: Python, *, use_gpu: bool, limit_s: float, observe: Observer) -> Smoke:
    """Train in the patient for at most ``limit_s`` seconds. Never raises for what the training does.

    Ops are compiled into a cache of dsdoctor's own, so the user's extension cache is neither used nor changed.
    """
    env = environment(system, python, use_gpu)
    cache = env.get("TORCH_EXTENSIONS_DIR")
    if cache:
        release_locks(system, cache, OLD_LOCK_S)
    observe(Event(kind="smoke-phase", name="zero2", detail="the first run compiles an op, about a minute on two cores"))
    live = _Live(observe)
    try:
        ran = system.run([python.executable, str(WORKER)], limit_s, env=env, answer=True, hear=live.hear)
    finally:
        if cache:
            release_locks(system, cache, 0.0)  # what built is dead by now
    return told(ran)


class _Live:
    """Tells the observer each phase when it begins, and the one around it again when it ends."""

    def __init__(self, observe: Observer) -> None:
        self._observe = observe
        self._phases = _Phases()

    def hear(self, line: bytes) -> None:
        before = self._phases.current
        self._phases.see(entry(line))
        now = self._phases.current
        if now is not None and now != before:
            self._observe(Event(kind="smoke-phase", name=now, detail=_words(now)))


class _Phases:
    """Which phase a training is in: the innermost that began and did not end, else the last one."""

    def __init__(self) -> None:
        self.current: str | None = None
        self.ended: list[SmokePhase] = []
        self._open: list[str] = []

    def see(self, event: Mapping[str, Any]) -> None:
        if "begin" in event:
            self.current = event["begin"]
            self._open.append(event["begin"])
        elif "end" in event:
            self.ended.append(SmokePhase(name=event["end"], seconds=event["seconds"]))
            self._open = [name for name in self._open if name != event["end"]]
            self.current = self._open[-1] if self._open else self.current


def _words(phase: str) -> str:
    verb, _, op = phase.partition(" ")
    return {"compile": f"compiling {op} (first time only)", "load": f"loading {op}"}.get(verb, phase)


def environment(system: System, python: Python, use_gpu: bool) -> dict[str, str]:
    """The user's variables, and those that one process without a launcher needs."""
    env = dict(system.env)
    for name in ("CROSS_RANK", "CROSS_SIZE", "LOCAL_SIZE"):
        env.pop(name, None)
    env |= {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "PYTHONUNBUFFERED": "1",
    }
    if not use_gpu:
        env |= {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    env.pop("TORCH_EXTENSIONS_DIR", None)
    cache = cache_folder(system, python)
    if cache is not None:
        env["TORCH_EXTENSIONS_DIR"] = cache
    return env


def cache_folder(system: System, python: Python) -> str | None:
    """A folder of dsdoctor's own for compiled ops, one per interpreter and releases of torch and DeepSpeed, in the
    user's cache; a fresh temporary folder where that cannot be written; None where nothing can."""
    home = system.env.get("XDG_CACHE_HOME") or system.env.get("LOCALAPPDATA")
    if not home and system.env.get("HOME"):
        home = os.path.join(system.env["HOME"], ".cache")
    tag = "".join(c if c.isalnum() else "_" for c in python.prefix).strip("_")[-80:]
    try:
        if home and os.path.isabs(home):
            tag = f"py{python.version}_{releases(system, python)}{tag}"
            folder = os.path.join(home, "dsdoctor", "torch_extensions", tag)
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
    except OSError:
        pass
    try:
        return tempfile.mkdtemp(prefix="dsdoctor-")
    except OSError:
        return None


def releases(system: System, python: Python) -> str:
    """ "torch2.6.0+cu126_deepspeed0.16.9_": ninja does not rebuild an op when the torch under it changes."""
    found = packages.probe(system, python, check_files=False)
    versions = ((name, found.version(name)) for name in ("torch", "deepspeed"))
    return "".join(f"{name}{version.replace(os.sep, '_')}_" for name, version in versions if version)


def release_locks(system: System, cache: str, older_than_s: float) -> None:
    """Remove locks in dsdoctor's own cache that an ended run left: torch would wait for them for ever."""
    caches.release_locks(system, cache, lambda op, age_s: age_s >= older_than_s and not op.lock_builder_alive)


def free_port() -> int:
    """A TCP port that is free on the loopback now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def told(ran: Ran) -> Smoke:
    """The facts in the worker's events and in how it ended."""
    values: dict[str, Any] = {}
    losses: list[float] = []
    step_ms: list[float] = []
    phases = _Phases()
    done = False
    for line in ran.answer.splitlines():
        event = entry(line)
        phases.see(event)
        done = done or bool(event.get("done"))
        if "loss" in event:
            losses.append(event["loss"])
            step_ms.append(round(event["step_ms"], 2))
        values |= {key: event[key] for key in _PLAIN if event.get(key) is not None}
    return msgspec.convert(
        {
            **values,
            "recipe": "zero2",
            "outcome": _outcome(ran, done, "error_type" in values),
            "losses": losses,
            "step_ms": step_ms,
            "phases": [msgspec.to_builtins(p) for p in phases.ended],
            "last_phase": phases.current or "start",
            "output_tail": None if done and ran.ok else (ran.stdout + "\n" + ran.stderr)[-TAIL_CHARACTERS:] or None,
            "signal": ran.signal,
            "exit_code": ran.code,
            "seconds": round(ran.seconds, 2),
        },
        Smoke,
    )


def _outcome(ran: Ran, done: bool, raised: bool) -> str:
    if ran.ending == "timed-out":
        return "timed-out"
    if ran.ending == "signalled":
        return "signal"
    if ran.ending == "not-started":
        return "not-reached"
    if raised:
        return "failed"
    return "ok" if done and ran.code == 0 else "exited"
