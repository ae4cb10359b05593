"""Where torch keeps JIT-built extensions and Triton its kernels, and what lies there."""

import contextlib
import os
import re
import time
from collections.abc import Callable

from dsdoctor.facts import CachedOp, CacheFolder, Caches, Python, Torch
from dsdoctor.probes.mounts import NETWORK, mount_of
from dsdoctor.probes.system import System

_TORCH_INCLUDE = re.compile(r"-isystem (\S+?/torch)/include(?:\s|$)")
_NVCC = re.compile(r"^nvcc = (\S+)", re.MULTILINE)
KEPT_OPS = 100


def probe(system: System, python: Python | None, torch: Torch | None) -> Caches:
    """The folders as torch.utils.cpp_extension and Triton would choose them, and the ops in the former."""
    extensions = _extensions(system, python, torch)
    return Caches(
        extensions=extensions,
        ops=tuple(ops(system, extensions.path, extensions.network)) if extensions else (),
        triton=_triton(system),
    )


def _extensions(system: System, python: Python | None, torch: Torch | None) -> CacheFolder | None:
    """torch/utils/cpp_extension.py _get_build_directory (2.13): the variable as given, else a folder per Python and CUDA."""
    root = system.env.get("TORCH_EXTENSIONS_DIR")
    if root:
        return _folder(system, root, "TORCH_EXTENSIONS_DIR")
    home, because = _cache_home(system)
    if home is None or python is None or torch is None:
        return None
    version = "".join(python.version.split(".")[:2])
    rocm = f"rocm{torch.hip.replace('.', '')}" if torch.hip else None
    accelerator = rocm or (f"cu{torch.cuda.replace('.', '')}" if torch.cuda else "cpu")
    return _folder(system, os.path.join(home, f"py{version}_{accelerator}"), because)


def _cache_home(system: System) -> tuple[str | None, str]:
    """torch/_appdirs.py user_cache_dir("torch_extensions"): XDG_CACHE_HOME counts on neither Windows nor macOS."""
    if system.platform == "win32":
        local = system.env.get("LOCALAPPDATA")
        return os.path.join(local, "torch_extensions", "torch_extensions", "Cache") if local else None, "default"
    if system.platform != "darwin" and system.env.get("XDG_CACHE_HOME"):
        return os.path.join(system.env["XDG_CACHE_HOME"], "torch_extensions"), "XDG_CACHE_HOME"
    home = _home(system)
    if not home:
        return None, "default"
    parts = ("Library", "Caches") if system.platform == "darwin" else (".cache",)
    return os.path.join(home, *parts, "torch_extensions"), "default"


def _home(system: System) -> str | None:
    """The home folder as expanduser finds it: HOME, else the account's entry in the password database."""
    home = system.env.get("USERPROFILE" if system.platform == "win32" else "HOME")
    if home or not system.real:
        return home or None
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir or None
    except (ImportError, KeyError):
        return None


def _triton(system: System) -> CacheFolder | None:
    """triton/knobs.py: TRITON_CACHE_DIR, else TRITON_HOME/.triton/cache, else ~/.triton/cache."""
    if system.env.get("TRITON_CACHE_DIR"):
        return _folder(system, system.env["TRITON_CACHE_DIR"], "TRITON_CACHE_DIR")
    named = system.env.get("TRITON_HOME")
    home = named or _home(system)
    if not home:
        return None
    return _folder(system, os.path.join(home, ".triton", "cache"), "TRITON_HOME" if named else "default")


def _folder(system: System, path: str, because: str) -> CacheFolder:
    path = os.path.join(system.cwd or os.sep, path)
    existing = path
    while existing and not system.exists(existing) and os.path.dirname(existing) != existing:
        existing = os.path.dirname(existing)
    owner = _owner(system, existing)
    mount = mount_of(system, os.path.realpath(existing)) if system.linux and existing else None
    mine = os.geteuid() if hasattr(os, "geteuid") else None
    return CacheFolder(
        path=path,
        because=because,
        exists=system.is_dir(path),
        writable=os.access(system.path(existing), os.W_OK | os.X_OK) if existing else None,
        owner_uid=owner,
        foreign_owner=system.is_dir(path) and None not in (owner, mine) and owner != mine and mine != 0,
        filesystem=mount.filesystem if mount else None,
        network=bool(mount and mount.filesystem in NETWORK),
    )


def _owner(system: System, path: str) -> int | None:
    try:
        return os.stat(system.path(path)).st_uid
    except OSError:
        return None


def ops(system: System, root: str, network: bool = False) -> list[CachedOp]:
    """The op folders in ``root``. With ``network`` the builder may run on another machine: alive or not is not known."""
    found: list[CachedOp] = []
    busy: set[str] | None = None
    for name in system.names(root)[:KEPT_OPS]:
        folder = os.path.join(root, name)
        inside = system.names(folder)
        if not {"build.ninja", "lock"} & set(inside) and not any(n.endswith(".so") for n in inside):
            continue
        ninja = system.read(os.path.join(folder, "build.ninja"), 65536) or ""
        torch_path, nvcc = _TORCH_INCLUDE.search(ninja), _NVCC.search(ninja)
        age = _age(system, os.path.join(folder, "lock")) if "lock" in inside else None
        if age is not None and busy is None and not network:
            busy = busy_folders(system)
        shared = next((n for n in inside if n.endswith((".so", ".pyd"))), None)
        found.append(
            CachedOp(
                name=name,
                path=folder,
                shared_object=os.path.join(folder, shared) if shared else None,
                torch_path=torch_path.group(1) if torch_path else None,
                nvcc=nvcc.group(1) if nvcc else None,
                lock_age_s=age,
                lock_builder_alive=None if age is None or busy is None else _builder_alive(system, folder, busy),
            )
        )
    return found


def _builder_alive(system: System, folder: str, busy: set[str]) -> bool | None:
    """A live process works in ``folder``. None when the lock is another user's, whose processes we may not look at."""
    if os.path.realpath(folder) in busy:
        return True
    me = os.geteuid() if hasattr(os, "geteuid") else None
    return False if me == 0 or _owner(system, os.path.join(folder, "lock")) == me else None


def _age(system: System, path: str) -> float | None:
    try:
        return max(0.0, round(time.time() - os.stat(system.path(path)).st_mtime, 1))
    except OSError:
        return None


def busy_folders(system: System) -> set[str] | None:
    """Folders in which live processes build: ninja works in the op's, torch holds its lock open. None where /proc is closed.

    torch/utils/file_baton.py (2.13): the lock's descriptor stays open until it is released, also while torch writes
    build.ninja, asks the compiler, or loads the library.
    """
    if not system.linux or not system.real:
        return None
    folders: set[str] = set()
    for pid in system.names("/proc"):
        if pid.isdigit():
            with contextlib.suppress(OSError):
                folders.add(os.readlink(f"/proc/{pid}/cwd"))
            for descriptor in system.names(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    opened = os.readlink(f"/proc/{pid}/fd/{descriptor}")
                    if opened.endswith("/lock"):
                        folders.add(os.path.dirname(opened))
    return folders


def release_locks(system: System, root: str, dead: Callable[[CachedOp, float], bool]) -> None:
    """Remove the lock of each op in ``root`` of which ``dead``, told the lock's age in seconds, says that its build is."""
    for op in ops(system, root):
        if op.lock_age_s is not None and dead(op, op.lock_age_s):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(op.path, "lock"))
