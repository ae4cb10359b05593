"""Read the patient's installed distributions from their metadata: no import, no pip, no process."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dsdoctor.facts import Damage, Distribution, Packages, Python, Shadow
from dsdoctor.probes.system import System

CHECKED = ("torch", "deepspeed", "triton")  # their RECORD is held against the disk
SHADOWED = ("torch", "deepspeed", "triton", "numpy", "transformers", "accelerate", "pydantic", "packaging", "datasets")
KEPT_DAMAGES = 50
_FIELD = re.compile(r"^(Name|Version):\s*(.+?)\s*$", re.MULTILINE)


def probe(system: System, python: Python, check_files: bool = True) -> Packages:
    """Every distribution on the patient's path, what is damaged, doubled, half installed or shadowed.

    Without ``check_files`` nothing is held against RECORD.
    """
    distributions: dict[str, Distribution] = {}
    infos: dict[str, Path] = {}
    versions: dict[tuple[str, str], list[str]] = {}
    leftovers: list[str] = []
    linked = _egg_links(system, python)
    early = _before_site(system, python)
    late = (p for p in python.sys_path_extra if p not in early)
    for folder in (*early, *python.site_packages, *late):
        for name in system.names(folder):
            if name.startswith("~"):
                leftovers.append(os.path.join(folder, name))
            if not name.endswith((".dist-info", ".egg-info")) or name.startswith("~"):
                continue
            found = _distribution(system, folder, name, linked)
            if found is None:
                continue
            versions.setdefault((found.name, folder), []).append(found.version)
            if found.name not in distributions:
                distributions[found.name] = found
                infos[found.name] = Path(folder, name)
    doubled = {n: tuple(sorted(set(v))) for (n, _), v in versions.items() if len(set(v)) > 1}
    checkable = {n: d for n, d in distributions.items() if check_files and n not in doubled}
    damaged, checked = _integrity(system, checkable, infos)
    return Packages(
        distributions=dict(sorted(distributions.items())),
        duplicates=doubled,  # whose RECORD describes the files is not known: they are not checked
        leftovers=tuple(leftovers),
        damaged=tuple(sorted(damaged, key=lambda d: -(d.expected_bytes or 0))[:KEPT_DAMAGES]),
        integrity_checked=checked,
        shadows=tuple(_shadows(system, python, early, distributions)),
        namespace_only=tuple(p for n in CHECKED if n not in distributions for p in _folders(system, python, n)),
    )


def _folders(system: System, python: Python, name: str) -> list[str]:
    return [p for p in (os.path.join(f, name) for f in python.site_packages) if system.is_dir(p)]


def normalise(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _before_site(system: System, python: Python) -> tuple[str, ...]:
    """The folders that PYTHONPATH names: Python looks there before site-packages, and into those of .pth files after."""
    value = system.env.get("PYTHONPATH")
    entries = value.split(";" if system.platform == "win32" else ":") if value else []
    named = {os.path.realpath(os.path.join(system.cwd or os.sep, entry)) for entry in entries}
    return tuple(p for p in python.sys_path_extra if os.path.realpath(p) in named)


def _egg_links(system: System, python: Python) -> frozenset[str]:
    """Sources of old editable installs (`setup.py develop`)."""
    links = (os.path.join(f, n) for f in python.site_packages for n in system.names(f) if n.endswith(".egg-link"))
    texts = ((system.read(link, 4096) or "").strip() for link in links)
    return frozenset(os.path.realpath(text.splitlines()[0].strip()) for text in texts if text)


def _distribution(system: System, folder: str, info: str, linked: frozenset[str]) -> Distribution | None:
    base = os.path.join(folder, info)
    text = system.read(os.path.join(base, "METADATA"), 16384) or system.read(os.path.join(base, "PKG-INFO"), 16384)
    if text is None and info.endswith(".egg-info"):
        text = system.read(base, 16384)
    fields: dict[str, str] = {}
    for key, value in _FIELD.findall(text or ""):
        fields.setdefault(key, value)
    name, _, version = info.rsplit(".", 1)[0].partition("-")
    fields.setdefault("Name", name)  # metadata gone or cut off: the folder's name still tells
    fields.setdefault("Version", version.split("-")[0])
    if not fields.get("Name") or not fields.get("Version"):
        return None
    return Distribution(
        name=normalise(fields["Name"]),
        version=fields["Version"],
        location=folder,
        installer=(system.read(os.path.join(base, "INSTALLER"), 64) or "").strip() or None,
        editable=_editable(system, base) or (folder if os.path.realpath(folder) in linked else None),
    )


def _editable(system: System, base: str) -> str | None:
    text = system.read(os.path.join(base, "direct_url.json"), 16384)
    try:
        origin = json.loads(text) if text else {}
    except ValueError:
        return None
    about = origin.get("dir_info") if isinstance(origin, dict) else None
    if not isinstance(about, dict) or not about.get("editable"):
        return None
    path = unquote(urlsplit(str(origin.get("url", ""))).path)  # not urllib.request: importing it takes 40 ms
    return (path[1:] if path[2:3] == ":" else path) or "unknown"


def _integrity(
    system: System, distributions: dict[str, Distribution], infos: dict[str, Path]
) -> tuple[list[Damage], tuple[str, ...]]:
    damaged: list[Damage] = []
    checked: list[str] = []
    for name in CHECKED:
        if name not in distributions or distributions[name].editable or distributions[name].installer == "conda":
            continue  # conda patches files after it has written RECORD
        record = system.read(infos[name] / "RECORD", 16 * 1024 * 1024)
        if record:
            checked.append(name)
            damaged += _damages(system, name, distributions[name].location, record)
    return damaged, tuple(checked)


def _damages(system: System, name: str, location: str, record: str) -> Iterator[Damage]:
    """Sizes of RECORD against the disk: one listing per folder instead of one stat per file."""
    expected: dict[str, dict[str, int]] = {}
    whole = record if record.endswith("\n") else record.rpartition("\n")[0]  # the last line may be cut in its size
    for line in whole.splitlines():
        path, _, size = line.rpartition(",")
        path = path.rpartition(",")[0]
        if size.isdigit() and _fixed(path):
            folder, _, file = path.strip('"').rpartition("/")
            expected.setdefault(folder, {})[file] = int(size)
    for folder, files in expected.items():
        actual = _sizes(system, os.path.join(location, folder))
        for file, wanted in files.items():
            found = actual.get(file)
            if found == wanted:
                continue
            kind = "missing" if found is None else "empty" if found == 0 else "size"
            yield Damage(
                distribution=name,
                file=f"{folder}/{file}" if folder else file,
                kind=kind,  # type: ignore[arg-type]
                expected_bytes=wanted,
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


def _shadows(
    system: System, python: Python, early: tuple[str, ...], distributions: dict[str, Distribution]
) -> Iterator[Shadow]:
    """Modules that Python would take from the working folder or PYTHONPATH instead of site-packages."""
    sites = {os.path.realpath(s) for s in python.site_packages}
    sources = {n: os.path.realpath(d.editable or d.location) for n, d in distributions.items()}
    safe = bool(system.env.get("PYTHONSAFEPATH")) and not re.match(r"3\.([0-9]|10)\.", python.version)  # since 3.11
    folders = ([python.cwd] if python.cwd and not safe else []) + list(early)
    for folder in dict.fromkeys(folders):
        real = os.path.realpath(folder)
        if real in sites or any(n.endswith(".dist-info") for n in system.names(folder)):
            continue  # a place where packages are installed, not a stray file
        for module in SHADOWED:
            if sources.get(module) == real:
                continue  # the source of an editable install
            for candidate in (os.path.join(folder, f"{module}.py"), os.path.join(folder, module)):
                file = candidate if candidate.endswith(".py") else os.path.join(candidate, "__init__.py")
                if system.is_file(file):
                    yield Shadow(module=module, path=candidate)
