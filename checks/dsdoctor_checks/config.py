"""The user's ds_config.json by itself: is it readable, and does it say only what DeepSpeed reads?

Source of the rules: runtime/config.py and the pydantic models of deepspeed 0.19.8, run and read on 2026-11-30.
"""

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    ConfigEdit,
    ConfigWords,
    DeepSpeed,
    DsConfig,
    Evidence,
    Finding,
    Remedy,
    Severity,
    check,
    not_applicable,
    unknown,
)
from dsdoctor_checks.config_edits import current, letters, unquote
from dsdoctor_checks.config_keys import (
    GONE,
    KEYS,
    REFUSE,
    TABLE,
    blocks,
    children,
    evidence,
    newer_than_table,
    parsed,
    plain,
    release,
    remedy,
    row,
    shown,
    taken_here,
)
from dsdoctor_checks.config_strangers import strangers
from dsdoctor_checks.config_types import SAID, range_problem, type_problem

_PLACES = "config-syntax", "config-path-not-found"
_NAME_IT = "Name the right file; DeepSpeed takes one that is not there for base64"
_WRITE_IT = "Save it as JSON in UTF-8: texts in double quotes, a comma between settings, every bracket closed"


@check("CFG001", "The DeepSpeed config can be read", causes=_PLACES, guards=["config"])
def config_is_readable(config: DsConfig) -> Iterator[Finding]:
    """DeepSpeed reads its config as Hjson: JSON that may have comments, bare keys and trailing commas.

    A path that does not exist is taken for base64 and then fails with a message about base64.
    """
    if config.problem is None:
        return
    at = f"{config.path}:{config.line}:{config.column}" if config.line else config.path
    lost = not config.readable
    yield Finding(
        message=f"{at}: {config.problem}",
        cause="config-path-not-found" if lost else "config-syntax",
        evidence=(Evidence(where=at, text=config.problem),),
        remedy=remedy(config, _NAME_IT if lost else _WRITE_IT),
    )


@check("CFG002", "No key of the config stands twice", causes=["config-duplicate-key"], guards=["config"])
def keys_are_unique(config: DsConfig) -> Iterator[Finding]:
    """DeepSpeed refuses a config with a duplicate key: "Duplicate keys in DeepSpeed config"."""
    for key in parsed(config).duplicates:
        yield Finding(
            message=f"{plain(key)} stands twice; the last one is at {config.where(key)} and says {shown(config.get(key))}",
            cause="config-duplicate-key",
            subject=plain(key),
            evidence=evidence(config, key),
            remedy=remedy(
                config, f"Keep one {plain(key)} in {config.path}", (ConfigEdit(action="drop-twins", key=key),)
            ),
        )


@check(
    "CFG003",
    "Every top-level key is one that DeepSpeed reads",
    causes=["config-unknown-key-silent", "config-misplaced-section"],
    severity=Severity.WARNING,
)
def top_keys_are_known(config: DsConfig, deepspeed: DeepSpeed | None, words: ConfigWords | None) -> Iterator[Finding]:
    """DeepSpeed ignores unknown top-level keys: with "zero_optimisation" a run goes on without ZeRO and says nothing.

    With a live probe the DeepSpeed here is asked, too: a key that its config class looks for is no stranger.
    """
    known = children("")
    found = [("", key) for key in parsed(config).values if key not in known and not taken_here(words, key)]
    if found and newer_than_table(deepspeed) and words is None:
        unknown(
            f"this DeepSpeed is newer than the table ({TABLE['about']['deepspeed']}), which lacks {plain(found[0][1])}"
        )
    yield from strangers(config, found)


@check(
    "CFG004",
    "Every key of a section is one that DeepSpeed reads there",
    causes=["config-unknown-zero-key", "config-unknown-key-silent", "config-misplaced-section"],
    guards=["config"],
)
def section_keys_are_known(
    config: DsConfig, deepspeed: DeepSpeed | None, words: ConfigWords | None
) -> Iterator[Finding]:
    """Some sections (zero_optimization, fp16, bf16, monitors) stop at an unknown key, the others ignore it."""
    strange = [(name, key) for name, held in blocks(parsed(config)) for key in held if key not in children(name)]
    found = [(name, key) for name, key in strange if not taken_here(words, f"{name}.{key}")]
    if found and newer_than_table(deepspeed) and words is None:
        unknown(
            f"this DeepSpeed is newer than the table ({TABLE['about']['deepspeed']}), which lacks {plain('.'.join(found[0]))}"
        )
    yield from strangers(config, found)


@check(
    "CFG005",
    "Every value has the type that DeepSpeed wants",
    causes=["config-wrong-type", "config-bool-as-string", "config-number-as-string", "config-sci-notation-string"],
    guards=["config"],
)
def values_have_their_types(config: DsConfig) -> Iterator[Finding]:
    """ "8" is not 8: top-level numbers as text end in a TypeError, "false" as text counts as true, "5e8" is no integer.

    In the sections with a model DeepSpeed bends "2" and "true" into shape; Hugging Face then reports a mismatch.
    """
    for key in parsed(config).places:
        entry, value = row(key), config.get(key)
        problem = type_problem(key, value, entry) if entry else None
        if entry is None or problem is None:
            continue
        quotes = ", without quotes" if isinstance(value, str) else ""
        wanted = " or ".join(SAID[kind] for kind in entry["types"])
        yield Finding(
            message=f"{config.where(key)}: {key} is {shown(value)}; DeepSpeed wants {wanted}",
            cause=problem[0],
            subject=key,
            evidence=evidence(config, key),
            severity=problem[1],
            remedy=remedy(
                config, f"Give {key} as {wanted}{quotes} ({config.where(key)})", unquote(key, value, entry["types"])
            ),
        )


