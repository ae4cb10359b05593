"""What may be sent to this stdout."""

import os
import sys


def columns() -> int:
    """The width of the terminal; where there is none, COLUMNS or 100."""
    if sys.stdout.isatty():
        import shutil

        return shutil.get_terminal_size((80, 24)).columns
    wish = os.environ.get("COLUMNS", "")
    return int(wish) if wish.isascii() and wish.isdigit() and int(wish) > 0 else 100


def colour(terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "") not in ("", "0", "false") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def takes(encoding: str | None, character: str) -> bool:
    try:
        character.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def forget_stdout() -> None:
    """Send what is still to be written to nowhere, so that Python's last flush does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
