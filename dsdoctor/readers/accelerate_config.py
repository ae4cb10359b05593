"""An Accelerate config in YAML, in the form in which ``accelerate config`` writes it, or as ``accelerate env`` shows it.

Accelerate writes with ``yaml.safe_dump`` (accelerate/commands/config/config_args.py of 1.15): one key a line, blocks indented
by blanks, ``{}`` and ``[]`` for what is empty, "- item" lists. That is what is read here, with comments. Not taken: anchors,
tags, other flow collections, several documents, block scalars and values that run over several lines; the first of
these ends the reading with a ``problem``. Values follow YAML 1.1 as PyYAML resolves them (1e-5 is a text there, no is false).
"""

import ast
import re
import warnings
from typing import Any

from dsdoctor.facts.accelerate_config import AccelerateConfig
from dsdoctor.readers import pasted, regex

KEYS = frozenset({
    "compute_environment", "distributed_type", "deepspeed_config", "debug", "downcast_bf16", "dynamo_config", "dynamo_backend",
    "enable_cpu_affinity", "fsdp_config", "gpu_ids", "machine_rank", "main_process_ip", "main_process_port", "main_training_function",
    "megatron_lm_config", "mixed_precision", "num_machines", "num_processes", "rdzv_backend", "same_network", "tpu_env", "use_cpu",
})  # fmt: skip
LEAST_KEYS = 3  # known ones, at one margin: fewer are some other YAML
MOST_LINES = 2000
DEEPEST = 20
_KEY = regex.compile(r"^( *)([A-Za-z_][\w.-]{0,99}|'[^']{1,99}'|\"[^\"]{1,99}\"):(?: +(.*))?$")
_ITEM = regex.compile(r"^( *)- +?(.*)$")
_SHOWN = regex.compile(r"^\s*- ([a-z_]\w*): ?(.*)$")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "{}": {}, "[]": []}
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_INT = regex.compile(r"[-+]?(?:0|[1-9]\d{0,30})")
_FLOAT = regex.compile(r"[-+]?\d{1,30}\.\d{0,30}(?:[eE][-+]\d{1,3})?|\.(?:inf|nan)")
_REFUSED = ("&", "*", "!", "{", "[", "|", ">", "%", "@", "`")


class _Unread(Exception):
    """A form that is not taken."""


def parse(text: str, path: str) -> AccelerateConfig | None:
    """The first Accelerate config in a text; None when it holds none. Never raises."""
    return read(pasted.numbered(text), path)


def read(lines: list[tuple[int, str]], path: str) -> AccelerateConfig | None:
    """The same, of numbered lines that are clean already."""
    at = _begin(lines)
    if at is None:
        return None
    if _SHOWN.match(lines[at][1]):
        return _shown(lines[at : at + MOST_LINES], path)
    return _yaml(lines[at : at + MOST_LINES], path)


def _begin(lines: list[tuple[int, str]]) -> int | None:
    """Where the first key of a config stands."""
    known = [n for n, (_, line) in enumerate(lines) if ":" in line and _known(line)]
    for first, last in zip(known, known[LEAST_KEYS - 1 :], strict=False):
        if last - first < 60:
            return first
    return None


def _known(line: str) -> bool:
    return line.strip().removeprefix("- ").partition(":")[0] in KEYS


def _shown(lines: list[tuple[int, str]], path: str) -> AccelerateConfig:
    """``accelerate env``: a row a key, values as Python writes them."""
    values: dict[str, Any] = {}
    places: dict[str, tuple[int, int]] = {}
    for number, line in lines:
        row = _SHOWN.match(line)
        if row is None or row.group(1) in values:
            break
        values[row.group(1)] = _literal(row.group(2).strip())
        places[row.group(1)] = (number, row.start(1) + 1)
    return AccelerateConfig(path=path, values=values, places=places)


def _literal(value: str) -> Any:
    """A value as Python's repr writes it; what is none stays a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is no concern of the reader
            return ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


def _yaml(lines: list[tuple[int, str]], path: str) -> AccelerateConfig:
    margin = len(lines[0][1]) - len(lines[0][1].lstrip())
    values: dict[str, Any] = {}
    places: dict[str, tuple[int, int]] = {}
    open_at: list[tuple[int, str, dict[str, Any]]] = [(margin, "", values)]  # indentation, dotted prefix, mapping
    waiting: tuple[dict[str, Any], str, str, int] | None = (
        None  # a key whose block may follow: owner, key, dotted, indentation
    )
    problem = None
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        try:
            if (item := _ITEM.match(line)) and waiting is not None and len(item.group(1)) >= waiting[3]:
                _append(waiting[0], waiting[1], _scalar(item.group(2)))
                continue
            key = _KEY.match(line)
            if key is None or len(key.group(1)) < margin:
                break
            waiting = _take(key, number, open_at, waiting, places)
        except _Unread as stop:
            problem = f"line {number}: {stop}"
            break
    return AccelerateConfig(path=path, values=values, places=places, problem=problem)


def _take(
    key: re.Match[str], number: int, open_at: list[tuple[int, str, dict[str, Any]]],
    waiting: tuple[dict[str, Any], str, str, int] | None, places: dict[str, tuple[int, int]],
) -> tuple[dict[str, Any], str, str, int] | None:  # fmt: skip
    """Put one key where its indentation says; what it leaves open."""
    indent, name = len(key.group(1)), key.group(2).strip("'\"")
    if waiting is not None and indent > waiting[3]:
        if len(open_at) > DEEPEST:
            raise _Unread(f"the nesting is deeper than {DEEPEST} levels")
        inner: dict[str, Any] = {}
        waiting[0][waiting[1]] = inner
        open_at.append((indent, f"{waiting[2]}.", inner))
    while len(open_at) > 1 and indent < open_at[-1][0]:
        open_at.pop()
    if indent != open_at[-1][0]:
        raise _Unread("the indentation fits no key above")
    _, prefix, owner = open_at[-1]
    owner[name] = _scalar(key.group(3) or "")
    places[prefix + name] = (number, indent + 1)
    return (owner, name, prefix + name, indent) if owner[name] is None else None


def _append(owner: dict[str, Any], key: str, value: Any) -> None:
    if not isinstance(owner[key], list):
        owner[key] = []
    owner[key].append(value)


def _scalar(written: str) -> Any:
    """A value as PyYAML's safe_load resolves it."""
    value = re.sub(r"(?:^|\s)#.*$", "", written).strip() if written[:1] not in ("'", '"') else written.strip()
    if quoted := re.fullmatch(r"'((?:[^']|'')*)'(?:\s+#.*)?", value):
        return quoted.group(1).replace("''", "'")
    if quoted := re.fullmatch(r'"((?:[^"\\]|\\.)*)"(?:\s+#.*)?', value):
        return _literal(f'"{quoted.group(1)}"')
    if value.lower() in _WORDS:
        word = _WORDS[value.lower()]
        return type(word)() if word is not None else None
    if value.lower() in _TRUE or value.lower() in _FALSE:
        return value.lower() in _TRUE
    if _INT.fullmatch(value):
        return int(value)
    if _FLOAT.fullmatch(value):
        return float(value.lstrip("."))
    if value.startswith(_REFUSED) or value[:1] in ("'", '"'):
        raise _Unread(f"a value that begins with {value[:1]} is not read here")
    return value