@check("CFG006", "Every value is one that is allowed", causes=["config-value-range"], guards=["config"])
def values_are_allowed(config: DsConfig) -> Iterator[Finding]:
    """ZeRO has the stages 0 to 3; offload devices are none, cpu and nvme in lower case; batch sizes are 1 or more."""
    for key in parsed(config).places:
        entry, value = row(key) or {"types": []}, config.get(key)
        allowed = range_problem(key, value, entry)
        if allowed:
            yield Finding(
                message=f"{config.where(key)}: {key} is {shown(value)}; allowed is {allowed}",
                cause="config-value-range",
                subject=key,
                evidence=evidence(config, key),
                remedy=remedy(
                    config,
                    f"Set {key} to {allowed} ({config.where(key)})",
                    letters(key, value, entry.get("allowed", [])),
                ),
            )


def _stops_at(gone: dict[str, Any], here: tuple[int, ...]) -> bool:
    """True when the release ``here`` refuses a removed key, instead of ignoring it."""
    refused = gone.get("refused", gone["removed"] if gone["effect"] == "error" else None)
    return bool(here) and refused is not None and here >= release(refused)


def _made_current(config: DsConfig, key: str, instead: str | None) -> Remedy:
    edits = current(config, key)
    if any(edit.action == "remove" for edit in edits):
        return remedy(config, f"Remove {key} from {config.path}: it is switched off", edits)
    return remedy(config, f"Replace {key} by {instead}" if instead else f"Remove {key} from {config.path}", edits)


@check(
    "CFG013",
    "No key of the config is deprecated or removed",
    causes=["config-deprecated-key", "elasticity-config"],
    severity=Severity.WARNING,
    guards=["config"],
)
def keys_are_current(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Finding]:
    """Removed sections stop DeepSpeed even when they say {"enabled": false}; deprecated keys only warn, for now."""
    here = release(deepspeed.version) if deepspeed else ()
    for key in parsed(config).places:
        gone, entry = GONE.get(key), KEYS.get(key) or {}
        if gone and (not here or here >= release(gone["removed"])):
            stops = _stops_at(gone, here)
            later = deepspeed is not None and here > release(gone["removed"])
            word = f"{key} was removed in DeepSpeed {gone['removed']}{f' ({deepspeed.version} is here)' if deepspeed and later else ''}"
        elif entry.get("old"):
            gone, stops, word = entry, False, f"{key} is deprecated"
        else:
            continue
        instead = gone.get("instead")
        yield Finding(
            message=f"{config.where(key)}: {word}" + (f"; use {instead}" if instead else ""),
            cause="elasticity-config" if key == "elasticity" else "config-deprecated-key",
            subject=key,
            evidence=evidence(config, key),
            severity=Severity.ERROR if stops else Severity.WARNING,
            remedy=_made_current(config, key, instead),
        )


@check(
    "CFG015",
    "The config is known to this DeepSpeed release",
    causes=["config-unknown-zero-key", "config-unknown-key-silent"],
    severity=Severity.WARNING,
)
def keys_are_not_too_new(config: DsConfig, deepspeed: DeepSpeed | None, words: ConfigWords | None) -> Iterator[Finding]:
    """A key of a later release is unknown to an older one: ignored at the top level, refused in zero_optimization."""
    if deepspeed is None:
        not_applicable(f"no release was named: taken is the newest that is known, {TABLE['about']['deepspeed']}")
    here = release(deepspeed.version)
    for key in parsed(config).places:
        since = (KEYS.get(key) or GONE.get(key) or {}).get("since")
        if since and here and release(since) > here and not taken_here(words, key):
            stops = key.rpartition(".")[0] in REFUSE
            yield Finding(
                message=f"{config.where(key)}: {key} exists since DeepSpeed {since}; here is {deepspeed.version} ({deepspeed.path})",
                cause="config-unknown-zero-key" if stops else "config-unknown-key-silent",
                subject=key,
                evidence=evidence(config, key),
                remedy=remedy(config, f"Upgrade DeepSpeed to {since} or later, or remove {key}"),
            )


@check("CFG016", "Hugging Face can read the config too", causes=["config-syntax"], severity=Severity.INFO)
def file_is_strict_json(config: DsConfig) -> Iterator[Finding]:
    """transformers and accelerate read the file as plain JSON: no comments, bare keys or trailing commas."""
    if parsed(config).strict_json is None:
        not_applicable("the config did not come as a text")
    if config.strict_json is False:
        yield Finding(
            message=f"{config.path} is Hjson: DeepSpeed reads it, transformers and accelerate refuse it",
            cause="config-syntax",
            evidence=(Evidence(where=config.path, text="not plain JSON"),),
            remedy=remedy(config, "Remove comments and trailing commas, and put all keys and texts in double quotes"),
        )
