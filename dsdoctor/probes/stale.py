"""What in the extension cache is proved to be of no use, and its removal.

An op that another torch built is *not* stale while that torch is there: all environments of a user share the folder
(py311_cu130), the other one loads it, and here torch builds it anew by itself, because its -isystem differs from that in
build.ninja and ninja always runs in a new process (torch.utils.cpp_extension._jit_compile, torch 2.13, read 2026-11-30).
Removing it would only cost the other environment a build. What is of another Python or another user stays for the same
reason: it is shown, and never removed.
"""

import os
import re
import shutil
from collections.abc import Iterable

import msgspec

from dsdoctor.facts import CachedOp, Caches, Python, Snapshot
from dsdoctor.probes import caches
from dsdoctor.probes.system import System

_PYTHON = re.compile(r"-isystem \S*/python(3\.\d+)t?(?:\s|$)")
_TAG = re.compile(r"\.cpython-3(\d+)|\.cp3(\d+)-")


class Stale(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    why: str
    kept: bool = False  # only shown: somebody else may use it


def reason_to_keep_all(known: Caches | None) -> str | None:
    """Why nothing may be removed at all; None when something may."""
    if known is None or known.extensions is None:
        return "Where the extension cache is cannot be told without torch's files: nothing was looked at."
    if known.extensions.network:
        kind = known.extensions.filesystem or "a network filesystem"
        return f"{known.extensions.path} is on {kind}: another machine may build there, so nothing is removed."
    return None


def stale_things(snapshot: Snapshot) -> tuple[Stale, ...]:
    """Locks whose builder is gone, ops whose torch is gone, ruins of failed builds; and, marked, what is somebody else's."""
    known = snapshot.caches
    if known is None or reason_to_keep_all(known):
        return ()
    busy = caches.busy_folders(System()) or set()
    torch_path = snapshot.torch.path if snapshot.torch else None
    found = [_judged(op, torch_path, snapshot.python) for op in known.ops if os.path.realpath(op.path) not in busy]
    return tuple(thing for thing in found if thing is not None)


def look_again(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the cache as it is now: while somebody read the list a build may have begun."""
    known = snapshot.caches
    if known is None or known.extensions is None:
        return snapshot
    now = tuple(caches.ops(System(), known.extensions.path, known.extensions.network))
    return snapshot.replace(caches=msgspec.structs.replace(known, ops=now))


def _judged(op: CachedOp, torch_path: str | None, python: Python | None) -> Stale | None:
    if op.lock_builder_alive:
        return None
    if (owner := _stranger(op.path)) is not None:
        return Stale(path=op.path, why=f"belongs to another user (uid {owner})", kept=True)
    age = f"a lock, {op.lock_age_s or 0:.0f} s old"
    if op.lock_age_s is not None and op.lock_builder_alive is None:
        return Stale(path=op.path, why=f"holds {age}; whether somebody builds there cannot be seen", kept=True)
    if op.torch_path is not None and _gone(op.torch_path):
        return Stale(path=op.path, why=f"was built with the torch in {op.torch_path}, which is gone")
    if op.lock_age_s is not None:
        return Stale(path=os.path.join(op.path, "lock"), why=f"{age}, and nothing builds there")
    if op.shared_object is None:
        return Stale(path=op.path, why="holds no compiled op: its build failed or was ended")
    if op.torch_path is not None and torch_path is not None and not _same(op.torch_path, torch_path):
        why = (
            f"was built with the torch in {op.torch_path}, which is there; here torch builds it anew when it is needed"
        )
        return Stale(path=op.path, why=why, kept=True)
    built, here = _python_of(op), ".".join(python.version.split(".")[:2]) if python else None
    if built is not None and here is not None and built != here:
        return Stale(path=op.path, why=f"was built for Python {built}; here it is {here}", kept=True)
    return None


def _python_of(op: CachedOp) -> str | None:
    """The Python that an op was built for: its library's tag, or the headers that its build.ninja names."""
    tag = _TAG.search(os.path.basename(op.shared_object or ""))
    if tag:
        return f"3.{tag.group(1) or tag.group(2)}"
    named = _PYTHON.search(System().read(os.path.join(op.path, "build.ninja"), 65536) or "")
    return named.group(1) if named else None


def _stranger(path: str) -> int | None:
    """The uid of another user who owns ``path``."""
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return None
    return owner if hasattr(os, "geteuid") and owner != os.geteuid() else None


def _gone(folder: str) -> bool:
    """It is not there; not: it lies where we may not look."""
    try:
        os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


def _same(first: str, second: str) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)


def remove(thing: Stale) -> str | None:
    """Remove it; one sentence when that failed."""
    try:
        if os.path.isdir(thing.path):
            shutil.rmtree(thing.path)
        else:
            os.unlink(thing.path)
    except OSError as error:
        return f"{thing.path} could not be removed: {error.strerror or error}"
    return None


def release_locks(system: System, cache: str | None, names: Iterable[str]) -> None:
    """Remove the locks that builds of ``names`` left, when nothing builds there: torch would wait for them for ever."""
    if cache:
        wanted = set(names)
        caches.release_locks(system, cache, lambda op, _: op.name in wanted and op.lock_builder_alive is False)
