"""What in the extension cache is proved to be of no use, and its removal."""

import contextlib
import os
import shutil
from collections.abc import Iterable

import msgspec

from dsdoctor.facts import CachedOp, Snapshot
from dsdoctor.probes import caches
from dsdoctor.probes.system import System


class Stale(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    why: str


def stale_things(snapshot: Snapshot) -> tuple[Stale, ...]:
    """Locks whose builder is gone, ops that another torch built, and ruins of failed builds. What is in doubt stays."""
    known, torch = snapshot.caches, snapshot.torch
    if known is None or (known.extensions is not None and known.extensions.network):
        return ()
    found = [_stale(op, torch.path if torch else None) for op in known.ops]
    return tuple(thing for thing in found if thing is not None)


def _stale(op: CachedOp, torch_path: str | None) -> Stale | None:
    if op.lock_builder_alive:
        return None
    if op.torch_path is not None and not os.path.isdir(op.torch_path):
        return Stale(path=op.path, why=f"was built with the torch in {op.torch_path}, which is gone")
    if op.torch_path is not None and torch_path is not None and not _same(op.torch_path, torch_path):
        return Stale(path=op.path, why=f"was built with the torch in {op.torch_path}; here it is {torch_path}")
    if op.lock_age_s is not None:
        if op.lock_builder_alive is None:
            return None
        return Stale(
            path=os.path.join(op.path, "lock"), why=f"a lock, {op.lock_age_s:.0f} s old, and nothing builds there"
        )
    if op.shared_object is None:
        return Stale(path=op.path, why="holds no compiled op: its build failed or was ended")
    return None


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
    for op in caches.ops(system, cache) if cache else ():
        if op.name in set(names) and op.lock_age_s is not None and op.lock_builder_alive is False:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(op.path, "lock"))
