"""Runs the program as a user does: another process, its own folder, a recorded machine."""

import os
import subprocess
import sys
from pathlib import Path

from dsdoctor.facts import Snapshot
from dsdoctor.facts.snapshot import encode
from dsdoctor.healthy import healthy, host, torch_live

ROOT = Path(__file__).parents[2]
DS_REPORT = ROOT / "fixtures" / "ds_report" / "0.19.8__accel-cuda.txt"
_OURS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM", "PYTHONIOENCODING", "PYTHONUTF8")


def dsdoctor(*args: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """``dsdoctor ARGS`` in ``cwd``; ``variables`` are the environment's that matter to a terminal."""
    return piped(b"", *args, cwd=cwd, **variables)


def piped(stdin: bytes, *args: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The same with ``stdin`` on standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", *map(str, args)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env=environment(**variables),
        timeout=120,
    )
    out, err = (b.decode("utf-8").replace("\r\n", "\n") for b in (done.stdout, done.stderr))
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def environment(**variables: str) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if k not in _OURS}
    return {**inherited, "PYTHONIOENCODING": "utf-8", **variables}


def record(folder: Path, snapshot: Snapshot | None = None, name: str = "machine.json") -> Path:
    """A snapshot file; the healthy machine when none is given."""
    path = folder / name
    path.write_bytes(encode(snapshot or healthy()))
    return path


def windows() -> Snapshot:
    """A machine with a warning (HOST001) and no error that its HOST family sees."""
    return healthy(host(system="windows", distribution="windows", distribution_version="11"))


def broken() -> Snapshot:
    """A machine whose CUDA does not start in torch: TORCH005."""
    return healthy(torch_live(cuda_available=False, cuda_error="Found no NVIDIA driver \x1b]0;owned\x07on your system"))


__all__ = ["DS_REPORT", "ROOT", "broken", "dsdoctor", "environment", "piped", "record", "windows"]
