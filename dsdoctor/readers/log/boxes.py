"""Messages that rich broke: under the box of its traceback (accelerate, typer, Lightning) it wraps the message at the box's width.

rich breaks at blanks, and inside of a word that is longer than a line (rich/_wrap.py 15.0.0).
"""

import re

CORNER = "\u256f".encode()  # ends the last line of a box
_LAST_LINE = re.compile("(?P<before>.{0,80}?)(?P<box>\u2570\u2500+\u256f)\\s*")
_MOST = 12  # lines of a message


def unwrapped(lines: list[bytes]) -> list[bytes]:
    """``lines`` with the whole message where its first part stands; the other parts stay, so that lines keep their numbers."""
    whole = list(lines)
    for index, line in enumerate(lines[:-1]):
        if CORNER in line and (box := _LAST_LINE.fullmatch(line.decode("utf-8", "replace"))):
            parts = [part.decode("utf-8", "replace") for part in lines[index + 1 : index + 1 + _MOST]]
            whole[index + 1] = _joined(parts, box["before"], len(box["box"])).encode()
    return whole


def _joined(parts: list[str], before: str, width: int) -> str:
    """The first part and those that follow it only because there was no room; each has ``before`` in front of it."""
    message = parts[0].rstrip()
    last = message.removeprefix(before)
    for part in (part.removeprefix(before).rstrip() for part in parts[1:] if part.startswith(before)):
        if not part.strip() or len(last) + 1 + len(part.split(maxsplit=1)[0]) <= width:
            break
        word = len(last.rsplit(maxsplit=1)[-1]) + len(part.split(maxsplit=1)[0])  # if it was one that rich had to break
        message += ("" if len(last) >= width < word else " ") + part
        last = part
    return message
