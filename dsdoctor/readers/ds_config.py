"""Read a ds_config.json as DeepSpeed does (Hjson: comments, loose keys and commas), with the place of every key.

DeepSpeed opens a path with ``hjson.load`` and takes any other text for base64 (runtime/config.py of 0.19.8).
"""

import base64
import json
import os
import re
from typing import Any, NamedTuple

import msgspec

from dsdoctor.facts import DsConfig
from dsdoctor.readers.hjson import Scanner, Stop
from dsdoctor.readers.opened import content, reason

MOST_BYTES = 4 * 1024 * 1024
STDIN, BASE64 = "<stdin>", "<base64>"  # paths of configs that are no files

_YAML_BLOCK = re.compile(r"^[A-Za-z_][\w-]*:[ \t]*\r?\n[ \t]+[A-Za-z_-]", re.MULTILINE)


def parse(text: str, path: str) -> DsConfig:
    """The config in ``text``; what is wrong with it is told in ``problem``. Never raises."""
    text = text.removeprefix("\ufeff")
    if len(text) > MOST_BYTES:
        return _unusable(
            path, f"it has {len(text):,} characters; a DeepSpeed config has a few thousand", readable=False
        )
    if not text.strip():
        return _unusable(path, "it is empty")
    if _is_yaml(text, path):
        return _unusable(
            path, "it looks like YAML; DeepSpeed reads JSON (an Accelerate file can name it as deepspeed_config_file)"
        )
    scanner = Scanner(text)
    try:
        values = scanner.root()
    except Stop as stopped:
        stop = scanner.blame(stopped)
        line, column = scanner.place(min(stop.offset, len(text)))
        return DsConfig(path=path, problem=str(stop), line=line, column=column, places=scanner.places)
    if not isinstance(values, dict):
        return _unusable(path, f"it holds {_kind(values)}, not an object {{...}}")
    return DsConfig(
        path=path,
        values=values,
        places=scanner.places,
        duplicates=tuple(scanner.duplicates),
        strict_json=_is_strict(text),
    )


class Source(NamedTuple):
    """A config as it was given: its text where there is one that can be shown, and what it says."""

    config: DsConfig
    text: str | None = None


def read(name: str) -> DsConfig:
    """The config in a file, in standard input ("-") or in a base64 argument; what is wrong is told in ``problem``."""
    return source(name).config


def source(name: str) -> Source:
    """The same, with its text. Never raises."""
    try:
        if os.path.isdir(name):
            return Source(_unusable(name, "it is a folder; name the JSON file in it", readable=False))
        data = content(name, MOST_BYTES)
    except FileNotFoundError:
        told = _of_base64(name)
        return told or Source(_unusable(name, "there is no such file", readable=False))
    except (OSError, ValueError) as error:
        return Source(_unusable(name, f"it cannot be read: {reason(error)}", readable=False))
    return _of_bytes(data, STDIN if name == "-" else name)


def _of_bytes(data: bytes, path: str) -> Source:
    if len(data) > MOST_BYTES:
        limit = MOST_BYTES // 2**20
        why = f"it is larger than {limit} MiB; a DeepSpeed config has a few kilobytes"
        return Source(_unusable(path, why, readable=False))
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0\0" in (data[0:4:2], data[1:4:2]):
        return Source(_unusable(path, "it is UTF-16; save it as UTF-8"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        return Source(DsConfig(path=path, problem="it is not UTF-8 text", line=line, column=column))
    return Source(parse(text, path), text)


def _of_base64(name: str) -> Source | None:
    """DeepSpeed takes what is no path for base64 (urlsafe) of a config, and forgives duplicate keys in it."""
    try:
        text = base64.urlsafe_b64decode(name).decode("utf-8")
    except ValueError:
        return None
    if not text.lstrip().startswith("{"):
        return None
    return Source(msgspec.structs.replace(parse(text, BASE64), duplicates=()), text)


def _unusable(path: str, problem: str, *, readable: bool = True) -> DsConfig:
    return DsConfig(path=path, readable=readable, problem=problem)


def _is_yaml(text: str, path: str) -> bool:
    first = text.lstrip()[:3]
    if first[:1] in ("{", "["):
        return False
    return first == "---" or path.lower().endswith((".yaml", ".yml")) or _YAML_BLOCK.search(text) is not None


def _is_strict(text: str) -> bool:
    """True when plain JSON readers (transformers, accelerate) take it too."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")
