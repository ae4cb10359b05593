"""What one environment text tells, before it is weighed against others: words, not yet sections."""

import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from dsdoctor.readers import regex

Exactness = Literal[0, 1, 2]
MOST_PACKAGES = 5000

_NAME = regex.compile(r"[-_.]+")
_LOCAL_CUDA = regex.compile(r"\+cu(\d{1,3})(\d)(?:\D|$)")
_LOCAL_HIP = regex.compile(r"\+rocm(\d+\.\d+)")
_LOCAL_CPU = regex.compile(r"\+cpu(?:\W|$)")


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
    home_nvcc: str | None = None  # release of the nvcc that torch picks
    driver: str | None = None
    gpus: dict[int, str] | None = None
    listed: bool = False  # ``gpus`` names all: nvidia-smi's list
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
    ranks: tuple[int, int] | None = None  # nodes, and ranks of this one, as DeepSpeed's launcher counts them
    packages: dict[str, str] = {}  # normalised name -> version
    whole: bool = False  # ``packages`` names all that are installed


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


def first(pattern: re.Pattern[str], text: str | None) -> str | None:
    """The first group of where ``pattern`` is found, if it is."""
    found = pattern.search(text or "")
    return found.group(1) if found else None


def base(version: str) -> str:
    """A version without its local ending."""
    return version.split("+")[0]


def merge(texts: Iterable[Told]) -> Told:
    """One word on everything: the more exact text counts, and of equally exact ones the last."""
    ordered = sorted(texts, key=lambda told: (told.exactness, told.line))
    values: dict[str, Any] = {}
    packages: dict[str, str] = {}
    for told in ordered:
        packages |= told.packages
        words = {name: value for name in _WORDS if (value := getattr(told, name)) not in (None, (), False)}
        if values.get("listed") and not told.listed:
            words.pop("gpus", None)  # one name is less than a list
        values |= words
    torch = values.get("torch")
    if torch is not None:
        same = [told.torch for told in ordered if told.torch and base(told.torch) == base(torch)]
        values["torch"] = next((version for version in reversed(same) if "+" in version), torch)
        values["build"] = _build(values["torch"], ordered)
    return Told(line=0, exactness=2, packages=packages, **values)


def _build(torch: str, ordered: list[Told]) -> Build | None:
    """The build that is told of this very version; that of another torch is none of it."""
    if (own := build_of(torch)) is not None:
        return own
    of_it = [told.build for told in ordered if told.build and told.torch and base(told.torch) == base(torch)]
    seen = [told.cache_build for told in ordered if told.cache_build]
    return next(reversed(of_it or seen), None)


_WORDS = tuple(name for name in Told.__struct_fields__ if name not in ("line", "exactness", "packages"))
