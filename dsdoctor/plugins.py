"""Which plug-ins are installed: the entry points of every package on ``sys.path``.

The files are read here, for importlib.metadata brings email, zipfile and tempfile, which cost more than judging a config. It is
asked where a package may lie in another way: in a zip file, or behind a finder of its own.
"""

import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import NamedTuple

_INFO = (".dist-info", ".egg-info")


class Plugin(NamedTuple):
    """One entry point."""

    name: str
    module: str
    package: str  # that brings it, normalised


def plugins(*groups: str) -> dict[str, list[Plugin]]:
    """Group -> its entry points in the order of their names. Of two packages with one name the first on the path counts."""
    files = _by_importlib() if _elsewhere() else _by_hand(sys.path)
    found: dict[str, list[Plugin]] = {group: [] for group in groups}
    for package, text in files:
        if any(group in text for group in groups):
            for group, name, value in _rows(text):
                if group in found:
                    found[group].append(Plugin(name, value.partition(":")[0].partition("[")[0].strip(), package))
    return {group: sorted(entries) for group, entries in found.items()}


def _elsewhere() -> bool:
    finders = [f for f in sys.meta_path if hasattr(f, "find_distributions") and f is not PathFinder]
    return bool(finders) or any(os.path.isfile(path) for path in sys.path)


def _by_importlib() -> Iterator[tuple[str, str]]:
    from importlib import metadata

    seen = set()
    for distribution in metadata.distributions():
        package = _normal(distribution.metadata["Name"] or "")
        if package not in seen:
            seen.add(package)
            yield package, distribution.read_text("entry_points.txt") or ""


def _by_hand(paths: list[str]) -> Iterator[tuple[str, str]]:
    seen = set()
    for path in dict.fromkeys(paths):
        try:
            names = sorted(os.listdir(path or "."))
        except OSError:
            continue
        for name in (name for name in names if name.endswith(_INFO) or name == "EGG-INFO"):
            own = os.path.basename(path) if name == "EGG-INFO" else name
            package = _normal(own.rpartition(".")[0].partition("-")[0])
            if package not in seen:
                seen.add(package)
                yield package, _text(os.path.join(path, name, "entry_points.txt"))


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return ""


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield group, name.strip(), value.strip()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
