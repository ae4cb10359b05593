"""A run that died, as somebody pasted it: logs and whatever lay beside them, read as one incident."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dsdoctor import __version__
from dsdoctor.events import Event, Observer, nobody
from dsdoctor.facts import DeepSpeed, Fact, Log, Packages, Snapshot, Torch, Unavailable
from dsdoctor.facts.snapshot import SECTIONS, now
from dsdoctor.recorded import not_asked
from dsdoctor.request import ExaminationError
from dsdoctor.signatures import Signatures

MOST_FILES = 256  # of a folder


def read_incident(names: Sequence[str], signatures: Signatures, observe: Observer = nobody) -> Snapshot:
    """The facts of all files and folders of ``names`` together. Raises ExaminationError for one that cannot be read."""
    from dsdoctor.readers.log import read

    files = [file for name in names for file in _files(name)]
    observe(Event(kind="judging", name="log", detail=f"{len(files)} file{'s' if len(files) != 1 else ''}"))
    try:
        reading = read(files, signatures)
    except OSError as error:
        raise ExaminationError(
            f"{error.filename or 'standard input'} cannot be read: {error.strerror or error}"
        ) from None
    told = _told(reading.parts)
    log = _of_those_versions(reading.log, _versions(told), signatures)
    silent = Unavailable(kind="not-examined", detail="the text does not say")
    missing = {name: silent for name in SECTIONS.values() if name not in told and name != "log"}
    return Snapshot(
        tool_version=__version__,
        origin=", ".join(file.name for file in log.files[:4]) + (" and more" if len(log.files) > 4 else ""),
        taken_at=now(),
        unavailable=missing | not_asked(smoke=True, config="ds_config" not in told),
    ).replace(log=log, **told)


def _told(parts: Sequence[tuple[str, str]]) -> dict[str, Fact]:
    """What the texts tell of the machine, as if they were one; a config keeps the places of its own file."""
    from dsdoctor.readers import accelerate_config, config_in_text, environment_text, pasted

    told = environment_text.facts_of("\n".join(text for _, text in parts), ", ".join(source for source, _ in parts))
    for source, text in parts if len(parts) > 1 else ():
        if "{" in text and (config := config_in_text.read(pasted.numbered(text), source)) is not None:
            told["ds_config"] = config
        if "accelerate_config" in told and (asked := accelerate_config.parse(text, source)) is not None:
            told["accelerate_config"] = asked
    return told


def beside(live: Snapshot, incident: Snapshot) -> Snapshot:
    """This machine's facts, with the log beside them, and what of the text no probe found."""
    told = {
        name: getattr(incident, name)
        for name in SECTIONS.values()
        if getattr(live, name) is None and getattr(incident, name) is not None
    }
    missing = {name: why for name, why in live.unavailable.items() if name not in told}
    return live.replace(unavailable=missing, **{**told, "log": incident.log})


def _files(name: str) -> list[str]:
    """The files that a name means: itself, or all in a folder."""
    path = Path(name)
    if name == "-" or not path.is_dir():
        return [name]
    found = sorted(str(file) for file in path.rglob("*") if file.is_file())
    if not found:
        raise ExaminationError(f"{name} is a folder without files")
    if len(found) > MOST_FILES:
        raise ExaminationError(f"{name} holds {len(found)} files; name those of the run that died")
    return found


def _versions(told: dict[str, Fact]) -> dict[str, str]:
    """Releases of distributions that the text tells."""
    packages = told.get("packages")
    versions = {d.name: d.version for d in packages.distributions.values()} if isinstance(packages, Packages) else {}
    for name, kind in (("torch", Torch), ("deepspeed", DeepSpeed)):
        section = told.get(name)
        if isinstance(section, kind):
            versions[name] = section.version
    return versions


def _of_those_versions(log: Log, versions: dict[str, str], signatures: Signatures) -> Log:
    """Without the matches of signatures that are of other releases than the text tells."""
    limits = {s.id: s.versions for s in signatures.parsed() if s.versions}
    kept = tuple(m for m in log.matches if not _contradicts(limits.get(m.signature, {}), versions))
    return msgspec.structs.replace(log, matches=kept, versions=versions)


def _contradicts(limits: dict[str, str], versions: dict[str, str]) -> bool:
    if not limits.keys() & versions.keys():
        return False
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    for name, limit in limits.items():
        try:
            if name in versions and not SpecifierSet(limit).contains(Version(versions[name]), prereleases=True):
                return True
        except (InvalidSpecifier, InvalidVersion):
            continue
    return False
