"""Read the patient's installed distributions from their metadata: no import, no pip, no process."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from dsdoctor.facts import Damage, Distribution, Packages, Python, Shadow
from dsdoctor.probes.system import System

CHECKED = ("torch", "deepspeed", "triton")  # their RECORD is held against the disk
SHADOWED = ("torch", "deepspeed", "triton", "numpy", "transformers", "accelerate", "pydantic", "packaging", "datasets")
KEPT_DAMAGES = 50
_FIELD = re.compile(r"^(Name|Version):\s*(.+?)\s*$", re.MULTILINE)


def probe(system: System, python: Python) -> Packages:
    """Every distribution on the patient's path, what is damaged, doubled, half installed or shadowed."""
    distributions: dict[str, Distribution] = {}
    infos: dict[str, Path] = {}
    versions: dict[tuple[str, str], list[str]] = {}
    leftovers: list[str] = []
    for folder in (*python.sys_path_extra, *python.site_packages):
        for name in system.names(folder):
            if name.startswith("~"):
                leftovers.append(os.path.join(folder, name))
            if not name.endswith((".dist-info", ".egg-info")) or name.startswith("~"):
                continue
            found = _distribution(system, folder, name)
            if found is None:
                continue
            versions.setdefault((found.name, folder), []).append(found.version)
            if found.name not in distributions:
                distributions[found.name] = found
                infos[found.name] = Path(folder, name)
    damaged, checked = _integrity(system, distributions, infos)
    return Packages(
        distributions=dict(sorted(distributions.items())),
        duplicates={n: tuple(sorted(set(v))) for (n, _), v in versions.items() if len(set(v)) > 1},
        leftovers=tuple(leftovers),
        damaged=tuple(sorted(damaged, key=lambda d: -(d.expected_bytes or 0))[:KEPT_DAMAGES]),
        integrity_checked=checked,
        shadows=tuple(_shadows(system, python)),
        namespace_only=tuple(
            os.path.join(f, n)
            for f in python.site_packages
            for n in CHECKED
            if n not in distributions and system.is_dir(os.path.join(f, n))
        ),
    )


def normalise(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _distribution(system: System, folder: str, info: str) -> Distribution | None:
    base = os.path.join(folder, info)
    text = system.read(os.path.join(base, "METADATA"), 16384) or system.read(os.path.join(base, "PKG-INFO"), 16384)
    if text is None and info.endswith(".egg-info"):
        text = system.read(base, 16384)
    fields: dict[str, str] = {}
    for key, value in _FIELD.findall(text or ""):
        fields.setdefault(key, value)
    if not fields:  # metadata gone: the folder's name still tells
        name, _, version = info.rsplit(".", 1)[0].partition("-")
        fields = {"Name": name, "Version": version.split("-")[0]}
    if not fields.get("Name") or not fields.get("Version"):
        return None
    return Distribution(
        name=normalise(fields["Name"]),
        version=fields["Version"],
        location=folder,
        installer=(system.read(os.path.join(base, "INSTALLER"), 64) or "").strip() or None,
        editable=_editable(system, base),
    )


def _editable(system: System, base: str) -> str | None:
    text = system.read(os.path.join(base, "direct_url.json"), 16384)
    try:
        origin = json.loads(text) if text else {}
    except ValueError:
        return None
    if not isinstance(origin, dict) or not (origin.get("dir_info") or {}).get("editable"):
        return None
    return str(origin.get("url", "")).removeprefix("file://") or "unknown"


def _integrity(
    system: System, distributions: dict[str, Distribution], infos: dict[str, Path]
) -> tuple[list[Damage], tuple[str, ...]]:
    damaged: list[Damage] = []
    checked: list[str] = []
    for name in CHECKED:
        if name not in distributions or distributions[name].editable:
            continue
        record = system.read(infos[name] / "RECORD", 16 * 1024 * 1024)
        if record:
            checked.append(name)
            damaged += _damages(system, name, distributions[name].location, record)
    return damaged, tuple(checked)


def _damages(system: System, name: str, location: str, record: str) -> Iterator[Damage]:
    """Sizes of RECORD against the disk: one listing per folder instead of one stat per file."""
    expected: dict[str, dict[str, int]] = {}
    for line in record.splitlines():
        path, _, size = line.rpartition(",")
        path = path.rpartition(",")[0]
        if size.isdigit() and _fixed(path):
            folder, _, file = path.strip('"').rpartition("/")
            expected.setdefault(folder, {})[file] = int(size)
    for folder, files in expected.items():
        actual = _sizes(system, os.path.join(location, folder))
        for file, size in files.items():
            found = actual.get(file)
            if found == size:
                continue
            kind = "missing" if found is None else "empty" if found == 0 else "size"
            yield Damage(
                distribution=name,
                file=f"{folder}/{file}" if folder else file,
                kind=kind,  # type: ignore[arg-type]
                expected_bytes=size,
                actual_bytes=found,
            )


def _fixed(path: str) -> bool:
    """Files that installers may rewrite (scripts, metadata, byte code) are no sign of damage; headers are left out for speed."""
    return not (path.endswith(".pyc") or ".dist-info/" in path or "/include/" in path or path.startswith(("..", "/")))


def _sizes(system: System, folder: str) -> dict[str, int]:
    try:
        with os.scandir(str(system.path(folder))) as entries:
            return {e.name: e.stat().st_size for e in entries}
    except OSError:
        return {}


def _shadows(system: System, python: Python) -> Iterator[Shadow]:
    """Modules that Python would take from the working folder or PYTHONPATH instead of site-packages."""
    sites = {Path(s).resolve() for s in python.site_packages}
    folders = ([python.cwd] if python.cwd else []) + list(python.sys_path_extra)
    for folder in dict.fromkeys(folders):
        if Path(folder).resolve() in sites or any(n.endswith(".dist-info") for n in system.names(folder)):
            continue  # a place where packages are installed, not a stray file
        for module in SHADOWED:
            for candidate in (os.path.join(folder, f"{module}.py"), os.path.join(folder, module)):
                file = candidate if candidate.endswith(".py") else os.path.join(candidate, "__init__.py")
                if system.is_file(file):
                    yield Shadow(module=module, path=candidate)
