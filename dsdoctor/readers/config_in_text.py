"""A DeepSpeed config inside of another text: a pasted file, or what DeepSpeed prints of it when training begins.

DeepSpeed prints it as ``json = {`` with four blanks of indentation (print_user_config in runtime/config.py, 0.3 to 0.19.8), each
line perhaps behind the prefix of a rank.
"""

import msgspec

from dsdoctor.facts import DsConfig
from dsdoctor.readers import ds_config, pasted, regex

MOST_LINES = 2000
MOST_LOOKED = 100_000  # lines, over all braces
KEYS = frozenset({"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"})
_PRINTED = regex.compile(r"^(.*)\bjson = (\{)\s*$")
_BRACES = regex.compile(r'"(?:[^"\\]|\\.)*"|[{}]')
_RANK = regex.compile(r"^(?:\[[\w.-]{1,40}\]:? ?|[\w.-]{1,80}: )(?=\s*[\"}\]{])")
_KEY = regex.compile(rf'"(?:{"|".join(sorted(KEYS))})" ?:')
_PYTHON = regex.compile(r"[:,\[]\s*(?:True|False|None)\b")


def parse(text: str, path: str) -> DsConfig | None:
    """The last config in a text; None when it holds none. Never raises."""
    return read(pasted.numbered(text), path)


def read(lines: list[tuple[int, str]], path: str) -> DsConfig | None:
    """The same, of numbered lines that are clean already. A text that is one broken config gives its ``problem``."""
    if not any(_KEY.search(line) for _, line in lines):
        return None
    looked = 0
    for at in range(len(lines) - 1, -1, -1):
        if "{" not in lines[at][1] or looked > MOST_LOOKED:
            continue
        block, closed = _block(lines, at)
        looked += len(block)
        if closed and (config := _config(block, path)) is not None:
            return config
    return _broken(lines, path)


def _block(lines: list[tuple[int, str]], at: int) -> tuple[list[tuple[int, str]], bool]:
    """The lines from a brace that opens a config to the one that closes it; False when none does."""
    line = lines[at][1]
    printed = _PRINTED.match(line)
    if printed is None and not line.lstrip().startswith("{"):
        return [], False
    first = " " * printed.start(2) + "{" if printed else line
    block, depth = [], 0
    for number, (place, text) in enumerate(lines[at : at + MOST_LINES]):
        row = first if number == 0 else _RANK.sub(lambda m: " " * len(m.group()), text) if printed else text
        for sign in _BRACES.findall(row):
            depth += {"{": 1, "}": -1}.get(sign, 0)
        block.append((place, row))
        if depth <= 0:
            return block, True
    return block, False


def _config(block: list[tuple[int, str]], path: str) -> DsConfig | None:
    if not any(_KEY.search(row) for _, row in block) or any(_PYTHON.search(row) for _, row in block):
        return None
    config = _placed(block, path)
    return config if config.problem is None and KEYS & config.values.keys() else None


def _placed(block: list[tuple[int, str]], path: str) -> DsConfig:
    """The config in these lines, with their own numbers; the columns are those of the cleaned lines."""
    config = ds_config.parse("\n".join(row for _, row in block), path)
    places = {key: (block[line - 1][0], column) for key, (line, column) in config.places.items()}
    stopped = block[config.line - 1][0] if config.line else None
    return msgspec.structs.replace(config, places=places, line=stopped)


def _broken(lines: list[tuple[int, str]], path: str) -> DsConfig | None:
    """The whole text as a config, when it can be nothing else."""
    filled = [row for _, row in lines if row.strip()]
    if not filled or not filled[0].lstrip().startswith("{") or len(lines) > MOST_LINES:
        return None
    if any(_PYTHON.search(row) for row in filled):
        return None
    return _placed(lines, path)
