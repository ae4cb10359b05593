"""The line that matters in what a compiler, linker or builder printed."""

import re
from collections.abc import Iterator

LONGEST = 500
# Source: gcc 12.2, clang 14.0, nvcc 13.0, GNU ld and gold 2.40, ninja 1.11 and 1.13, torch 2.13, run by hand on 2026-11-30:
# fixtures/transcripts.
_KILLED = re.compile(
    r"^Killed$|: line \d+: +\d+ Killed|fatal error: Killed|Killed \(program |signal 9\b|execute command: Killed$",
    re.MULTILINE,
)
_DIED = r"(Segmentation fault|Bus error|Aborted|Illegal instruction|Killed)( \(core dumped\))?"
# In order of trust: compilers say "error:" at the start or after a place, ld says what it cannot find, shells say who died,
# nvcc's last word comes after its host compiler's.
_ERRORS = (
    re.compile(r"(?:^|[\s)])(?:fatal |internal compiler )?error\s*(?:#\d+(?:-D)?)?\s*:|(?:ptxas|nvlink) fatal\s*:"),
    re.compile(
        r"cannot find (?:-l|.*: No such file)|undefined reference|file not recognized|cannot open|final link failed"
    ),
    re.compile(
        rf"^{_DIED}$|: line \d+: +\d+ {_DIED}|command not found|not found$|No such file or directory|Permission denied"
        r"|No space left|nvcc fatal\s*:"
    ),
)
_EXCEPTION = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b: ")
_ECHO = re.compile(
    r"^ninja: (?!error|fatal)|^FAILED: |^collect2: error: ld returned|^subprocess\.CalledProcessError"
    r"|^RuntimeError: Error building extension|^In file included from|\bwarning\s*(?:#\S+\s*)?:|\[WARNING\]|\bnote: |^from \S+:\d+[:,]$"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def first_error(text: str) -> str | None:
    """The first line that names an error, without what only repeats one; else the last exception. None when none does."""
    lines = list(_lines(text))
    for pattern in _ERRORS:
        for line in lines:
            if (named := pattern.search(line)) and not _EXCEPTION.match(line):
                return _cut(line, named.start())
    return next((line[:LONGEST] for line in reversed(lines) if _EXCEPTION.match(line)), None)


def killed(text: str) -> bool:
    """A compiler was killed, which only the kernel does on its own: memory ran out."""
    return any(_KILLED.search(line) for line in _lines(text))


def _lines(text: str) -> Iterator[str]:
    """What somebody said: no echoed command line, no frame of a traceback, no colour."""
    trace = failed = False
    for line in _COLOUR.sub("", text).splitlines():
        stripped = line.strip()
        echoed, failed = failed, stripped.startswith("FAILED: ")  # ninja repeats the command below it
        trace = stripped.startswith("Traceback (most recent") or (trace and line.startswith(" "))
        if stripped and not (echoed or trace or _ECHO.search(stripped) or _command(stripped)):
            yield stripped


def _command(line: str) -> bool:
    """An echoed command line: "[1/3] /usr/bin/nvcc -D..." or the compiler with its flags."""
    return bool(re.match(r"\[\d+/\d+\] |[^\s:]*(?:c\+\+|g\+\+|gcc|clang|nvcc)[^\s:]* .*(?<=\s)-", line))


def _cut(line: str, at: int) -> str:
    """At most LONGEST characters of a line, those around ``at`` among them."""
    return line if len(line) <= LONGEST else line[max(0, at - LONGEST // 2) :][:LONGEST]
