"""Version numbers as tuples, for checks that compare releases. Local parts (+cu130) and pre-release tags are left out."""

import re

_LENGTH = 4


def release(version: str) -> tuple[int, ...]:
    """(2, 13, 0, 0) for "2.13.0+cu130": always four numbers, so that "2.0" equals "2.0.0"."""
    match = re.match(r"\d+(?:\.\d+)*", version.strip().lstrip("vV"))
    numbers = [int(n) for n in match.group().split(".")] if match else []
    return tuple((numbers + [0] * _LENGTH)[:_LENGTH])


def before(version: str, bound: str) -> bool:
    """True when ``version`` is an older release than ``bound``."""
    return release(version) < release(bound)


def series(version: str) -> str:
    """ "2.13" for "2.13.0+cu130"."""
    return ".".join(str(n) for n in release(version)[:2])
