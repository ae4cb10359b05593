"""Run a program that may hang, crash or chatter, and say how it ended. Nothing that it started outlives the call."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from dsdoctor.probes.processes import Stall, kill_group, kill_session, signal_name
from dsdoctor.probes.streams import Drain

KEEP_BYTES = 256 * 1024  # of each stream: the first half and the last half
ANSWER_BYTES = 64 * 1024 * 1024
_POSIX = os.name == "posix"
_running: set["subprocess.Popen[bytes]"] = set()
Hear = Callable[[bytes], None]
Late = Literal["limit", "stall"]


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. ``stdout`` and ``stderr`` are decoded with replacement and cut in the middle when huge."""

    ending: Literal["exited", "signalled", "timed-out", "not-started"]
    stalled: bool = False  # timed out because it neither computed nor read for ``stall_s``
    code: int | None = None
    signal: str | None = None  # "SIGSEGV"
    stdout: str = ""
    stderr: str = ""
    answer: bytes = b""  # what it wrote to the answer channel
    seconds: float = 0.0
    problem: str | None = None  # why it was not started

    @property
    def ok(self) -> bool:
        return self.ending == "exited" and self.code == 0


class NotStarted(Exception):
    """The program could not be started; the message says why."""


class Running:
    """A started program that leads a process group of its own. Whoever holds it must ``stop`` it in the end."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", answer_fd: int, keep_bytes: int, hear: Hear | None, began: float
    ) -> None:
        self._process, self._began = process, began
        self._answers = Drain(os.fdopen(answer_fd, "rb"), ANSWER_BYTES, hear) if answer_fd >= 0 else None
        assert process.stdout is not None
        assert process.stderr is not None
        self._out, self._err = Drain(process.stdout, keep_bytes), Drain(process.stderr, keep_bytes)
        _running.add(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True when the program itself has ended; what it started may still run."""
        return self.code is not None

    @property
    def code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def wait(self, limit_s: float, stall_s: float | None = None) -> Late | None:
        """Wait for the end; None when it came, else why we stopped waiting."""
        deadline = time.monotonic() + limit_s
        stall = Stall(self.pid) if stall_s is not None else None
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "limit"
            try:
                self._process.wait(left if stall is None else min(left, 0.5))
            except subprocess.TimeoutExpired:
                if stall is not None and stall_s is not None and stall.idle_s() >= stall_s:
                    return "stall"
            else:
                return None

    def stop(self) -> None:
        """End all that is left of it: its group, and on Linux its session unless it ended well."""
        kill_group(self._process)
        _running.discard(self._process)

    def told(self, late: Late | None = None) -> Ran:
        """How it ended. Call it after ``stop``."""
        if any(drain is not None and drain.held() for drain in (self._out, self._err, self._answers)):
            kill_session(self.pid)  # it ended well, and somebody still holds its pipes
        code = self._process.returncode
        rest: dict[str, Any] = {
            "stdout": self._out.data().decode("utf-8", "replace"),
            "stderr": self._err.data().decode("utf-8", "replace"),
            "answer": self._answers.data() if self._answers else b"",
            "seconds": time.monotonic() - self._began,
        }
        if late is not None:
            return Ran(ending="timed-out", stalled=late == "stall", **rest)
        if code is not None and code < 0:
            return Ran(ending="signalled", code=code, signal=signal_name(-code), **rest)
        return Ran(ending="exited", code=code, **rest)


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    answer: bool = False,
    hear: Hear | None = None,
    keep_bytes: int = KEEP_BYTES,
) -> Running:
    """Start ``argv`` in a process group of its own with closed stdin. Raises NotStarted.

    With ``answer`` the program gets ``--answer-fd N`` appended and what it writes to that descriptor comes back in
    ``Ran.answer``, whatever it prints; ``hear`` is told each line of it at once, in another thread.
    """
    began, (read_end, write_end) = time.monotonic(), os.pipe() if answer else (-1, -1)
    try:
        process = _start(argv, write_end, env, cwd)
    except (OSError, ValueError) as error:
        if read_end >= 0:
            os.close(read_end)
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise NotStarted(reason) from None
    finally:
        if write_end >= 0:
            os.close(write_end)
    return Running(process, read_end, keep_bytes, hear, began)


def run(
    argv: Sequence[str],
    limit_s: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    answer: bool = False,
    hear: Hear | None = None,
    keep_bytes: int = KEEP_BYTES,
    stall_s: float | None = None,
    polite: bool = False,
) -> Ran:
    """Start ``argv`` (see ``start``) and wait for its end, for at most ``limit_s`` seconds.

    The whole group is killed when the leader ends, is interrupted or runs over (on Linux its session too). A ``polite``
    program steps back where others want the processor. With ``stall_s`` (Linux) a program that neither computes nor
    reads for that long is ended early: it hangs.
    """
    began = time.monotonic()
    try:
        running = start(argv, env=env, cwd=cwd, answer=answer, hear=hear, keep_bytes=keep_bytes)
    except NotStarted as why:
        return Ran(ending="not-started", problem=str(why), seconds=time.monotonic() - began)
    if polite:
        _step_back(running.pid)
    late: Late | None = None
    try:
        late = running.wait(limit_s - (time.monotonic() - began), stall_s)
    finally:
        running.stop()
    return running.told(late)


def kill_all() -> None:
    """End every program that is still running: for an interrupted examination."""
    for process in tuple(_running):
        kill_group(process)


def _step_back(group: int) -> None:
    """Ten steps down for a process group, before it has started others. Windows has no such call: all stay equal."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PGRP, group, 10)


def _start(
    argv: Sequence[str], answer_fd: int, env: Mapping[str, str] | None, cwd: str | None
) -> "subprocess.Popen[bytes]":
    """The started program. ``answer_fd`` is given to it when there is one (>= 0)."""
    options = _group()
    answer = answer_fd >= 0
    if answer and _POSIX:
        options["pass_fds"] = (answer_fd,)
    return subprocess.Popen(
        [*argv, *(["--answer-fd", str(_inherit(answer_fd))] if answer else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env) if env is not None else None,
        cwd=cwd,
        close_fds=_POSIX or not answer,
        **options,
    )


def _group() -> dict[str, Any]:
    if _POSIX:
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def _inherit(descriptor: int) -> int:
    """The number by which the child knows the descriptor: on Windows an inheritable handle."""
    if sys.platform == "win32":
        import msvcrt

        os.set_inheritable(descriptor, True)
        return msvcrt.get_osfhandle(descriptor)
    return descriptor
