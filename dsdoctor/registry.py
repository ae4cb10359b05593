"""Find the check families that are installed, and choose among their checks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from dsdoctor.knowledge import CapabilitySpec, CauseInfo, Knowledge
from dsdoctor.model import Check
from dsdoctor.plugins import Plugin, plugins

CHECKS_GROUP = "dsdoctor.checks"
KNOWLEDGE_GROUP = "dsdoctor.knowledge"
_HOOKS = ("guess_purpose", "describe_platform")
_OWN = "dsdoctor"


class NothingInstalled(RuntimeError):
    """No check family is installed: a source tree without an install. The doctor has nothing to say, so it must not say healthy."""


class UnknownSelection(ValueError):
    """A code or family in --only/--skip that no installed check has."""


def load(named: str = "") -> Knowledge:
    """Load every installed plug-in, or of our own check families only those whose entry point begins with ``named``, and what
    their findings need. One that fails to load is reported in ``problems`` and left out.

    Raises NothingInstalled when no check was found, and ValueError when two checks share a code.
    """
    checks: list[Check] = []
    causes: list[Mapping[str, CauseInfo]] = []
    capabilities: list[CapabilitySpec] = []
    hooks: dict[str, Any] = {}
    signatures: list[Callable[[], Iterable[str]]] = []
    problems: list[str] = []
    installed = plugins(CHECKS_GROUP, KNOWLEDGE_GROUP)
    wanted = [e for e in installed[CHECKS_GROUP] if e.package != _OWN or e.name.startswith(named)]
    for entry in wanted:
        module = _module(entry, problems)
        if module is not None:
            checks += checks_of(module)
    for entry in installed[KNOWLEDGE_GROUP]:
        module = _module(entry, problems)
        if module is not None:
            causes.append(getattr(module, "causes", dict)())
            if not named:  # some checks do not tell what can run
                capabilities += getattr(module, "CAPABILITIES", ())
                hooks |= {"ops": module.ops} if hasattr(module, "ops") else {}
            if hasattr(module, "signatures"):
                signatures.append(module.signatures)
            hooks |= {name: getattr(module, name) for name in _HOOKS if hasattr(module, name)}
    if not checks:
        raise NothingInstalled(f"no checks are installed (entry-point group {CHECKS_GROUP}): install dsdoctor with pip")
    codes = [c.code for c in checks]
    twice = {c for c in codes if codes.count(c) > 1}
    if twice:
        raise ValueError(f"two checks share a code: {', '.join(sorted(twice))}")
    return Knowledge(
        checks=tuple(sorted(checks, key=lambda c: c.code)),
        causes=next(iter(causes))
        if len(causes) == 1
        else {slug: info for rows in causes for slug, info in rows.items()},
        capabilities=tuple(capabilities),
        signatures=tuple(signatures),
        problems=tuple(problems),
        **hooks,
    )


def checks_of(module: ModuleType) -> list[Check]:
    """The Check objects defined in a module, in the order of their codes."""
    return sorted((v for v in vars(module).values() if isinstance(v, Check)), key=lambda c: c.code)


def select(checks: Iterable[Check], only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Check, ...]:
    """Checks whose code or family is in ``only`` (all when empty) and not in ``skip``. Raises UnknownSelection."""
    pool = tuple(checks)
    names = {c.code for c in pool} | {c.family for c in pool}
    wanted, unwanted = {o.upper() for o in only}, {s.upper() for s in skip}
    strangers = sorted((wanted | unwanted) - names)
    if strangers:
        import difflib

        near = difflib.get_close_matches(strangers[0], sorted(names), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UnknownSelection(f"no check or family is called {', '.join(strangers)}{hint}; see `dsdoctor list`")
    return tuple(
        c
        for c in pool
        if (not wanted or c.code in wanted or c.family in wanted)
        and c.code not in unwanted
        and c.family not in unwanted
    )


def _module(entry: Plugin, problems: list[str]) -> ModuleType | None:
    try:
        return import_module(entry.module)
    except Exception as error:  # a broken plug-in must not silence the others
        problems.append(f"plug-in {entry.name} ({entry.module}) could not be loaded: {type(error).__name__}: {error}")
        return None
