"""Where the dynamic loader and the linker of a Linux machine find libraries: read from files, no process started."""

import platform
import re
import struct
from functools import lru_cache

from dsdoctor.probes.system import System

# What the loader looks through when neither LD_LIBRARY_PATH nor its cache knows a name (glibc and musl, 64 bit).
_TRUSTED = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
_WSL = "/usr/lib/wsl/lib"
_MAGIC = b"glibc-ld.so.cache1.1"
_ENTRY = struct.Struct("<iIIIQ")  # flags, name, path, os version, hwcap
_HEADER_BYTES = 48
_I386, _X32 = 0x0003, 0x0803  # entry flags of libraries that a 64-bit process cannot load


def multiarch() -> str:
    """Debian's name for this machine: "x86_64-linux-gnu"."""
    machine = platform.machine() or "x86_64"
    return f"{'x86_64' if machine.lower() == 'amd64' else machine}-linux-gnu"


def listed(variable: str | None, separator: str = ":") -> tuple[str, ...]:
    """The folders in a value such as LD_LIBRARY_PATH, without empty ones."""
    return tuple(part for part in re.split(f"[{separator};]", variable or "") if part)


def default_folders() -> tuple[str, ...]:
    """Folders that the loader and the linker search without being told."""
    name = multiarch()
    return (f"/usr/lib/{name}", f"/lib/{name}", f"/usr/local/lib/{name}", *_TRUSTED)


def find(system: System, name: str) -> str | None:
    """Path at which the loader finds ``name`` ("libcuda.so.1"): LD_LIBRARY_PATH, ld.so.cache, trusted folders, WSL's."""
    for folder in listed(system.env.get("LD_LIBRARY_PATH")):
        if system.is_file(f"{folder}/{name}"):
            return f"{folder.rstrip('/')}/{name}"
    return find_default(system, name)


def find_default(system: System, name: str) -> str | None:
    """As ``find``, without LD_LIBRARY_PATH."""
    for path in cached(system).get(name, ()):
        if system.is_file(path):
            return path
    return first_file(system, (*default_folders(), _WSL), name)


def first_file(system: System, folders: tuple[str, ...], *names: str) -> str | None:
    """The first of ``names`` in the first of ``folders`` that has one."""
    for folder in folders:
        for name in names:
            if system.is_file(f"{folder}/{name}"):
                return f"{folder.rstrip('/')}/{name}"
    return None


def cached(system: System) -> dict[str, tuple[str, ...]]:
    """Name -> paths in /etc/ld.so.cache, best first; empty when there is none (musl, macOS)."""
    data = system.read_bytes("/etc/ld.so.cache", 16 * 1024 * 1024)
    return parse_cache(data) if data else {}


@lru_cache(maxsize=4)
def parse_cache(data: bytes) -> dict[str, tuple[str, ...]]:
    """glibc's cache in the format that every release since 2.2 writes (alone, or behind the older format's table)."""
    start = data.find(_MAGIC)
    if start < 0 or len(data) < start + _HEADER_BYTES:
        return {}
    (count,) = struct.unpack_from("<I", data, start + len(_MAGIC))
    found: dict[str, list[str]] = {}
    for at in range(count):
        offset = start + _HEADER_BYTES + at * _ENTRY.size
        if offset + _ENTRY.size > len(data):
            break
        flags, name, path, _, _ = _ENTRY.unpack_from(data, offset)
        if flags not in (_I386, _X32):
            found.setdefault(_string(data, start + name), []).append(_string(data, start + path))
    return {name: tuple(paths) for name, paths in found.items()}


def _string(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset)
    return data[offset : end if end >= 0 else offset].decode("utf-8", "replace")
