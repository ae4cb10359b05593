"""The folders where torch extensions and Triton kernels are built and kept."""

from dsdoctor.facts.base import Fact


class CachedOp(Fact, frozen=True, kw_only=True):
    """One op folder of the torch extensions cache."""

    name: str
    path: str
    shared_object: str | None = None
    torch_path: str | None = None  # torch folder that its build.ninja names
    nvcc: str | None = None  # nvcc that its build.ninja names
    lock_age_s: float | None = None  # age of a `lock` file; None: no lock
    lock_builder_alive: bool | None = None  # a compiler or ninja works in this folder


class CacheFolder(Fact, frozen=True, kw_only=True):
    path: str
    because: str  # "TORCH_EXTENSIONS_DIR", "XDG_CACHE_HOME", "default"
    exists: bool = False
    writable: bool | None = None  # or creatable, when it does not exist
    owner_uid: int | None = None
    foreign_owner: bool = False
    filesystem: str | None = None
    network: bool = False


class Caches(Fact, frozen=True, kw_only=True):
    extensions: CacheFolder | None = None
    ops: tuple[CachedOp, ...] = ()
    triton: CacheFolder | None = None
