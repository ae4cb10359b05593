"""The user's ds_config.json by itself: is it readable, and does it say only what DeepSpeed reads?

Source of the rules: runtime/config.py and the pydantic models of deepspeed 0.19.8, run and read on 2026-11-30.
"""

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import DeepSpeed, DsConfig, Evidence, Finding, Severity, check, not_applicable, unknown
from dsdoctor_checks.config_keys import (
    GONE,
    KEYS,
    REFUSE,
    TABLE,
    blocks,
    children,
    evidence,
    home_of,
    nearest,
    newer_than_table,
    parsed,
    plain,
    release,
    remedy,
    row,
    shown,
    whole,
)

_PLACES = "config-syntax", "config-path-not-found"


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
        remedy=remedy(config, "Name the right file" if lost else f"Mend the text at {at}"),
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
            remedy=remedy(config, f"Keep one {plain(key)} in {config.path}"),
        )


def _stranger(config: DsConfig, name: str, key: str, cause: str, severity: Severity) -> Finding:
    """A key that nobody reads in block ``name``, with the name that was meant."""
    dotted = f"{name}.{key}" if name else key
    near, home = nearest(key, list(children(name))), home_of(key)
    moved = home is not None and near is None
    meant = f"did you mean {near}?" if near else f"it belongs at {home}" if moved else "DeepSpeed has no such key"
    effect = "DeepSpeed stops at it" if severity is Severity.ERROR else "DeepSpeed ignores it without a word"
    order = f"Rename it to {near}" if near else f"Move it to {home}" if moved else f"Remove {plain(dotted)}"
    return Finding(
        message=f"{plain(dotted)} is no key that DeepSpeed reads there ({effect}); {meant}",
        cause="config-misplaced-section" if moved else cause,
        subject=plain(dotted),
        evidence=evidence(config, dotted),
        severity=severity,
        remedy=remedy(config, f"{order} ({config.where(dotted)})"),
    )


@check(
    "CFG003",
    "Every top-level key is one that DeepSpeed reads",
    causes=["config-unknown-key-silent", "config-misplaced-section"],
    severity=Severity.WARNING,
)
def top_keys_are_known(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Finding]:
    """DeepSpeed ignores unknown top-level keys: with "zero_optimisation" a run goes on without ZeRO and says nothing."""
    known = children("")
    strangers = [key for key in parsed(config).values if key not in known]
    if strangers and newer_than_table(deepspeed):
        unknown(
            f"this DeepSpeed is newer than the table ({TABLE['about']['deepspeed']}), which lacks {plain(strangers[0])}"
        )
    for key in strangers:
        yield _stranger(config, "", key, "config-unknown-key-silent", Severity.WARNING)


@check(
    "CFG004",
    "Every key of a section is one that DeepSpeed reads there",
    causes=["config-unknown-zero-key", "config-unknown-key-silent", "config-misplaced-section"],
    guards=["config"],
)
def section_keys_are_known(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Finding]:
    """Some sections (zero_optimization, fp16, bf16, monitors) stop at an unknown key, the others ignore it."""
    found = [(name, key) for name, held in blocks(parsed(config)) for key in held if key not in children(name)]
    if found and newer_than_table(deepspeed):
        unknown(
            f"this DeepSpeed is newer than the table ({TABLE['about']['deepspeed']}), which lacks {plain('.'.join(found[0]))}"
        )
    for name, key in found:
        stops = name in REFUSE
        cause = "config-unknown-zero-key" if stops else "config-unknown-key-silent"
        yield _stranger(config, name, key, cause, Severity.ERROR if stops else Severity.WARNING)


_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}
_SAID = {"boolean": "true or false", "integer": "a whole number", "object": "an object {...}", "array": "a list [...]",
         "number": "a number", "string": "a text", "null": "null"}  # fmt: skip


