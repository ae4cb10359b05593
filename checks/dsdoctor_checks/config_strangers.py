"""A key that nobody reads: what was meant by it, and the mend. For the checks of config.py."""

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import ConfigEdit, DsConfig, Finding, Severity
from dsdoctor_checks.config_edits import move, remove, rename
from dsdoctor_checks.config_keys import KEYS, REFUSE, children, evidence, homes_of, nearest, plain, remedy, shown
from dsdoctor_checks.config_types import type_problem

_MOST = 100  # strangers told one by one: a file with more is no ds_config
_MOST_HOMES = 3
_ANY = {"types": ["integer", "number", "boolean", "string", "array", "object"]}  # of parameters of an optimizer


def _homes(config: DsConfig, name: str, key: str) -> list[str]:
    """Where a misplaced key belongs: places that take a value like its own, at most three."""
    value = config.get(f"{name}.{key}" if name else key)
    found = [place for place in homes_of(name, key) if type_problem(place, value, KEYS.get(place, _ANY)) is None]
    return found if len(found) <= _MOST_HOMES else []


class _Meant(NamedTuple):
    """What a key that nobody reads was to be, and the mend."""

    said: str
    order: str
    edits: tuple[ConfigEdit, ...] = ()
    home: str | None = None


def _meant(config: DsConfig, name: str, key: str, dotted: str) -> _Meant:
    homes = _homes(config, name, key)
    if not homes:
        near = nearest(key, list(children(name)))
        if near is None:
            return _Meant("DeepSpeed has no such key", f"Remove {plain(dotted)}")
        return _Meant(f"did you mean {near}?", f"Rename it to {near}", rename(config, dotted, near))
    home = " or ".join(homes)
    there = config.get(home) if home in config.places else None
    if there is None:
        moved = move(config, dotted, home) if len(homes) == 1 else ()
        return _Meant(f"it belongs at {home}", f"Move it to {home}", moved, home)
    same = there == config.get(dotted)
    order = (
        f"Remove it: {home} is {shown(there)} already"
        if same
        else f"Remove it, or set {home} to {shown(config.get(dotted))}"
    )
    said = f"its place is {home}, which is {shown(there)} ({config.where(home)})"
    return _Meant(said, order, remove(config, dotted) if same else (), home)


def strangers(config: DsConfig, found: list[tuple[str, str]]) -> Iterator[Finding]:
    """Keys that nobody reads, each as (block, key), with the names that were meant."""
    for name, key in found[:_MOST]:
        yield _stranger(config, name, key)
    if rest := found[_MOST:]:
        first = ".".join(filter(None, rest[0]))
        yield Finding(
            message=f"{config.where(first)}: from {plain(first)} on {len(rest)} more keys are none that DeepSpeed reads",
            cause="config-unknown-key-silent",
            severity=Severity.WARNING,
            evidence=evidence(config, first),
            remedy=remedy(config, "Name the file that is meant for DeepSpeed"),
        )


def _stranger(config: DsConfig, name: str, key: str) -> Finding:
    severity = Severity.ERROR if name in REFUSE else Severity.WARNING
    cause = "config-unknown-zero-key" if name in REFUSE else "config-unknown-key-silent"
    dotted = f"{name}.{key}" if name else key
    meant = _meant(config, name, key, dotted)
    effect = "DeepSpeed stops at it" if severity is Severity.ERROR else "DeepSpeed ignores it without a word"
    return Finding(
        message=f"{config.where(dotted)}: {plain(dotted)} is no key that DeepSpeed reads there ({effect}); {meant.said}",
        cause="config-misplaced-section" if meant.home else cause,
        subject=plain(dotted),
        evidence=evidence(config, dotted),
        severity=severity,
        remedy=remedy(config, f"{meant.order} ({config.where(dotted)})", meant.edits),
    )
