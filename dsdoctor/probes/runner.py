"""Run a program that may hang, crash or chatter, and say how it ended. Nothing that it started outlives the call."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any, Literal

import msgspec

KEEP_BYTES = 256 * 1024  # of each stream: the first half and the last half
_POSIX = os.name == "posix"
_running: set["subprocess.Popen[bytes]"] = set()


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. ``stdout`` and ``stderr`` are decoded with replacement and cut in the middle when huge."""

    ending: Literal["exited", "signalled", "timed-out", "not-started"]
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
    """Reads a pipe to its end, keeping the first and the last part."""

    def __init__(self, pipe: IO[bytes], keep: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._half = pipe, keep // 2
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := self._pipe.read1(65536):  # type: ignore[attr-defined]
                room = self._half - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[max(room, 0) :]
                if len(self._tail) > 2 * self._half:
                    self._dropped += len(self._tail) - self._half
                    del self._tail[: len(self._tail) - self._half]

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
    keep_bytes: int = KEEP_BYTES,
) -> Ran:
    """Run ``argv`` in a process group of its own with closed stdin, for at most ``limit_s`` seconds.

    With ``answer`` the program gets ``--answer-fd N`` appended and what it writes to that descriptor comes back in
    ``Ran.answer``, whatever it prints. The whole group is killed when the leader ends, is interrupted or runs over.
    """
    started = time.monotonic()
    read_end, write_end = os.pipe() if answer else (-1, -1)
    options = _group()
    if answer and _POSIX:
        options["pass_fds"] = (write_end,)
    command = [*argv, *(["--answer-fd", str(_inherit(write_end))] if answer else [])]
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(
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
        for end in (read_end, write_end):
            if end >= 0:
                os.close(end)
        return Ran(ending="not-started", problem=_reason(error), seconds=time.monotonic() - started)
    _running.add(process)
    answers = None
    if answer:
        os.close(write_end)
        answers = _Drain(os.fdopen(read_end, "rb"), 64 * 1024 * 1024)
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Drain(process.stdout, keep_bytes), _Drain(process.stderr, keep_bytes)
    timed_out = False
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        kill_group(process)
        _running.discard(process)
    return _ended(process, timed_out, out, err, answers, time.monotonic() - started)


def _ended(
    process: "subprocess.Popen[bytes]",
    timed_out: bool,
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
    if timed_out:
        return Ran(ending="timed-out", **texts, **rest)  # type: ignore[arg-type]
    if code is not None and code < 0:
        return Ran(ending="signalled", code=code, signal=signal_name(-code), **texts, **rest)  # type: ignore[arg-type]
    return Ran(ending="exited", code=code, **texts, **rest)  # type: ignore[arg-type]


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """End the process and everything in its group; reap it."""
    if _POSIX:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)


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
