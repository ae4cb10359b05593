"""The line that matters in what a compiler, linker or builder printed."""

import re

# In order of trust: compilers and nvcc say "error:", ld says "cannot find", Python ends with its exception.
# Source: gcc 12, clang 14, nvcc 13.0, GNU ld 2.40, ninja 1.11 run by hand on 2026-11-30.
_ERRORS = (
    re.compile(r"(fatal )?error\b.*?:|: error\b|error\s+:|#error|\berror #?\d+", re.IGNORECASE),
    re.compile(r"cannot find -l|cannot find .*: No such file|undefined reference|file not recognized|cannot open"),
    re.compile(r"command not found|not found$|No such file or directory|Permission denied|No space left"),
    re.compile(r"^\w*(Error|Exception)\b: "),
)
_ECHO = re.compile(
    r"^\s*(ninja: |FAILED: |collect2: |subprocess\.CalledProcessError|RuntimeError: Error building extension)"
)
_WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)


def first_error(text: str) -> str | None:
    """The first line that names an error, without what only repeats one. None when no line does."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _ECHO.search(line) and not _WARNING.search(line) and not _command(line)]
    for pattern in _ERRORS:
        for line in lines:
            if pattern.search(line):
                return line[:500]
    return None


def _command(line: str) -> bool:
    """An echoed command line: "[1/3] /usr/bin/nvcc -D..." or the compiler with its flags."""
    return bool(re.match(r"^\[\d+/\d+\] |^\S*(c\+\+|g\+\+|gcc|clang|nvcc)\S* .*\s-", line))
