"""Text from a machine is data: what every renderer does to it before it may reach a screen or a file."""

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """``text`` without terminal escapes and control characters (newline and tab stay)."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def one_line(text: str) -> str:
    """``text`` on one line."""
    return " ".join(clean(text).split())


def cut(text: str, width: int, *, unicode: bool = True) -> str:
    """``text`` on one line of at most ``width`` characters; what is missing shows as an ellipsis."""
    line, sign = one_line(text), "\u2026" if unicode else "..."
    return line if len(line) <= width else line[: max(width - len(sign), 0)] + sign[: max(width, 0)]
