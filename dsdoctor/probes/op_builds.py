"""Build DeepSpeed's ops for real in the patient, several at once, and say how each one fared."""

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Literal

import msgspec

from dsdoctor.events import Event, Observer
from dsdoctor.facts import Caches, Cpu, Memory, OpBuild, OpBuilds, Python
from dsdoctor.facts.ops import BuildOutcome
from dsdoctor.probes import ProbeFailed, caches, runner
from dsdoctor.probes.answers import entry
from dsdoctor.probes.compiler_output import first_error, killed
from dsdoctor.probes.python import SCRIPTS
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.stale import release_locks
from dsdoctor.probes.system import System

BYTES_PER_JOB = 2 * 1024**3  # of a compiler that reads torch's headers; seen 1 to 3 GB
SOURCES_AT_ONCE = 3  # what one op keeps busy: most have two to four sources
IMPORT_S = 300.0  # of torch and DeepSpeed, in every worker: from a slow disk
SLACK_S = 30.0  # for starting and ending a worker, which ends itself when an import or an op is late
TAIL_LINES = 40
TAIL_CHARACTERS = 8000
LOG_BYTES = 512 * 1024  # read of each log: its first and its last half
_LATE = re.compile(r"^Timeout \(\d+:\d\d:\d\d(\.\d+)?\)!$", re.MULTILINE)  # faulthandler's; see scripts/build_ops.py
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
    started, jobs = time.monotonic(), order.jobs or fitting_jobs(cpu, memory)
    workers = max(1, min(len(order.names), jobs // SOURCES_AT_ONCE))
    with _folder(order) as folder:
        env = {**system.env, "PYTHONUNBUFFERED": "1", "MAX_JOBS": str(max(1, jobs // workers))}
        env |= {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "LC_ALL": "C.UTF-8", "LANGUAGE": ""}
        if order.cache == "private":
            env["TORCH_EXTENSIONS_DIR"] = os.path.join(folder, "cache")
        cache = env.get("TORCH_EXTENSIONS_DIR") or (known.extensions.path if known and known.extensions else None)
        before = _compiled(system, cache)
        site = _Site(system, python, order, env, folder, observe)
        try:
            site.work_side_by_side(workers)
        finally:
            release_locks(system, cache, site.unfinished)
    builds = [site.told(name) for name in order.names]
    cached = [msgspec.structs.replace(b, cached=b.name in before and b.outcome == "ok") for b in builds]
    seconds = round(time.monotonic() - started, 2)
    return OpBuilds(cache=order.cache, builds=tuple(cached), jobs=jobs, seconds=seconds)


def fitting_jobs(cpu: Cpu | None, memory: Memory | None) -> int:
    """Compilers at once: one per core that may be used, and about 2 GiB of memory for each."""
    cores = (cpu.usable_cores or cpu.logical_cores if cpu else None) or os.cpu_count() or 1
    return max(1, min(cores, memory.usable_bytes // BYTES_PER_JOB if memory else cores))


def _compiled(system: System, cache: str | None) -> set[str]:
    return {op.name for op in caches.ops(system, cache) if op.shared_object} if cache else set()


@contextlib.contextmanager
def _folder(order: Order) -> Iterator[str]:
    """A private folder for claims, logs and the private cache; gone at the end, but for the logs when a place is named."""
    if order.logs is not None:
        try:
            os.makedirs(order.logs, exist_ok=True)
        except OSError as error:
            raise ProbeFailed("failed", f"logs cannot be kept in {order.logs}: {error.strerror or error}") from None
    folder = _private(order)
    try:
        yield folder
    finally:
        if order.logs is not None:
            with contextlib.suppress(OSError):
                shutil.copytree(os.path.join(folder, "logs"), order.logs, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _private(order: Order) -> str:
    """A new folder with rooms for claims, logs and a cache. Raises ProbeFailed."""
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix="dsdoctor-ops-")
        for name in ("claims", "logs", "cache"):
            os.mkdir(os.path.join(folder, name))
        closed = hasattr(os, "ST_NOEXEC") and os.statvfs(folder).f_flag & os.ST_NOEXEC
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ProbeFailed("failed", f"no folder to build in: {error.strerror or error}") from None
    if closed and order.cache == "private":
        shutil.rmtree(folder, ignore_errors=True)
        where = os.path.dirname(folder)
        raise ProbeFailed("failed", f"nothing in {where} may be executed (noexec): set TMPDIR to another folder")
    return folder


class _Site:
    """Where workers build: each takes the ops that no other has taken; one that dies costs its op and is replaced."""

    def __init__(
        self, system: System, python: Python, order: Order, env: dict[str, str], folder: str, observe: Observer
    ) -> None:
        self._system, self._python, self._order = system, python, order
        self._env, self._folder, self._observe = env, folder, observe
        self._done: dict[str, OpBuild] = {}
        self._began: dict[str, float] = {}
        self._why_none: str | None = None  # why a worker began no op
        self._known: set[str] | None = None  # the builders of this DeepSpeed
        self._closed = False
        self.unfinished: set[str] = set()  # begun, and their builder did not come back

    def work_side_by_side(self, workers: int) -> None:
        """Build all. Ctrl-C ends what runs; nothing is begun after it."""
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(self._work) for _ in range(workers)]
            try:
                for future in futures:
                    future.result()
            finally:
                self._closed = True
                while wait(futures, timeout=0.1).not_done:
                    runner.kill_all()
        for name in [n for n, found in self._done.items() if found.outcome != "ok" and killed(self._read_log(n))]:
            self._again(name)

    def told(self, name: str) -> OpBuild:
        """How the op fared."""
        if name in self._done:
            return self._done[name]
        unknown = self._known is not None and name not in self._known
        return OpBuild(
            name=name,
            outcome="not-reached",
            error="this DeepSpeed has no builder of that name for its accelerator" if unknown else self._why_none,
        )

    def _work(self) -> None:
        """Run workers until all names are taken."""
        while not self._closed:
            ran = self._run(self._order.names, self._env)
            ended, last = steps(ran)
            self._keep(ended)
            if last is None:
                return
            if last == "import":
                self._why_none = _why(ran)
                return
            self._done[last] = self._ended(last, ran)

    def _again(self, name: str) -> None:
        """Build once more, one compiler at a time: the kernel killed a compiler."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, "claims", name))
        ran = self._run((name,), {**self._env, "MAX_JOBS": "1"})
        ended, last = steps(ran)
        if last is not None and last != "import":
            self._done[name] = self._ended(name, ran)
        elif name not in ended:
            return
        self._keep(ended)
        why = "a compiler was killed, most often for memory: built again with one at a time"
        self._done[name] = msgspec.structs.replace(self._done[name], retried=why)

    def _run(self, names: tuple[str, ...], env: dict[str, str]) -> Ran:
        limits = (str(IMPORT_S), str(self._order.limit_s))
        argv = [self._python.executable, str(SCRIPTS / "build_ops.py"), self._folder, *limits, *names]
        limit_s = IMPORT_S + (self._order.limit_s + 1) * len(names) + SLACK_S
        return self._system.run(argv, limit_s, env=env, answer=True, hear=self._tell)

    def _tell(self, line: bytes) -> None:
        step = entry(line)
        name = step.get("begin") or step.get("end")
        if name is None or name == "import":
            return
        if "begin" in step:
            self._began[name] = time.monotonic()
            self.unfinished.add(name)
            place = f"{list(self._began).index(name) + 1} of {len(self._order.names)}"
            self._observe(Event(kind="op-started", name=name, detail=place))
        else:
            self.unfinished.discard(name)
            outcome = "failed" if "error_type" in step else "ok"
            self._observe(Event(kind="op-ended", name=name, outcome=outcome, seconds=step["seconds"]))

    def _keep(self, ended: dict[str, dict[str, Any]]) -> None:
        self._known = set(ended["import"]["known"]) if "import" in ended else self._known
        for name, end in ended.items():
            if name == "import":
                continue
            failed = end.get("error_type") is not None
            self._done[name] = OpBuild(
                name=name,
                outcome="failed" if failed else "ok",
                seconds=end.get("seconds"),
                error_type=end.get("error_type"),
                error=" <- ".join(str(part) for part in (end.get("error"), end.get("cause")) if part) or None,
                **self._log(name, failed),
            )

    def _ended(self, name: str, ran: Ran) -> OpBuild:
        """An op during whose build the worker ended."""
        seconds = round(time.monotonic() - self._began.get(name, time.monotonic()), 2)
        stack = f"{self._read_log(name)}\n{ran.stderr}"  # of a worker that ended itself
        late = ran.ending == "timed-out" or (ran.code == 1 and _LATE.search(stack) is not None)
        how = f"gave no answer within {self._order.limit_s:g} s" if late else f"ended the process ({_code(ran)})"
        outcome: BuildOutcome = "timed-out" if late else "crashed"
        self._observe(Event(kind="op-ended", name=name, outcome=outcome, seconds=seconds))
        log = self._log(name, failed=True)
        return OpBuild(name=name, outcome=outcome, error=how, signal=ran.signal, seconds=seconds, **log)

    def _read_log(self, name: str) -> str:
        try:
            with open(os.path.join(self._folder, "logs", f"{name}.log"), "rb") as file:
                head = file.read(LOG_BYTES // 2)
                size = file.seek(0, os.SEEK_END)
                file.seek(max(len(head), size - LOG_BYTES // 2))
                return (head + file.read()).decode("utf-8", "replace")
        except OSError:
            return ""

    def _log(self, name: str, failed: bool) -> dict[str, Any]:
        kept = os.path.join(self._order.logs, f"{name}.log") if self._order.logs else None
        if not failed:
            return {"log": kept}
        text = self._read_log(name)
        tail = "\n".join(text.splitlines()[-TAIL_LINES:])[-TAIL_CHARACTERS:]
        return {"log": kept, "log_tail": tail or None, "first_error": first_error(text)}


def _code(ran: Ran) -> str:
    return ran.signal or f"exit code {ran.code}"


def _why(ran: Ran) -> str:
    """Why a worker began no op: torch or DeepSpeed could not be imported."""
    said = [line for line in ran.stderr.strip().splitlines() if line[:1].strip()]
    if ran.problem:
        return f"{ran.problem}: the interpreter was not started"
    if ran.ending == "timed-out" or _LATE.search(ran.stderr):
        return f"importing torch and DeepSpeed gave no answer within {IMPORT_S:g} s"
    if ran.ending == "signalled" or not said:
        return f"importing torch and DeepSpeed ended the process ({_code(ran)})"
    return said[-1][:500]


def steps(ran: Ran) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Steps that ended, by name, and the one during which the worker ended (None: it came to its end).

    A worker that ended between two ops began none: it is as one that ended while importing.
    """
    ended: dict[str, dict[str, Any]] = {}
    current = "import"
    for line in ran.answer.splitlines():
        said = entry(line)
        if "begin" in said:
            current = said["begin"]
        elif "end" in said:
            ended[said["end"]] = said
            current = "import"
        elif said.get("done"):
            return ended, None
    return ended, current
