"""Places on disk: where NVMe offload would swap, the working folder, the temporary folder, the home folder."""

import contextlib
import errno
import mmap
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from dsdoctor.facts import DsConfig, Place, Storage
from dsdoctor.probes.mounts import device_of, mount_of
from dsdoctor.probes.system import System

BLOCK = 4096
AIO_SCRIPT = Path(__file__).parent / "scripts" / "aio.py"
AIO_LIMIT_S = 10.0
KEPT_FILES = 10000  # of a leftover folder that are counted
_SWAP = "zero_stage_3"  # deepspeed/runtime/zero/stage3.py writes NVME_PATH/zero_stage_3/...
Role = Literal["nvme", "cwd", "tmp", "home"]


def probe(system: System, nvme: str | None, config: DsConfig | None) -> Storage:
    """The places that matter here. Nothing is created but a 4 KiB trial file, which is removed."""
    wanted: list[tuple[str, Role, str]] = []
    if nvme:
        wanted.append((nvme, "nvme", "--nvme"))
    else:
        wanted += _from_config(config)
    if system.cwd:
        wanted.append((system.cwd, "cwd", "the working folder"))
    wanted.append((_temporary(system), "tmp", "default"))
    if system.env.get("HOME"):
        wanted.append((system.env["HOME"], "home", "HOME"))
    return Storage(places=tuple(_place(system, path, role, by) for path, role, by in wanted))


def _temporary(system: System) -> str:
    """The temporary folder as Python chooses it; the first choice where none can be written."""
    named = next((folder for name in ("TMPDIR", "TEMP", "TMP") if (folder := system.env.get(name))), None)
    if named and system.is_dir(named):
        return named
    try:
        return tempfile.gettempdir() if system.real else "/tmp"
    except OSError:
        return "/tmp"


def _from_config(config: DsConfig | None) -> list[tuple[str, Role, str]]:
    """NVMe paths of a ds_config, each once."""
    found: dict[str, str] = {}
    for block in ("offload_param", "offload_optimizer"):
        key = f"zero_optimization.{block}"
        if config is not None and config.get(f"{key}.device") == "nvme" and config.get(f"{key}.nvme_path"):
            found.setdefault(str(config.get(f"{key}.nvme_path")), f"{key}.nvme_path")
    return [(path, "nvme", by) for path, by in found.items()]


def _place(system: System, path: str, role: Role, named_by: str) -> Place:
    absolute = os.path.normpath(os.path.join(system.cwd or os.sep, path))  # DeepSpeed does not expand ~ either
    if not system.exists(absolute):
        return Place(path=path, role=role, named_by=named_by, exists=False, is_directory=False)
    if not system.is_dir(absolute):
        return Place(path=path, role=role, named_by=named_by, is_directory=False)
    mount = mount_of(system, os.path.realpath(absolute)) if system.linux else None
    writable = os.access(system.path(absolute), os.W_OK | os.X_OK)
    trials: dict[str, Any] = {}
    if role == "nvme" and writable:
        trials = _o_direct(system, absolute) | _leftovers(system, absolute)
        if trials["o_direct"]:
            trials |= _aio(system, absolute)
    return Place(
        path=path,
        role=role,
        named_by=named_by,
        writable=writable,
        filesystem=mount.filesystem if mount else None,
        device=device_of(system, mount) if mount else "unknown",
        **_room(system, absolute),
        **trials,
    )


def _room(system: System, path: str) -> dict[str, Any]:
    if not hasattr(os, "statvfs"):
        import shutil

        try:
            usage = shutil.disk_usage(system.path(path))
        except OSError:
            return {}
        return {"total_bytes": usage.total, "free_bytes": usage.free}
    try:
        found = os.statvfs(system.path(path))
    except OSError:
        return {}
    inodes = found.f_favail if found.f_files else None  # btrfs and others count none
    return {
        "total_bytes": found.f_frsize * found.f_blocks,
        "free_bytes": found.f_frsize * found.f_bavail,
        "free_inodes": inodes,
    }


def _o_direct(system: System, folder: str) -> dict[str, Any]:
    """Write one aligned block with O_DIRECT, as DeepSpeed's aio does."""
    direct = getattr(os, "O_DIRECT", None)
    if direct is None:
        return {"o_direct": None, "o_direct_error": "this platform has no O_DIRECT"}
    path = system.path(folder) / f".dsdoctor-{os.getpid()}-{os.urandom(4).hex()}"
    buffer = mmap.mmap(-1, BLOCK)  # page-aligned, as O_DIRECT wants it
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | direct, 0o600)
        try:
            written = os.write(descriptor, buffer)
        finally:
            os.close(descriptor)
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, "error")
        return {"o_direct": False, "o_direct_error": f"{code}: {error.strerror}"}
    finally:
        buffer.close()
        with contextlib.suppress(OSError):
            path.unlink()
    return {"o_direct": written == BLOCK, "o_direct_error": None if written == BLOCK else f"{written} bytes written"}


def _aio(system: System, folder: str) -> dict[str, Any]:
    """io_submit through libaio, in a child of dsdoctor's own interpreter: a broken library may crash it."""
    if not system.linux or not system.real:
        return {}
    ran = system.run([sys.executable, str(AIO_SCRIPT), folder], AIO_LIMIT_S, answer=True)
    words = ran.answer.decode("utf-8", "replace").strip()
    if words == "ok":
        return {"aio": True}
    if words.startswith("no library"):
        return {"aio": None, "aio_error": words}
    if words or ran.signal:
        return {"aio": False, "aio_error": words or f"the trial ended with {ran.signal}"}
    return {"aio": None, "aio_error": f"the trial gave no answer ({ran.problem or ran.ending})"}


def _leftovers(system: System, folder: str) -> dict[str, Any]:
    """Swap folders of earlier runs: DeepSpeed leaves them behind."""
    if _SWAP not in system.names(folder):
        return {}
    total = count = 0
    for here, _, files in os.walk(system.path(os.path.join(folder, _SWAP))):
        for file in files:
            count += 1
            try:
                total += os.lstat(os.path.join(here, file)).st_size
            except OSError:
                continue
        if count > KEPT_FILES:
            break
    return {"leftovers": (os.path.join(folder, _SWAP),), "leftover_bytes": total}
