"""Build DeepSpeed's ops for real in the patient, several at once, and say how each one fared."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import msgspec

from dsdoctor.events import Event, Observer
from dsdoctor.facts import Caches, Cpu, Memory, OpBuild, OpBuilds, Python
from dsdoctor.probes import ProbeFailed, caches
from dsdoctor.probes.compiler_output import first_error
from dsdoctor.probes.python import SCRIPTS
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System

BYTES_PER_JOB = 2 * 1024**3  # of a compiler that reads torch's headers; seen 1 to 3 GB
SOURCES_AT_ONCE = 3  # what one op keeps busy: most have two to four sources
IMPORT_S = 300.0  # added to the limit of every worker: torch from a slow disk
TAIL_LINES = 40
_LATE = 124  # see scripts/build_ops.py
_KILLED = ("Killed signal terminated program", "fatal error: Killed", "Killed (program ")
Cache = Literal["private", "user"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to build. ``jobs`` is the number of compilers at once, None: as cores and memory allow."""

    names: tuple[str, ...]
    jobs: int | None = None
    limit_s: float = 900.0  # of one op
    cache: Cache = "private"
    logs: str | None = None  # folder that keeps the logs; None: they go with the build


def build(
    system: System,
    python: Python,
    order: Order,
    observe: Observer,
    *,
    cpu: Cpu | None = None,
    memory: Memory | None = None,
    known: Caches | None = None,
) -> OpBuilds:
    """Build and load the ops of ``order``. Raises ProbeFailed when no folder can be made to build in."""
    jobs = order.jobs or fitting_jobs(cpu, memory)
    workers = max(1, min(len(order.names), jobs // SOURCES_AT_ONCE))
    with _folder(order.logs) as folder:
        env = {**system.env, "PYTHONUNBUFFERED": "1", "MAX_JOBS": str(max(1, jobs // workers))}
        env["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        if order.cache == "private":
            env["TORCH_EXTENSIONS_DIR"] = os.path.join(folder, "cache")
        cache = env.get("TORCH_EXTENSIONS_DIR") or (known.extensions.path if known and known.extensions else None)
        before = _compiled(system, cache)
        site = _Site(system, python, order, env, folder, observe)
        try:
            with ThreadPoolExecutor(workers) as pool:
                done = [
                    found for rounds in pool.map(lambda _: site.work(order.names), range(workers)) for found in rounds
                ]
            done = [site.again(found) for found in done]
        finally:
            release_locks(system, cache, order.names)
    by_name = {found.name: found for found in done}
    builds = [by_name.get(name, OpBuild(name=name, outcome="not-reached")) for name in order.names]
    cached = [msgspec.structs.replace(b, cached=b.name in before and b.outcome == "ok") for b in builds]
    return OpBuilds(cache=order.cache, builds=tuple(cached), jobs=jobs)


def fitting_jobs(cpu: Cpu | None, memory: Memory | None) -> int:
    """Compilers at once: one per core that may be used, and about 2 GiB of memory for each."""
    cores = (cpu.usable_cores or cpu.logical_cores if cpu else None) or os.cpu_count() or 1
    return max(1, min(cores, memory.usable_bytes // BYTES_PER_JOB if memory else cores))


def release_locks(system: System, cache: str | None, names: Iterable[str]) -> None:
    """Remove the locks that builds of ``names`` left, when nothing builds there: torch would wait for them for ever."""
    for op in caches.ops(system, cache) if cache else ():
        if op.name in set(names) and op.lock_age_s is not None and op.lock_builder_alive is False:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(op.path, "lock"))


def _compiled(system: System, cache: str | None) -> set[str]:
    return {op.name for op in caches.ops(system, cache) if op.shared_object} if cache else set()


@contextlib.contextmanager
def _folder(logs: str | None) -> Iterator[str]:
    """A private folder for claims, logs and the private cache; gone at the end, but for the logs when a place is named."""
    try:
        folder = tempfile.mkdtemp(prefix="dsdoctor-ops-")
        for name in ("claims", "logs", "cache"):
            os.mkdir(os.path.join(folder, name))
    except OSError as error:
        raise ProbeFailed("failed", f"no folder to build in: {error.strerror or error}") from None
    try:
        yield folder
    finally:
        if logs is not None:
            with contextlib.suppress(OSError):
                shutil.copytree(os.path.join(folder, "logs"), logs, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


class _Site:
    """Where workers build: each takes the ops that no other has taken; one that dies costs its op and is replaced."""

    def __init__(
        self, system: System, python: Python, order: Order, env: dict[str, str], folder: str, observe: Observer
    ) -> None:
        self._system, self._python, self._order = system, python, order
        self._env, self._folder, self._observe = env, folder, observe

    def work(self, names: tuple[str, ...]) -> list[OpBuild]:
        """Run workers until all names are taken. Every op that one of them began is in the answer."""
        found: list[OpBuild] = []
        while True:
            ran = self._run(names, self._env)
            told, last = steps(ran)
            found += [self._build(name, end) for name, end in told.items() if name != "import"]
            if last is None or last == "import":
                return found if last is None else [*found, *self._never_began(names, ran)]
            found.append(self._ended(last, ran))

    def again(self, found: OpBuild) -> OpBuild:
        """Build once more, one compiler at a time, when the kernel killed a compiler; else as it is."""
        if found.outcome == "ok" or not any(word in (found.log_tail or "") for word in _KILLED):
            return found
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, "claims", found.name))
        ran = self._run((found.name,), {**self._env, "MAX_JOBS": "1"})
        told, last = steps(ran)
        second = (
            self._build(found.name, told[found.name]) if found.name in told else self._ended(last or found.name, ran)
        )
        why = "a compiler was killed, most often for memory: built again with one at a time"
        return msgspec.structs.replace(second, name=found.name, retried=why)

    def _run(self, names: tuple[str, ...], env: dict[str, str]) -> Ran:
        argv = [self._python.executable, str(SCRIPTS / "build_ops.py"), self._folder, str(self._order.limit_s), *names]
        limit_s = IMPORT_S + self._order.limit_s * len(names)
        return self._system.run(argv, limit_s, env=env, answer=True, hear=self._tell)

    def _tell(self, line: bytes) -> None:
        with contextlib.suppress(ValueError):
            step = json.loads(line)
            if "begin" in step and step["begin"] != "import":
                self._observe(Event(kind="op-started", name=step["begin"]))
            elif "end" in step and step["end"] != "import":
                outcome = "failed" if "error_type" in step else "ok"
                self._observe(Event(kind="op-ended", name=step["end"], outcome=outcome, seconds=step["seconds"]))

    def _build(self, name: str, end: dict[str, Any]) -> OpBuild:
        failed = end.get("error_type") is not None
        message = " <- ".join(str(part) for part in (end.get("error"), end.get("cause")) if part) or None
        return OpBuild(
            name=name,
            outcome="failed" if failed else "ok",
            seconds=end.get("seconds"),
            error_type=end.get("error_type"),
            error=message,
            **self._log(name, failed),
        )

    def _ended(self, name: str, ran: Ran) -> OpBuild:
        """An op during whose build the worker ended."""
        late = ran.ending == "timed-out" or ran.code == _LATE
        how = (
            f"gave no answer within {self._order.limit_s:.0f} s"
            if late
            else f"ended the process ({ran.signal or ran.code})"
        )
        observed = "timed-out" if late else "crashed"
        self._observe(Event(kind="op-ended", name=name, outcome=observed))
        return OpBuild(name=name, outcome=observed, error=how, signal=ran.signal, **self._log(name, True))  # type: ignore[arg-type]

    def _never_began(self, names: tuple[str, ...], ran: Ran) -> list[OpBuild]:
        """torch or DeepSpeed could not be imported: no op was begun."""
        taken = set(os.listdir(os.path.join(self._folder, "claims")))
        why = (
            ran.stderr.strip().splitlines()
            or [ran.problem or f"the import ended the process ({ran.signal or ran.code})"]
        )[-1]
        return [OpBuild(name=n, outcome="not-reached", error=why[:500]) for n in names if n not in taken]

    def _log(self, name: str, failed: bool) -> dict[str, Any]:
        text = ""
        with contextlib.suppress(OSError):
            text = Path(self._folder, "logs", f"{name}.log").read_text("utf-8", "replace")
        kept = os.path.join(self._order.logs, f"{name}.log") if self._order.logs else None
        if not failed:
            return {"log": kept}
        return {
            "log": kept,
            "log_tail": "\n".join(text.splitlines()[-TAIL_LINES:]) or None,
            "first_error": first_error(text),
        }


def steps(ran: Ran) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Steps that ended, by name, and the one during which the worker ended (None: it came to its end)."""
    ended: dict[str, dict[str, Any]] = {}
    current: str | None = "import"
    for line in ran.answer.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "begin" in entry:
            current = entry["begin"]
        elif "end" in entry:
            ended[entry["end"]] = entry
            current = None
        elif entry.get("done"):
            return ended, None
    return ended, current
