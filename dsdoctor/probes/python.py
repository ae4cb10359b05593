"""Choose the patient's interpreter and ask it what it is."""

import itertools
import json
import os
import re
import sys
from pathlib import Path

import msgspec

from dsdoctor.facts import Python
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT_S = 15.0
_ASK = "import sys; print('dsdoctor asks python %d' % sys.version_info[0])"
_MAJOR = re.compile(r"^dsdoctor asks python (\d+)\s*$", re.MULTILINE)
_TOOL_HOMES = (("pipx", "venvs"), ("uv", "tools"), ("uv", "archive-v0"))  # where pipx, uv tool and uvx keep programs


def choose(system: System, wanted: str | None) -> tuple[str, str]:
    """The interpreter to examine and why. Raises ProbeFailed in one sentence when ``wanted`` is none."""
    if wanted is not None:
        return _named(system, wanted), "named by --python"
    for variable, because in (
        ("VIRTUAL_ENV", "the active virtual environment"),
        ("CONDA_PREFIX", "the active conda environment"),
    ):
        found = _interpreter_in(system.env.get(variable, ""))
        if found:
            return found, because
    if _in_tool_home(sys.prefix):
        for name in ("python", "python3"):
            found = system.which(name, _path_without(system, Path(sys.prefix)))
            if found:
                return _absolute(
                    system, found
                ), f"the first {name} on PATH (dsdoctor lives in an environment of its own)"
    return sys.executable, "the interpreter that runs dsdoctor"


def probe(system: System, executable: str, because: str) -> Python:
    """Facts of the interpreter; falls back to an isolated start when its site configuration breaks it."""
    ran = system.run([executable, str(SCRIPTS / "static.py")], LIMIT_S, answer=True)
    facts = _answer(ran)
    for options in (["-I"], ["-I", "-S"]):
        if facts is None and ran.ending == "exited":
            facts = _answer(system.run([executable, *options, str(SCRIPTS / "static.py")], LIMIT_S, answer=True))
    if facts is None:
        raise ProbeFailed("failed", f"{executable} is no working Python: {_why(ran)}")
    scripts = str(facts.get("scripts_dir") or "")
    path = system.env.get("PATH", "").split(";" if system.platform == "win32" else ":")
    on_path = None if not scripts else any(_same(entry, scripts) for entry in path if entry)
    extra = {"executable": executable, "chosen_because": because, "scripts_on_path": on_path, "cwd": system.cwd}
    try:
        return msgspec.convert({**facts, **extra, "uv": system.which("uv")}, Python)
    except msgspec.ValidationError as error:
        raise ProbeFailed("failed", f"{executable} gave an answer that cannot be read: {error}") from None


def _named(system: System, wanted: str) -> str:
    path = Path(_absolute(system, os.path.expanduser(wanted)))
    if wanted and os.path.isdir(path):
        found = _interpreter_in(str(path))
        if found is None:
            raise ProbeFailed("failed", f"--python {wanted} is a folder without a Python in it")
        return found
    found = str(path) if os.path.isfile(path) else system.which(wanted)
    if found is None:
        raise ProbeFailed("failed", f"--python {wanted!r}: there is no such program")
    found = _absolute(system, found)
    ran = system.run([found, "-c", _ASK], LIMIT_S)
    major = _MAJOR.search(ran.stdout)
    if major is None and ran.ending == "exited":  # PYTHONHOME or a site configuration may break it
        major = _MAJOR.search(system.run([found, "-I", "-S", "-c", _ASK], LIMIT_S).stdout)
    if major is None:
        raise ProbeFailed("failed", f"--python {wanted} is no Python: {_why(ran)}")
    if major.group(1) != "3":
        raise ProbeFailed("failed", f"--python {wanted} is Python {major.group(1)}; torch and DeepSpeed need Python 3")
    return found


def _absolute(system: System, path: str) -> str:
    """``path`` from the working folder; links are kept, for a virtual environment's python is one."""
    return os.path.normpath(os.path.join(system.cwd or os.sep, path))


def _path_without(system: System, prefix: Path) -> str:
    """PATH without the folders under ``prefix``."""
    entries = system.env.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(e for e in entries if e and not Path(e).is_relative_to(prefix))


def _interpreter_in(prefix: str) -> str | None:
    if not prefix:
        return None
    for relative in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
        candidate = Path(prefix) / relative
        if os.path.isfile(candidate):  # False, not an error, where we may not look
            return os.path.abspath(candidate)
    return None


def _in_tool_home(prefix: str) -> bool:
    parts = Path(prefix).parts
    return any(pair in itertools.pairwise(parts) for pair in _TOOL_HOMES)


def _answer(ran: Ran) -> dict[str, object] | None:
    try:
        value = json.loads(ran.answer)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _why(ran: Ran) -> str:
    if ran.problem:
        return ran.problem
    if ran.ending == "timed-out":
        return f"no answer within {LIMIT_S:.0f} s"
    if ran.signal:
        return f"it died of {ran.signal}"
    if ran.ok:
        said = ran.stdout.strip().splitlines()
        return f"asked for its version it said {said[0][:80]!r}" if said else "it said nothing"
    lines = [line.strip() for line in (ran.stderr or ran.stdout).splitlines() if line.strip()]
    return f"exit code {ran.code}" + (f", {lines[-1][:200]}" if lines else ", it said nothing")


def _same(one: str, other: str) -> bool:
    return Path(one) == Path(other) or Path(one).resolve() == Path(other).resolve()
