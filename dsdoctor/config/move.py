"""A member of a ds_config at another place: the change of its text, which leaves comments and the order of the rest. Pure."""

import json
from collections.abc import Sequence

from dsdoctor.readers.config_spans import Span

_BLANK = " \t"


def moved(text: str, places: Sequence[Span], key: str, target: str) -> tuple[Span, str, int, str] | None:
    """(the member, what stands in its place, where something is put in, what that is); None when the place is not clear.

    The member goes to the head of the block of ``target``. A block that is not there is made where the member stands.
    """
    found = [place for place in places if place.path == key]
    house, parts = key.rpartition(".")[0], target.split(".")
    if len(found) != 1 or any(place.path == target for place in places):
        return None
    member = found[0]
    value = text[member.value : member.end].rstrip()
    for depth in range(len(parts) - 1, -1, -1):
        block = ".".join(parts[:depth])
        inside = _opening(text, places, block)
        if inside is None:
            if any(place.path == block for place in places):
                return None  # it is there, and no object, or twice
            continue
        made = _nested(parts[depth:], text[member.key : member.key_end], value)
        if block == house and depth < len(parts) - 1:
            return member, made, inside, ""
        return member, "", inside, _first(text, places, block, inside, made, _indent(text, member.key))
    return None


def _opening(text: str, places: Sequence[Span], block: str) -> int | None:
    """The offset behind the brace of ``block``, when it is one object."""
    if not block:
        start = len(text) - len(text.lstrip())
        return start + 1 if text[start : start + 1] == "{" else None
    found = [place for place in places if place.path == block]
    if len(found) != 1 or text[found[0].value : found[0].value + 1] != "{":
        return None
    return found[0].value + 1


def _nested(parts: Sequence[str], name: str, value: str) -> str:
    """``"a": {"b": value}`` for the parts a, b; the last is written as it stood."""
    made = f"{name}: {value}"
    for part in reversed(parts[:-1]):
        made = f"{json.dumps(part)}: {{{made}}}"
    return made


def _indent(text: str, at: int) -> str:
    """The blanks before a member that begins its line; none for another."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if not before.strip(_BLANK) else ""


def _first(text: str, places: Sequence[Span], block: str, inside: int, made: str, old: str) -> str:
    """``made``, which was indented by ``old``, as the first member behind the brace: on a line of its own where the others have one."""
    start = f"{block}." if block else ""
    held = [p for p in places if p.path.startswith(start) and "." not in p.path[len(start) :]]
    if not held:
        return made
    first = min(place.key for place in held)
    new = _indent(text, first)
    if new and text.rfind("\n", 0, first) >= inside:
        head, *lines = made.split("\n")
        shifted = [new + line[len(old) :] if "'''" not in made and line.startswith(old) else line for line in lines]
        return f"\n{new}" + "\n".join([head, *shifted]) + ","
    return f"{made}," if text[inside : inside + 1] in _BLANK else f"{made}, "
