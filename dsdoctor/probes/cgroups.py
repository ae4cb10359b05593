"""Which control groups hold this process: cgroup v1, v2, or both side by side."""

import posixpath
from typing import Literal

from dsdoctor.probes.system import System

BASE = "/sys/fs/cgroup"


def groups(system: System, controller: str) -> tuple[Literal[1, 2] | None, tuple[str, ...]]:
    """Version and folders for ``controller`` ("memory", "cpu"): our own group first, then its parents up to the root.

    (None, ()) where there is no such controller. A container sees its own group as the root: folders that are not
    there are left out.
    """
    own: dict[str, str] = {}
    for line in (system.read("/proc/self/cgroup") or "").splitlines():
        if line.count(":") >= 2:
            _, names, path = line.split(":", 2)
            own |= dict.fromkeys(names.split(","), path)
    if system.exists(f"{BASE}/cgroup.controllers"):
        return 2, _upwards(system, BASE, own.get("", "/"))
    base = f"{BASE}/{controller}"
    if not system.is_dir(base):
        return None, ()
    return 1, _upwards(system, base, own.get(controller, "/"))


def _upwards(system: System, base: str, own: str) -> tuple[str, ...]:
    parts = [part for part in own.split("/") if part and part != ".."]
    folders = [posixpath.join(base, *parts[:count]) for count in range(len(parts), -1, -1)]
    return tuple(folder for folder in folders if system.is_dir(folder))


def number(text: str | None) -> int | None:
    """A file that holds one whole number; None for "max", -1 and anything else."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() else None