def _type_problem(key: str, value: Any, types: list[str]) -> tuple[str, Severity] | None:
    """Cause and severity when DeepSpeed cannot use, or only bends, a value of this kind."""
    kind = "null" if value is None else _KINDS.get(type(value), "string")
    strict = key.rpartition(".")[0] in REFUSE
    bent = Severity.WARNING if strict else Severity.ERROR
    if kind == "integer" and "boolean" in types and not {"integer", "number"} & set(types):
        taken = value in (0, 1) if strict else "object" not in types
        return None if taken else ("config-wrong-type", Severity.ERROR)
    if kind in types or value == "auto" or (kind == "integer" and "number" in types):
        return None
    if kind == "number" and "integer" in types and whole(value) is not None:
        return None
    if kind == "null" and not (strict or "object" in types):
        return None
    if kind == "boolean" and {"integer", "number"} & set(types):
        return "config-wrong-type", Severity.WARNING
    if (
        kind == "string"
        and "boolean" in types
        and value.lower() in ("true", "false", "yes", "no", "on", "off", "0", "1")
    ):
        return "config-bool-as-string", bent
    if kind == "string" and {"integer", "number"} & set(types):
        try:
            float(value)
        except ValueError:
            return "config-wrong-type", Severity.ERROR
        if whole(value) is None:
            return "config-sci-notation-string", Severity.ERROR if "integer" in types else bent
        return "config-number-as-string", bent
    severe = strict or {"object", "array"} & {kind, *types}
    return ("config-wrong-type", Severity.ERROR) if severe else None


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
        problem = _type_problem(key, value, entry["types"]) if entry else None
        if entry is None or problem is None:
            continue
        quotes = ", without quotes" if isinstance(value, str) else ""
        wanted = " or ".join(_SAID[kind] for kind in entry["types"])
        yield Finding(
            message=f"{key} is {shown(value)}; DeepSpeed wants {wanted}",
            cause=problem[0],
            subject=key,
            evidence=evidence(config, key),
            severity=problem[1],
            remedy=remedy(config, f"Give {key} as {wanted}{quotes} ({config.where(key)})"),
        )


def _number(value: Any) -> Any:
    """A text as the number that pydantic makes of it."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _range_problem(key: str, entry: dict[str, Any], value: Any) -> str | None:
    """What is allowed, when ``value`` is of the right type and not allowed."""
    strict = key.rpartition(".")[0] in REFUSE
    if "items" in entry and isinstance(value, list) and not all(isinstance(item, str) for item in value):
        return "a list of texts"
    if "allowed" in entry and isinstance(value, str | int | float) and not (value == "auto" and strict):
        if not entry["allowed"]:
            return "nothing: leave the key out"
        exact = entry.get("exact")
        allowed = [str(a) if exact else str(a).lower() for a in entry["allowed"]]
        got = str(value) if exact else str(value).lower()
        number = whole(value)
        if got not in allowed and str(number) not in allowed:
            return "one of " + ", ".join(str(a) for a in entry["allowed"])
    value = _number(value) if strict else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for word, wrong in (("least", "<"), ("above", "<="), ("most", ">"), ("below", ">=")):
        limit = entry.get(word)
        if (
            limit is not None
            and {"<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit}[wrong]
        ):
            return {"least": "at least ", "above": "above ", "most": "at most ", "below": "below "}[word] + str(limit)
    return None


@check("CFG006", "Every value is one that is allowed", causes=["config-value-range"], guards=["config"])
def values_are_allowed(config: DsConfig) -> Iterator[Finding]:
    """ZeRO has the stages 0 to 3; offload devices are none, cpu and nvme in lower case; batch sizes are 1 or more."""
    for key in parsed(config).places:
        entry, value = row(key), config.get(key)
        allowed = _range_problem(key, entry, value) if entry else None
        if allowed:
            yield Finding(
                message=f"{key} is {shown(value)}; allowed is {allowed}",
                cause="config-value-range",
                subject=key,
                evidence=evidence(config, key),
                remedy=remedy(config, f"Set {key} to {allowed} ({config.where(key)})"),
            )


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
        gone, entry = GONE.get(key), KEYS.get(key)
        if gone and (not here or here >= release(gone["removed"])):
            stops = gone["effect"] == "error" and bool(here)
            word = f"{key} was removed in DeepSpeed {gone['removed']}" + (
                f"; here is {deepspeed.version}" if deepspeed else ""
            )
        elif entry and entry.get("old"):
            gone, stops, word = entry, False, f"{key} is deprecated"
        else:
            continue
        instead = gone.get("instead")
        yield Finding(
            message=word + (f"; use {instead}" if instead else ""),
            cause="elasticity-config" if key == "elasticity" else "config-deprecated-key",
            subject=key,
            evidence=evidence(config, key),
            severity=Severity.ERROR if stops else Severity.WARNING,
            remedy=remedy(config, f"Replace {key} by {instead}" if instead else f"Remove {key} from {config.path}"),
        )


@check(
    "CFG015",
    "The config is known to this DeepSpeed release",
    causes=["config-unknown-zero-key", "config-unknown-key-silent"],
    severity=Severity.WARNING,
)
def keys_are_not_too_new(config: DsConfig, deepspeed: DeepSpeed | None) -> Iterator[Finding]:
    """A key of a later release is unknown to an older one: ignored at the top level, refused in zero_optimization."""
    if deepspeed is None:
        unknown("the release of DeepSpeed is not known")
    here = release(deepspeed.version)
    for key in parsed(config).places:
        since = KEYS.get(key, {}).get("since")
        if since and here and release(since) > here:
            stops = key.rpartition(".")[0] in REFUSE
            yield Finding(
                message=f"{key} exists since DeepSpeed {since}; {deepspeed.version} is installed at {deepspeed.path}",
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
