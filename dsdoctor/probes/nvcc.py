"""Run nvcc's two harmless questions, once per program, side by side."""

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System

LIMIT_S = 10.0
_RELEASE = re.compile(r"release (\d+\.\d+)")
_CODE = re.compile(r"^sm_(\d+)$", re.MULTILINE)  # not sm_90a, sm_100f: those serve one GPU only


class Nvcc(msgspec.Struct, frozen=True, kw_only=True):
    """What one nvcc said of itself."""

    path: str
    version: str | None = None
    problem: str | None = None
    architectures: tuple[str, ...] = ()


def path_in(system: System, root: str) -> str:
    """Where torch expects nvcc under a toolkit's root."""
    return f"{root.rstrip('/')}/bin/{'nvcc.exe' if system.platform == 'win32' else 'nvcc'}"


def ask_all(system: System, paths: Iterable[str], limit_s: float = LIMIT_S) -> dict[str, Nvcc]:
    """Path -> answer. Names of one file are asked once."""
    wanted = tuple(dict.fromkeys(paths))
    programs = {os.path.realpath(system.path(path)): path for path in reversed(wanted)}
    with ThreadPoolExecutor(max(1, 2 * len(programs))) as pool:
        versions = {real: pool.submit(_ask, system, path, "--version", limit_s) for real, path in programs.items()}
        codes = {real: pool.submit(_ask, system, path, "--list-gpu-code", limit_s) for real, path in programs.items()}
        answers = {
            real: _answer(path, versions[real].result(), codes[real].result()) for real, path in programs.items()
        }
    return {path: msgspec.structs.replace(answers[os.path.realpath(system.path(path))], path=path) for path in wanted}


def _ask(system: System, path: str, question: str, limit_s: float) -> Ran | str:
    """How it ended, or why it cannot even be started."""
    where = system.path(path)
    if where.is_dir():
        return "is a directory"
    if not os.access(where, os.X_OK):
        return "is not executable"
    ran = system.run([str(where), question], limit_s)
    return f"does not start: {ran.problem}" if ran.ending == "not-started" else ran


def _answer(path: str, version: Ran | str, codes: Ran | str) -> Nvcc:
    if isinstance(version, str):
        return Nvcc(path=path, problem=version)
    found = _RELEASE.search(version.stdout)
    return Nvcc(
        path=path,
        version=found.group(1) if found else None,
        problem=_problem(version, found is not None),
        architectures=architectures(codes.stdout) if isinstance(codes, Ran) and codes.ok else (),
    )


def _problem(ran: Ran, has_version: bool) -> str | None:
    if ran.ending == "timed-out":
        return f"gave no answer within {ran.seconds:.0f} s"
    if ran.ending == "signalled":
        return f"was ended by {ran.signal}"
    said = (ran.stderr.strip() or ran.stdout.strip()).splitlines()
    first = f": {said[0].strip()[:200]}" if said else ""
    if ran.code:
        return f"ended with exit code {ran.code}{first}"
    return None if has_version else f"printed no version{first}"


def architectures(text: str) -> tuple[str, ...]:
    """Compute capabilities in the answer to ``--list-gpu-code``: "sm_90" is "9.0", "sm_100" is "10.0"."""
    numbers = sorted({int(number) for number in _CODE.findall(text)})
    return tuple(f"{number // 10}.{number % 10}" for number in numbers)
