"""Programs on PATH, and DeepSpeed's hostfile."""

import os
import re

from dsdoctor.facts import Hostfile, Programs
from dsdoctor.facts.programs import NAMES
from dsdoctor.probes.system import System

DEFAULT_HOSTFILE = "/job/hostfile"  # deepspeed/launcher/runner.py DLTS_HOSTFILE
_LINE = re.compile(r"^(\S+)\s+slots=(\d+)", re.ASCII)  # as deepspeed/launcher/runner.py _parse_hostfile (0.19.8)


def probe(system: System, hostfile: str | None) -> Programs:
    """Where each program lies, and the hostfile that was named or that lies where DeepSpeed looks for it."""
    paths = {name: path for name in NAMES if (path := system.which(name))}
    named = hostfile or (DEFAULT_HOSTFILE if system.is_file(DEFAULT_HOSTFILE) else None)
    return Programs(paths=paths, hostfile=_hostfile(system, named) if named else None)


def _hostfile(system: System, path: str) -> Hostfile:
    text = system.read(path) if os.path.isabs(path) else None
    if text is None and system.cwd is not None:
        text = system.read(os.path.join(system.cwd, path))
    if text is None:
        return Hostfile(path=path, exists=False)
    hosts: dict[str, int] = {}
    bad: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        found = _LINE.match(line)
        if not found:
            bad.append(f"{number}: {line[:120]}")
        elif found.group(1) in hosts:
            bad.append(f"{number}: {line[:120]} (host listed twice)")
        else:
            hosts[found.group(1)] = int(found.group(2))
    return Hostfile(path=path, exists=True, hosts=hosts, bad_lines=tuple(bad))
