"""The bytes of what a user named: a file, standard input, or a pipe that may never end."""

import errno
import os
import select
import stat
import sys
import time

PATIENCE_S = 5.0  # for a pipe that stays silent


def content(name: str, most: int) -> bytes:
    """At most ``most`` bytes and one more, so that too much is seen. Raises OSError or ValueError."""
    return sys.stdin.buffer.read(most + 1) if name == "-" else of_file(name, most)


def of_file(name: str, most: int) -> bytes:
    """The same, where "-" is a file like any other."""
    if stat.S_ISFIFO(os.stat(name).st_mode):
        return _piped(name, most)
    with open(name, "rb") as file:
        return file.read(most + 1)


def reason(error: OSError | ValueError) -> str:
    """Why nothing could be read, in the system's words."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _piped(name: str, most: int) -> bytes:
    """What a named pipe or ``<(command)`` gives until its writer closes it."""
    parts: list[bytes] = []
    size, opened = 0, os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        while size <= most:
            part = _part(opened, first=not parts)
            if not part:
                break
            parts.append(part)
            size += len(part)
    finally:
        os.close(opened)
    return b"".join(parts)[: most + 1]


def _part(opened: int, *, first: bool) -> bytes:
    until = time.monotonic() + PATIENCE_S
    while select.select([opened], [], [], max(until - time.monotonic(), 0.0))[0]:
        try:
            part = os.read(opened, 65536)
        except BlockingIOError:
            continue
        if part or not first:
            return part
        time.sleep(0.02)  # no writer yet
        if time.monotonic() > until:
            break
    raise OSError(errno.ETIMEDOUT, f"it is a pipe, and nothing came through it for {PATIENCE_S:.0f} seconds")
