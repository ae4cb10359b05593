"""Ask compilers what they are, side by side, each file once; and read the answer."""

import os
import re
import shlex
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from dsdoctor.facts import Compiler
from dsdoctor.facts.compilers import Family
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System

LIMIT_S = 5.0
_LAUNCHERS = ("ccache", "sccache", "distcc", "icecc")
_BRACKETS = re.compile(r"\([^()]*\)")
_VERSION = re.compile(r"\b(\d+(?:\.\d+){1,3})\b")
# Mark in the answer -> family; the first that fits. Compilers built on clang name themselves before it.
_MARKS: tuple[tuple[str, Family], ...] = (
    ("Apple clang", "apple-clang"),
    ("Apple LLVM", "apple-clang"),
    ("Microsoft (R)", "msvc"),
    ("nvc++", "nvhpc"),
    ("NVIDIA Compilers", "nvhpc"),
    ("oneAPI", "intel"),
    ("(ICC)", "intel"),
    ("clang version", "clang"),
    ("Free Software Foundation", "gcc"),
    ("gcc version", "gcc"),
)


class Wanted(msgspec.Struct, frozen=True):
    """A compiler to ask: the command as selected and by what."""

    command: str
    by: str


def words(command: str) -> list[str]:
    """The command's words; a value with unbalanced quotes is one word."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def program(command: str) -> str:
    """The compiler's own name in a command such as "ccache gcc -pthread"."""
    parts = words(command)
    launched = len(parts) > 1 and os.path.basename(parts[0]) in _LAUNCHERS
    return parts[1] if launched else parts[0] if parts else ""


def ask_all(system: System, wanted: Iterable[Wanted], limit_s: float = LIMIT_S) -> dict[Wanted, Compiler]:
    """Every wanted compiler; one that is not found has no path."""
    paths = {want: system.which(program(want.command)) for want in wanted}
    programs = {os.path.realpath(path): path for path in paths.values() if path}
    with ThreadPoolExecutor(max(1, len(programs))) as pool:
        asked = {real: pool.submit(_ask, system, path, limit_s) for real, path in programs.items()}
        answers = {real: future.result() for real, future in asked.items()}
    return {want: _compiler(want, path, answers) for want, path in paths.items()}


def _ask(system: System, path: str, limit_s: float) -> Ran:
    if os.path.basename(path).lower() in ("cl", "cl.exe"):
        return system.run([path], limit_s)
    return system.run([path, "--version"], limit_s, env={**system.env, "LC_ALL": "C"})


def _compiler(want: Wanted, path: str | None, answers: dict[str, Ran]) -> Compiler:
    if path is None:
        return Compiler(command=want.command, path=None, selected_by=want.by, problem="is not on PATH")
    ran = answers[os.path.realpath(path)]
    said = f"{ran.stdout}\n{ran.stderr}"
    family, version = family_of(said), version_of(said)
    return Compiler(
        command=want.command,
        path=path,
        selected_by=want.by,
        family=family,
        version=version if family != "unknown" else None,
        problem=_problem(ran, family, version),
    )


def _problem(ran: Ran, family: Family, version: str | None) -> str | None:
    lines = f"{ran.stderr}\n{ran.stdout}".strip().splitlines()
    first = f": {lines[0].strip()[:200]}" if lines else ""
    if ran.ending == "not-started":
        return f"does not start: {ran.problem}"
    if ran.ending == "timed-out":
        return f"gave no answer within {ran.seconds:.0f} s"
    if ran.ending == "signalled":
        return f"was ended by {ran.signal}{first}"
    if family == "msvc":
        return None  # cl without a file ends with an error
    if ran.code:
        return f"ended with exit code {ran.code}{first}"
    return None if family != "unknown" and version else f"printed no version{first}"


def family_of(said: str) -> Family:
    """Whose compiler printed this for ``--version``."""
    return next((family for mark, family in _MARKS if mark in said), "unknown")


def version_of(said: str) -> str | None:
    """The version in the first line that has one, whatever a distribution wrote in brackets."""
    for line in said.splitlines():
        found = _VERSION.search(_BRACKETS.sub(" ", line))
        if found:
            return found.group(1)
    return None
