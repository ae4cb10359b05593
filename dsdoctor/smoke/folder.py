"""The private folder of one run: the ranks' events, stacks and NCCL logs; and the cache of compiled ops."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from dsdoctor.facts import Python
from dsdoctor.probes import caches, packages
from dsdoctor.probes.system import System

ROOMS = ("events", "stacks", "nccl")
OLD_LOCK_S = 30.0  # younger: its builder may not have started yet
STACK_BYTES = 64 * 1024
NCCL_BYTES = 64 * 1024


class Folder:
    """Every rank writes its events to a pipe of its own (a file where there are no named pipes): a full disk costs none."""

    def __init__(self, path: str, ranks: int) -> None:
        self.path = path
        self._readers: dict[int, int] = {}
        self._rest = dict.fromkeys(range(ranks), b"")
        for room in ROOMS:
            os.mkdir(os.path.join(path, room))
        for rank in range(ranks):
            name = os.path.join(path, "events", f"rank{rank}")
            if hasattr(os, "mkfifo"):
                os.mkfifo(name)
            else:
                open(name, "xb").close()
            self._readers[rank] = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Rank and line, for every whole line that came since the last call."""
        for rank, descriptor in self._readers.items():
            data = b""
            with contextlib.suppress(BlockingIOError):
                while chunk := os.read(descriptor, 65536):
                    data += chunk
            *whole, self._rest[rank] = (self._rest[rank] + data).split(b"\n")
            for line in whole:
                yield rank, line

    def stack(self, rank: int) -> str | None:
        """What faulthandler wrote of a rank: of a crash, or of being asked where it stands."""
        text = _tail(os.path.join(self.path, "stacks", f"rank{rank}"), STACK_BYTES)
        return _worth_reading(text) if text else None

    def nccl(self, pid: int) -> str | None:
        """NCCL's log of a process."""
        return _tail(os.path.join(self.path, "nccl", str(pid)), NCCL_BYTES)

    def close(self) -> None:
        for descriptor in self._readers.values():
            os.close(descriptor)
        self._readers.clear()


@contextlib.contextmanager
def private(ranks: int) -> Iterator[Folder]:
    """A new folder; it and all in it are gone at the end. Raises OSError when none can be made."""
    path = tempfile.mkdtemp(prefix="dsdoctor-smoke-")
    try:
        folder = Folder(path, ranks)
        try:
            yield folder
        finally:
            folder.close()
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _worth_reading(text: str) -> str:
    """Without the thread that samples for us, and threads that stand in no Python code."""
    parts = [part for part in text.split("\n\n") if not ("in _sample" in part or "<no Python frame>" in part)]
    return "\n\n".join(parts) or text


def _tail(path: str, keep: int) -> str | None:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - keep))
            return file.read().decode("utf-8", "replace").strip() or None
    except OSError:
        return None


def cache_folder(system: System, python: Python) -> str | None:
    """A folder of dsdoctor's own for compiled ops, one per interpreter and releases of torch and DeepSpeed, in the
    user's cache; a fresh temporary folder where that cannot be written; None where nothing can."""
    home = system.env.get("XDG_CACHE_HOME") or system.env.get("LOCALAPPDATA")
    if not home and system.env.get("HOME"):
        home = os.path.join(system.env["HOME"], ".cache")
    tag = "".join(c if c.isalnum() else "_" for c in python.prefix).strip("_")[-80:]
    try:
        if home and os.path.isabs(home):
            tag = f"py{python.version}_{releases(system, python)}{tag}"
            folder = os.path.join(home, "dsdoctor", "torch_extensions", tag)
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
    except OSError:
        pass
    try:
        return tempfile.mkdtemp(prefix="dsdoctor-")
    except OSError:
        return None


def releases(system: System, python: Python) -> str:
    """ "torch2.6.0+cu126_deepspeed0.16.9_": ninja does not rebuild an op when the torch under it changes."""
    found = packages.probe(system, python, check_files=False)
    versions = ((name, found.version(name)) for name in ("torch", "deepspeed"))
    return "".join(f"{name}{version.replace(os.sep, '_')}_" for name, version in versions if version)


def release_locks(system: System, cache: str, older_than_s: float) -> None:
    """Remove locks in dsdoctor's own cache that an ended run left: torch would wait for them for ever."""
    caches.release_locks(system, cache, lambda op, age_s: age_s >= older_than_s and not op.lock_builder_alive)
