"""Real smoke runs through the command line, on the interpreter that runs the tests, with one thing provoked."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab.sick import DOCTOR, ROOMS, left_running

PROVOKED = Path(__file__).with_name("provoked")
SHM = Path("/dev/shm")


class Trained:
    """A report, and what was left behind: processes, segments of shared memory, temporary folders."""

    def __init__(self, code: int, stdout: bytes, stderr: bytes, left: list[str]) -> None:
        self.code, self.left = code, left
        self.stderr = stderr.decode("utf-8", "replace")
        self.document: Mapping[str, Any] = json.loads(stdout) if stdout.strip() else {}

    @property
    def run(self) -> Mapping[str, Any]:
        (only,) = self.document["facts"]["smoke"]["runs"]
        return only  # type: ignore[no-any-return]

    @property
    def runs(self) -> dict[str, Mapping[str, Any]]:
        return {run["recipe"]: run for run in self.document["facts"]["smoke"]["runs"]}

    @property
    def causes(self) -> list[str]:
        """Of errors, those first that explain others."""
        return [c["cause"] for c in self.document["causes"] if c["severity"] == "error"]

    def told(self, cause: str) -> str:
        """What was found about a cause, with its evidence."""
        found = [f for v in self.document["verdicts"] for f in v["findings"] if f["cause"] == cause]
        return "\n".join([f["message"] + "".join(f"\n{e['where']}: {e['text']}" for e in f["evidence"]) for f in found])


class Training:
    """A started `dsdoctor smoke --json`. ``before`` is put in front of the command: unshare, prlimit, ..."""

    def __init__(self, folder: Path, *options: str, before: Sequence[str] = (), **env: str) -> None:
        self.tmp = folder / "tmp"
        self.tmp.mkdir()
        self._mark = f"{os.getpid()}-{time.monotonic()}"
        self._segments = set(os.listdir(SHM)) if SHM.exists() else set()
        kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "DS_ACCELERATOR")}
        kept["TORCHDYNAMO_DISABLE"] = "1"  # no recipe compiles with it, and importing it takes seconds in every rank
        kept["OMP_NUM_THREADS"] = "1"  # threads that wait for others spin, and other tests want the processors
        variables = {**kept, "DSDOCTOR_LAB": self._mark, "TMPDIR": str(self.tmp), "PYTHONPATH": str(PROVOKED), **env}
        command = [
            sys.executable,
            "-c",
            DOCTOR,
            ROOMS,
            "smoke",
            "--json",
            "--cpu",
            "--python",
            sys.executable,
            *options,
        ]
        self.process = subprocess.Popen(
            [*before, *command], env=variables, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def ended(self, limit_s: float = 900.0) -> Trained:
        try:
            stdout, stderr = self.process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGINT)
            self.process.communicate(timeout=30)
            raise
        left = left_running(self._mark)
        left += [str(path) for path in self.tmp.glob("dsdoctor-*")]
        there = set(os.listdir(SHM)) - self._segments if SHM.exists() else set()
        left += [name for name in there if f"_127.0.0.1_{self.port}_" in name] if self.port else []
        return Trained(self.process.returncode, stdout, stderr, left)

    @property
    def port(self) -> str | None:
        """The port of the run, which the provoked rank wrote down."""
        file = self.tmp / "port"
        return file.read_text() if file.exists() else None

    def wait_for(self, name: str, limit_s: float = 300.0) -> None:
        """Until the provoked rank has written this file."""
        until = time.monotonic() + limit_s
        while not (self.tmp / name).exists():
            assert time.monotonic() < until, f"the rank never came to {name}"
            assert self.process.poll() is None, "it ended before"
            time.sleep(0.1)


def train(folder: Path, *options: str, before: Sequence[str] = (), **env: str) -> Trained:
    """Start, and wait for the end."""
    return Training(folder, *options, before=before, **env).ended()
