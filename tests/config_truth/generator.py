"""Configs as people write them, and as they get them wrong: seeded, so that a case is its number."""

import random
from collections.abc import Iterator
from typing import Any

from dsdoctor_checks.config_keys import GONE, KEYS

_WORDS = ["auto", "true", "5e8", "8", "", "cpu", "nvme", "bf16", "none", "WARN", "None", "1.5", " 2 ", "on"]
_ODD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    7,
    0.5,
    5e8,
    1e30,
    [],
    ["x"],
    [1],
    {},
    {"enabled": True},
    {"x": 1},
]
_HOUSES = sorted({key.rpartition(".")[0] for key in KEYS})
_SWITCHES = [key for key in KEYS if key.endswith(".enabled")]


def _good(chance: random.Random, key: str) -> Any:
    """A value that the table calls right."""
    row = KEYS[key]
    kinds: dict[str, Any] = {"integer": 2 * chance.randint(1, 4), "number": chance.random(), "boolean": chance.random() < 0.5, "null": None,
             "string": "text", "array": [], "object": {}}  # fmt: skip
    if key == "optimizer.type":
        return chance.choice(["Adam", "AdamW", "Lion", "SGD"])
    if key == "scheduler.type":
        return chance.choice(["WarmupLR", "WarmupDecayLR"])
    if row.get("allowed") and "array" not in row["types"]:
        return chance.choice(row["allowed"])
    return kinds[chance.choice(row["types"])]


def _bad(chance: random.Random) -> Any:
    return chance.choice(_ODD) if chance.random() < 0.6 else chance.choice(_WORDS)


def _misspelt(chance: random.Random, name: str) -> str:
    at = chance.randrange(len(name))
    return name[:at] + chance.choice(["", name[at] * 2, "_", "s"]) + name[at + 1 :]


def _put(config: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, name = dotted.split(".")
    here: Any = config
    for parent in parents:
        if not isinstance(here.get(parent), dict):
            here[parent] = {}
        here = here[parent]
    here[name] = value


def _batch(chance: random.Random, ranks: int) -> dict[str, Any]:
    """Batch sizes: mostly a sound choice of the three, sometimes any three numbers."""
    micro, steps = chance.choice([1, 2, 3, 4]), chance.choice([1, 2, 8])
    sound: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": steps,
        "train_batch_size": micro * steps * ranks,
    }
    if chance.random() < 0.1:
        sound = {key: chance.choice([1, 2, 3, 4, 6, 8, 16, 8.0]) for key in sound}
    return {key: value for key, value in sound.items() if chance.random() < 0.7} or {"train_batch_size": 8 * ranks}


def config(number: int) -> tuple[dict[str, Any], int]:
    """The config of this number, and on how many ranks it runs."""
    chance = random.Random(number)
    ranks = chance.choice([1, 1, 2, 4])
    made = _batch(chance, ranks) if chance.random() < 0.97 else {}
    sick = chance.random() < 0.6
    for house in chance.sample(_HOUSES, chance.randint(0, 3)) + ["zero_optimization"] * (chance.random() < 0.6):
        keys = [key for key in KEYS if key.rpartition(".")[0] == house]
        for key in chance.sample(keys, min(len(keys), chance.randint(1, 5))):
            _put(made, key, _good(chance, key))
    for key in chance.sample(_SWITCHES, chance.choice([0, 0, 1, 2])):
        _put(made, key, True)
    if chance.random() < 0.7:
        _put(made, "zero_optimization.stage", chance.choice([0, 1, 2, 3]))
    for _ in range(1 if sick else 0):
        _spoil(chance, made)
    return made, ranks


def _spoil(chance: random.Random, made: dict[str, Any]) -> None:
    """One mistake: a value of another kind, a word misspelt, a leftover of an old release."""
    kind = chance.random()
    key = chance.choice(list(KEYS))
    if kind < 0.6:
        _put(made, key, _bad(chance))
    elif kind < 0.85:
        house, _, name = key.rpartition(".")
        _put(made, f"{house}.{_misspelt(chance, name)}" if house else _misspelt(chance, name), _good(chance, key))
    else:
        _put(made, chance.choice(list(GONE)), _bad(chance))


def configs(count: int, start: int = 0) -> Iterator[tuple[int, dict[str, Any], int]]:
    for number in range(start, start + count):
        yield (number, *config(number))


def one_odd_value_each() -> Iterator[tuple[int, dict[str, Any], int]]:
    """Every key of the table by itself, with every odd value."""
    for number, (key, value) in enumerate((key, value) for key in KEYS for value in (*_ODD, *_WORDS)):
        made: dict[str, Any] = {"train_micro_batch_size_per_gpu": 1}
        _put(made, key, value)
        yield number, made, 1
