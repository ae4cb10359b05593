"""Run a program that may hang, crash or chatter, and say how it ended. Nothing that it started outlives the call."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Literal

import msgspec

KEEP_BYTES = 256 * 1024  # of each stream: the first half and the last half
ANSWER_BYTES = 64 * 1024 * 1024
_POSIX = os.name == "posix"
_running: set["subprocess.Popen[bytes]"] = set()


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


class _Drain(threading.Thread):
    """Reads a pipe to its end, keeping the first and the last part. ``hear`` is given each whole line as it comes."""

    def __init__(self, pipe: IO[bytes], keep: int, hear: Callable[[bytes], None] | None = None) -> None:
        super().__init__(daemon=True)
        self._pipe, self._half, self._hear, self._line = pipe, keep // 2, hear, b""
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := self._pipe.read1(65536):  # type: ignore[attr-defined]
                self._tell(chunk)
                room = self._half - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[max(room, 0) :]
                if len(self._tail) > 2 * self._half:
                    self._dropped += len(self._tail) - self._half
                    del self._tail[: len(self._tail) - self._half]
            self._pipe.close()

    def _tell(self, chunk: bytes) -> None:
        if self._hear is None:
            return
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            with contextlib.suppress(Exception):  # a listener's fault must not cost the answer
                self._hear(line)

    def held(self) -> bool:
        """True when somebody still has the other end open."""
        self.join(0.2)
        return self.is_alive()

    def data(self) -> bytes:
        self.join(1.0)
        cut = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return bytes(self._head) + cut + bytes(self._tail)


def run(
    argv: Sequence[str],
    limit_s: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    answer: bool = False,
    hear: Callable[[bytes], None] | None = None,
    keep_bytes: int = KEEP_BYTES,
    stall_s: float | None = None,
    polite: bool = False,
) -> Ran:
    """Run ``argv`` in a process group of its own with closed stdin, for at most ``limit_s`` seconds.

    With ``answer`` the program gets ``--answer-fd N`` appended and what it writes to that descriptor comes back in
    ``Ran.answer``, whatever it prints; ``hear`` is told each line of it at once, in another thread. The whole group is
    killed when the leader ends, is interrupted or runs over (on Linux its session too). A ``polite`` program steps back
    where others want the processor.
    With ``stall_s`` (Linux) a program that neither computes nor reads for that long is ended early: it hangs.
    """
    started, (read_end, write_end) = time.monotonic(), os.pipe() if answer else (-1, -1)
    process = _start(argv, write_end, env, cwd)
    if write_end >= 0:
        os.close(write_end)
    if not isinstance(process, subprocess.Popen):
        if read_end >= 0:
            os.close(read_end)
        return Ran(ending="not-started", problem=_reason(process), seconds=time.monotonic() - started)
    _running.add(process)
    if polite:
        _step_back(process.pid)
    answers = _Drain(os.fdopen(read_end, "rb"), ANSWER_BYTES, hear) if answer else None
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Drain(process.stdout, keep_bytes), _Drain(process.stderr, keep_bytes)
    late: Literal["limit", "stall"] | None = None
    try:
        late = _wait(process, started + limit_s, stall_s)
    finally:
        kill_group(process)
        _running.discard(process)
    if any(drain is not None and drain.held() for drain in (out, err, answers)):
        kill_session(process.pid)  # it ended well, and somebody still holds its pipes
    return _ended(process, late, out, err, answers, time.monotonic() - started)


def _step_back(group: int) -> None:
    """Ten steps down for a process group, before it has started others. Windows has no such call: all stay equal."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PGRP, group, 10)


def _start(
    argv: Sequence[str], answer_fd: int, env: Mapping[str, str] | None, cwd: str | None
) -> "subprocess.Popen[bytes] | OSError | ValueError":
    """The started program, or why it cannot be started. ``answer_fd`` is given to it when there is one (>= 0)."""
    options = _group()
    answer = answer_fd >= 0
    if answer and _POSIX:
        options["pass_fds"] = (answer_fd,)
    command = [*argv, *(["--answer-fd", str(_inherit(answer_fd))] if answer else [])]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            close_fds=_POSIX or not answer,
            **options,
        )
    except (OSError, ValueError) as error:
        return error


