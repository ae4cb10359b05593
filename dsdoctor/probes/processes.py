"""Processes as the kernel shows them: who is below whom, who works, and how to end a whole family."""

import contextlib
import os
import signal
import subprocess
import sys
import time

_POSIX = os.name == "posix"


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
            if os.getsid(int(name)) == leader and stat(int(name))[0] not in "ZX":
                found.append(int(name))
    return found


def signal_name(number: int) -> str:
    """ "SIGSEGV" for 11; "signal 99" for one that this platform doesn't name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Stall:
    """Says how long a process has neither computed nor read. Linux only: elsewhere it never counts as idle."""

    TICKS = 3  # of 10 ms: a sleeping loop that polls burns less between two looks
    BYTES = 65536

    def __init__(self, pid: int) -> None:
        self._pid, self._ticks, self._bytes, self._since = pid, 0, 0, time.monotonic()

    def idle_s(self) -> float:
        """Seconds since the last sign of work. A process that waits in the kernel (state D: a slow disk) works."""
        try:
            fields = stat(self._pid)
            with open(f"/proc/{self._pid}/io", encoding="utf-8") as file:
                read = int(file.readline().split()[1])
        except (OSError, ValueError, IndexError):
            return 0.0
        burnt = sum(ticks(pid) for pid in family(self._pid))  # falls when a child ends and nobody reaps it
        if fields[0] == "D" or abs(burnt - self._ticks) > self.TICKS or read - self._bytes > self.BYTES:
            self._ticks, self._bytes, self._since = burnt, read, time.monotonic()
        return time.monotonic() - self._since


def stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on. Raises OSError when there is no such process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def ticks(pid: int) -> int:
    """User and system time, its own and its reaped children's, in ticks of 10 ms; 0 when it is gone."""
    try:
        return sum(int(field) for field in stat(pid)[11:15])
    except (OSError, ValueError):
        return 0


def family(pid: int) -> list[int]:
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
