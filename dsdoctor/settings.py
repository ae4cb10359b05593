"""What a project decided once: `[tool.dsdoctor]` of pyproject.toml, or dsdoctor.toml."""

import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from dsdoctor.facts.purpose import PurposeName
from dsdoctor.model import Severity

KEYS = ("ignore", "severity", "fail-on", "nvme", "purpose", "python")
PURPOSES = ("auto", *get_args(PurposeName))
FAIL_ON = ("error", "warning", "never")


class SettingsError(ValueError):
    """The settings cannot be used; the message names the file and the key."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A project's decisions. ``ignored`` maps codes to the reason that was given."""

    ignored: dict[str, str] = {}
    severities: dict[str, Severity] = {}
    fail_on: str | None = None
    nvme: str | None = None
    purpose: str | None = None
    python: str | None = None
    source: str | None = None


def load_settings(start: Path) -> Settings:
    """Settings of the nearest folder at or above ``start`` that has some. Raises SettingsError."""
    for folder in (start, *start.parents):
        for name in ("dsdoctor.toml", "pyproject.toml"):
            table = _table(folder / name)
            if table is not None:
                return parse(table, str(folder / name))
    return Settings()


def parse(table: Mapping[str, Any], source: str) -> Settings:
    """Settings from a parsed table. Raises SettingsError for an unknown key, a wrong value, or an ignore without reason.

    A relative ``nvme``, and a ``python`` that is a relative path, count from the folder of ``source``.
    """
    _known(table, KEYS, "is no setting", source)
    fail_on = table.get("fail-on")
    if fail_on is not None and fail_on not in FAIL_ON:
        raise SettingsError(f"{source}: fail-on is {fail_on!r}; it takes one of {', '.join(FAIL_ON)}")
    purpose = table.get("purpose")
    if purpose is not None and purpose not in PURPOSES:
        raise SettingsError(f"{source}: purpose is {purpose!r}; it takes one of {', '.join(PURPOSES)}")
    return Settings(
        ignored=_ignored(table.get("ignore", []), source),
        severities=_severities(table.get("severity", {}), source),
        fail_on=fail_on,
        source=source,
        purpose=purpose,
        nvme=_place(_text(table.get("nvme"), "nvme", source), source),
        python=_interpreter(_text(table.get("python"), "python", source), source),
    )


def _table(path: Path) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document = tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if path.name == "pyproject.toml":
            return None  # somebody else's file: their tools will complain
        raise SettingsError(f"{path}: {error}") from None
    except OSError as error:
        if path.name == "pyproject.toml":
            return None
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    found = document if path.name == "dsdoctor.toml" else _tool_table(document)
    return found if isinstance(found, dict) else None


def _tool_table(document: Mapping[str, Any]) -> Any:
    tools = document.get("tool")
    return tools.get("dsdoctor") if isinstance(tools, dict) else None


def _ignored(entries: Any, source: str) -> dict[str, str]:
    if not isinstance(entries, list):
        raise SettingsError(f'{source}: ignore is a list of tables such as {{code = "NET001", reason = "..."}}')
    ignored: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, dict):
            _known(entry, ("code", "reason"), "is no part of an ignore entry", source)
        code = entry.get("code") if isinstance(entry, dict) else entry
        reason = entry.get("reason") if isinstance(entry, dict) else None
        if not isinstance(code, str) or not isinstance(reason, str) or not reason.strip():
            raise SettingsError(f"{source}: ignoring {code!r} needs a reason: {{code = {code!r}, reason = '...'}}")
        ignored[code.upper()] = reason
    return ignored


def _severities(entries: Any, source: str) -> dict[str, Severity]:
    if not isinstance(entries, dict):
        raise SettingsError(f'{source}: severity is a table such as {{CUDA003 = "error"}}')
    names = [s.value for s in Severity]
    for code, value in entries.items():
        if value not in names:
            raise SettingsError(f"{source}: severity of {code} is {value!r}; it takes one of {', '.join(names)}")
    return {str(code).upper(): Severity(value) for code, value in entries.items()}


def _known(table: Mapping[str, Any], names: tuple[str, ...], what: str, source: str) -> None:
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            raise SettingsError(f"{source}: {key!r} {what}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _place(path: str | None, source: str) -> str | None:
    """A path of the file, seen from its folder."""
    return None if path is None else os.path.join(os.path.dirname(source), os.path.expanduser(path))


def _interpreter(path: str | None, source: str) -> str | None:
    """The same for a path such as .venv or env/bin/python; a bare name such as python3.11 is looked up on PATH."""
    is_path = path is not None and ("/" in path or os.sep in path or path.startswith((".", "~")))
    return _place(path, source) if is_path else path


def _text(value: Any, name: str, source: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise SettingsError(f"{source}: {name} is {value!r}; it takes a text")
    return value
