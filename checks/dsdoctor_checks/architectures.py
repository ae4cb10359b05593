"""Does code that was compiled for some architectures run on a GPU? The rules are NVIDIA's."""

import re
from collections.abc import Sequence

from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import release, series

_NAME = re.compile(r"^(sm|compute)_(\d+)(\d)([af]?)$")


def runs_on(capability: str, architectures: Sequence[str]) -> bool:
    """True when one of torch's names (``sm_86``, ``sm_90a``, ``compute_120``) holds for a GPU of ``capability`` ("8.9")."""
    major, minor = release(capability)[:2]
    return any(_runs(major, minor, name) for name in architectures)


def _runs(major: int, minor: int, name: str) -> bool:
    match = _NAME.match(name)
    if match is None:
        return False
    kind, its_major, its_minor, suffix = match.group(1), int(match.group(2)), int(match.group(3)), match.group(4)
    if suffix == "a":
        return (major, minor) == (its_major, its_minor)
    if kind == "sm" or suffix == "f":
        return major == its_major and minor >= its_minor
    return (major, minor) >= (its_major, its_minor)


def older_than_all(capability: str, architectures: Sequence[str]) -> bool:
    """True when every one of the architectures is newer than ``capability``."""
    found = [m for m in map(_NAME.match, architectures) if m]
    return all((int(m.group(2)), int(m.group(3))) > release(capability)[:2] for m in found)


def of_wheel(version: str, cuda: str | None) -> tuple[str, ...] | None:
    """The architectures of torch's default wheel of ``version``; None when that wheel was not looked into."""
    row = table("architectures")["torch"]["series"].get(series(version))
    if row is None or cuda is None or series(row["cuda"]) != series(cuda):
        return None
    return tuple(f"sm_{arch.replace('.', '')}" for arch in row["archs"])
