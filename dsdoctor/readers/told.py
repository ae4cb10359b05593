"""What one environment text tells, before it is weighed against others: words, not yet sections."""

import re
from typing import Literal

import msgspec

Exactness = Literal[0, 1, 2]
MOST_PACKAGES = 5000

_NAME = re.compile(r"[-_.]+")
_LOCAL_CUDA = re.compile(r"\+cu(\d{1,3})(\d)(?:\D|$)")
_LOCAL_HIP = re.compile(r"\+rocm(\d+\.\d+)")
_LOCAL_CPU = re.compile(r"\+cpu(?:\W|$)")


class Build(msgspec.Struct, frozen=True):
    """What a torch was built for."""

    kind: Literal["cuda", "hip", "cpu"]
    version: str | None = None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one text. ``None``: it does not tell.

    ``exactness``: 2, a program that imported torch says so; 1, a list of packages; 0, only the path of some file.
    """

    line: int  # where the text begins among the lines that were given
    exactness: Exactness
    torch: str | None = None
    build: Build | None = None
    deepspeed: str | None = None
    python: str | None = None
    platform: str | None = None  # "Linux-6.1.0-18-amd64-x86_64-with-glibc2.36"
    os: str | None = None  # "Ubuntu 22.04.3 LTS (x86_64)"
    libc: str | None = None  # "glibc-2.35"
    gcc: str | None = None  # "11.4.0"
    clang: str | None = None
    nvcc: str | None = None  # release of the nvcc on PATH: "12.1"
    driver: str | None = None
    gpus: dict[int, str] | None = None
    other_gpus: tuple[str, ...] = ()
    cpu: dict[str, str] | None = None  # rows of lscpu
    ram_bytes: int | None = None
    site_packages: str | None = None  # folder
    prefix: str | None = None  # of the environment
    toolkit: str | None = None  # folder of the nvcc that compiled something
    cache_build: Build | None = None  # what the name of a torch extensions folder tells
    torch_path: str | None = None
    accelerator: str | None = None  # that DeepSpeed chose
    engine: bool = False  # DeepSpeed's engine was made: both imports worked
    packages: dict[str, str] = {}  # normalised name -> version
    whole: bool = False  # ``packages`` names all that are installed
    variables: dict[str, str] = {}  # environment variables


def normalised(name: str) -> str:
    """A distribution's name as facts spell it."""
    return _NAME.sub("-", name).lower()


def build_of(version: str | None) -> Build | None:
    """What the ending of a torch version tells: "2.1.2+cu121"."""
    if version is None:
        return None
    if found := _LOCAL_CUDA.search(version):
        return Build("cuda", f"{found.group(1)}.{found.group(2)}")
    if found := _LOCAL_HIP.search(version):
        return Build("hip", found.group(1))
    return Build("cpu") if _LOCAL_CPU.search(version) else None
