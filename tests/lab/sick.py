"""Makes really broken environments: a venv whose site-packages mirrors the one that runs the tests, with one thing changed."""

import json
import os
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HEALTHY = Path(sysconfig.get_path("purelib"))
PURE_PATH = os.pathsep.join(("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"))


# The dsdoctor of this tree, whichever one is installed; PYTHONPATH would reach the patient too.
ROOMS = os.pathsep.join(str(Path(__file__).parents[2] / room) for room in ("", "checks"))
DOCTOR = (
    "import os, runpy, sys; sys.path[:1] = sys.argv.pop(1).split(os.pathsep); "
    "runpy.run_module('dsdoctor', run_name='__main__', alter_sys=True)"
)


class Sick:
    """A patient: its interpreter, its site-packages, and the variables under which it is examined."""

    def __init__(self, home: Path) -> None:
        self.home = home
        venv.create(home, symlinks=True, with_pip=False)
        self.python = home / "bin" / "python"
        self.site = Path(
            subprocess.check_output(
                [self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
            ).strip()
        )
        self.env = dict(os.environ, PATH=f"{home / 'bin'}{os.pathsep}{PURE_PATH}")
        for name in ("PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "DS_ACCELERATOR", "TORCH_CUDA_ARCH_LIST"):
            self.env.pop(name, None)
        self.env["TORCH_EXTENSIONS_DIR"] = str(
            home / "torch_extensions"
        )  # what others left in this user's is not looked at
        self.cwd = home / "work"
        self.cwd.mkdir()

    def mirror(self, *, without: tuple[str, ...] = ()) -> "Sick":
        """Link every package of the healthy environment, except those whose folder or metadata starts with a name in ``without``."""
        for entry in HEALTHY.iterdir():
            stem = entry.name.lower()
            if stem.startswith(("dsdoctor", "_dsdoctor", "__pycache__", *without)):
                continue
            target = self.site / entry.name
            if not target.exists():
                target.symlink_to(entry)
        ninja = HEALTHY.parents[2] / "bin" / "ninja"
        if ninja.exists():
            (self.home / "bin" / "ninja").symlink_to(ninja)
        return self

    def own(self, package: str) -> Path:
        """Replace the link to ``package`` by a real folder of hard links, so that one of its files can be changed."""
        link = self.site / package
        source = link.resolve()
        link.unlink()
        for folder, _, files in os.walk(source):
            here = link / Path(folder).relative_to(source)
            here.mkdir()
            for file in files:
                if not file.endswith(".pyc"):
                    os.link(Path(folder) / file, here / file)
        return link

    def rewrite(self, file: Path, data: bytes) -> None:
        """Give a hard-linked file other contents without touching its twin."""
        file.unlink()
        file.write_bytes(data)

    def own_record(self, distribution: str) -> Path:
        """A private copy of a distribution's dist-info; returns its RECORD."""
        link = next(self.site.glob(f"{distribution}-*.dist-info"))
        source = link.resolve()
        link.unlink()
        link.mkdir()
        for file in source.iterdir():
            if file.is_file():
                (link / file.name).write_bytes(file.read_bytes())
        return link / "RECORD"

    def fake(self, name: str, release: str, init: str, **files: str) -> None:
        """Install a distribution whose RECORD is right and whose import does ``init``."""
        package = self.site / name
        package.mkdir()
        written = {f"{name}/__init__.py": init} | {f"{name}/{stem}.py": text for stem, text in files.items()}
        info = self.site / f"{name}-{release}.dist-info"
        info.mkdir()
        for path, text in written.items():
            (self.site / path).write_text(text)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n")
        (info / "INSTALLER").write_text("pip\n")
        rows = [f"{path},,{len(text.encode())}" for path, text in written.items()]
        (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]) + "\n")

    def tool(self, name: str, script: str) -> None:
        """Put a program in front of PATH."""
        path = self.home / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def examine(self, *options: str) -> "Answer":
        """Run the real command line on this patient."""
        started = time.monotonic()
        mark = f"{os.getpid()}-{started}"
        done = subprocess.run(
            [sys.executable, "-c", DOCTOR, ROOMS, "check", "--json", "--python", str(self.python), *options],
            env=self.env | {"DSDOCTOR_LAB": mark},
            cwd=self.cwd,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Answer(done, time.monotonic() - started, left_running(mark))


def left_running(mark: str) -> list[str]:
    """Command lines of the processes that still carry this examination's mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"DSDOCTOR_LAB={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue  # it ended meanwhile, or is another user's
    return found


class Answer:
    """What came back: exit code, the JSON document, the wall time, and what was left running."""

    def __init__(self, done: "subprocess.CompletedProcess[bytes]", seconds: float, left: list[str]) -> None:
        self.code, self.seconds, self.left = done.returncode, seconds, left
        self.stderr = done.stderr.decode("utf-8", "replace")
        self.document: Mapping[str, Any] = json.loads(done.stdout)

    @property
    def first_cause(self) -> str:
        causes = self.document["causes"]
        return str(causes[0]["cause"]) if causes else ""

    @property
    def crashed(self) -> list[str]:
        """Checks that raised: always a fault of dsdoctor."""
        return [v["code"] for v in self.document["verdicts"] if v["status"] == "crashed"]

    @property
    def causes(self) -> list[str]:
        return [c["cause"] for c in self.document["causes"] if c["severity"] == "error"]