def _wait(
    process: "subprocess.Popen[bytes]", deadline: float, stall_s: float | None
) -> Literal["limit", "stall"] | None:
    """Wait for the end; None when it came, else why we stopped waiting."""
    watch = _Watch(process.pid) if stall_s is not None else None
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return "limit"
        try:
            process.wait(left if watch is None else min(left, 0.5))
        except subprocess.TimeoutExpired:
            if watch is not None and stall_s is not None and watch.idle_s() >= stall_s:
                return "stall"
        else:
            return None


class _Watch:
    """Says how long a process has neither computed nor read. Linux only: elsewhere it never counts as idle."""

    TICKS = 3  # of 10 ms: a sleeping loop that polls burns less between two looks
    BYTES = 65536

    def __init__(self, pid: int) -> None:
        self._pid, self._ticks, self._bytes, self._since = pid, 0, 0, time.monotonic()

    def idle_s(self) -> float:
        """Seconds since the last sign of work. A process that waits in the kernel (state D: a slow disk) works."""
        try:
            fields = _stat(self._pid)
            with open(f"/proc/{self._pid}/io", encoding="utf-8") as file:
                read = int(file.readline().split()[1])
        except (OSError, ValueError, IndexError):
            return 0.0
        ticks = sum(_ticks(pid) for pid in _family(self._pid))  # falls when a child ends and nobody reaps it
        if fields[0] == "D" or abs(ticks - self._ticks) > self.TICKS or read - self._bytes > self.BYTES:
            self._ticks, self._bytes, self._since = ticks, read, time.monotonic()
        return time.monotonic() - self._since


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on. Raises OSError when there is no such process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _ticks(pid: int) -> int:
    """User and system time, its own and its reaped children's, in ticks of 10 ms; 0 when it is gone."""
    try:
        return sum(int(field) for field in _stat(pid)[11:15])
    except (OSError, ValueError):
        return 0


def _family(pid: int) -> list[int]:
    """``pid`` and the live processes below it: a compiler that it waits for is work."""
    found = [pid]
    for parent in found:  # grows while it is walked
        try:
            for thread in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as file:
                    found += [int(child) for child in file.read().split()]
        except (OSError, ValueError):
            continue
    return found


def _ended(
    process: "subprocess.Popen[bytes]",
    late: Literal["limit", "stall"] | None,
    out: _Drain,
    err: _Drain,
    answers: _Drain | None,
    seconds: float,
) -> Ran:
    texts = {
        "stdout": out.data().decode("utf-8", "replace"),
        "stderr": err.data().decode("utf-8", "replace"),
    }
    rest = {"answer": answers.data() if answers else b"", "seconds": seconds}
    code = process.returncode
    if late is not None:
        return Ran(ending="timed-out", stalled=late == "stall", **texts, **rest)  # type: ignore[arg-type]
    if code is not None and code < 0:
        return Ran(ending="signalled", code=code, signal=signal_name(-code), **texts, **rest)  # type: ignore[arg-type]
    return Ran(ending="exited", code=code, **texts, **rest)  # type: ignore[arg-type]


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """End the process and everything in its group, in its session too unless it ended well; reap it."""
    if _POSIX:
        well = process.returncode == 0
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if not well:
            kill_session(process.pid)
    elif process.poll() is None:
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)


def kill_session(leader: int) -> None:
    """End what left the group: ninja gives every compiler a group of its own. Linux only: it looks through /proc."""
    for _ in range(100):  # one may have started another while we looked; a large one takes its time to go
        members = _session(leader)
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not members:
            return
        time.sleep(0.02)


def _session(leader: int) -> list[int]:
    """The live processes of a session."""
    found: list[int] = []
    for name in os.listdir("/proc") if sys.platform.startswith("linux") else ():
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(name)) == leader and _stat(int(name))[0] not in "ZX":
                found.append(int(name))
    return found


def kill_all() -> None:
    """End every program that is still running: for an interrupted examination."""
    for process in tuple(_running):
        kill_group(process)


def signal_name(number: int) -> str:
    """ "SIGSEGV" for 11; "signal 99" for one that this platform doesn't name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


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


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
