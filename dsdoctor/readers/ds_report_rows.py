"""The lines of a ds_report: op rows, information rows, and the warnings between them."""

import re
from collections.abc import Iterable

from dsdoctor.facts import DsOp
from dsdoctor.readers import regex

KEEP = 2000  # characters of one value or message
_MOST_WARNINGS = 200

ROW = regex.compile(
    r"(?<![\w-])([A-Za-z](?:\w|\\_|-){0,60})\s[.\u2026]*\s*\\?\[(YES|NO)\\?\]\s*[.\u2026]+\s*\\?\[(OKAY|NO)\\?\]"
)
_NINJA = regex.compile(r"(?<![\w-])ninja\s*[.\u2026]+\s*\\?\[(OKAY|FAIL)\\?\]")
_OP_HEADER = regex.compile(r"op name\s*[.\u2026]+\s*installed\s*[.\u2026]+\s*compatible")
TITLE = "extension op report"
INFO_TITLE = "general environment info"
_KEYS = (
    "torch install path", "torch version", "torch cuda version", "torch hip version", "nvcc version",
    "deepspeed install path", "deepspeed info", "deepspeed wheel compiled w.", "torch_npu install path",
    "torch_npu version", "ascend_cann version", "shared memory (/dev/shm) size",
)  # fmt: skip
KNOWN_KEY = regex.compile(
    r"(?<![\w.])(" + "|".join(re.escape(k) for k in _KEYS) + r")\s?(?:\.{2,}|\u2026[.\u2026]*)\s?"
)
_OTHER_KEY = regex.compile(r"^\s*([A-Za-z][\w /()-]{1,40}?\.?) (?:\.{2,}|\u2026[.\u2026]*) (.*)$")
_WARNING = regex.compile(r"^\s*\[WARNING\]\s+(.*)$")
_CHECK_FAILED = regex.compile(r"(\w+) compatibility check failed \((.*)\), treating the op as not compatible")
_ACCELERATOR = regex.compile(r"Setting ds_accelerator to (\w{1,20})")
_FALLBACK = "Setting accelerator to CPU"
NO_RUNTIME = regex.compile(r"No CUDA runtime is found(?:, using CUDA_HOME='([^']*)')?")


class Reading:
    """What was met so far, going down the lines of one report."""

    def __init__(self) -> None:
        self.ops: dict[str, DsOp] = {}
        self.info: dict[str, str] = {}
        self.general: list[str] = []
        self.pending: list[str] = []  # warnings that wait for the row of their op
        self.by_name: dict[str, list[str]] = {}  # warnings that name their op
        self.ninja: bool | None = None
        self.accelerator: str | None = None
        self.fallback = self.in_info = self.op_header = self.title = False

    @classmethod
    def of(cls, lines: Iterable[str]) -> "Reading":
        reading = cls()
        for line in lines:
            reading.take(line)
        return reading

    def take(self, line: str) -> None:
        """Look at one line; an unknown one is noise."""
        if "[" in line:
            self._bracketed(line)
        if ".." in line or "\u2026" in line:
            self._information(line)
            self.op_header = self.op_header or bool(_OP_HEADER.search(line))
        if "accelerator" in line:
            self._accelerator(line)
        if TITLE in line:
            self.title = True
            self._flush()
        elif INFO_TITLE in line:
            self.in_info = True
            self._flush()
        elif runtime := NO_RUNTIME.search(line):
            self._general(runtime.group(0))
        elif failed := _CHECK_FAILED.search(line):
            self.by_name.setdefault(failed.group(1), []).append(failed.group(0))

    def _bracketed(self, line: str) -> None:
        if warning := _WARNING.match(line):
            (self.general if self.in_info else self.pending).append(warning.group(1).strip()[:KEEP])
            del self.pending[_MOST_WARNINGS:], self.general[_MOST_WARNINGS:]
        elif ninja := _NINJA.search(line):
            self.ninja = ninja.group(1) == "OKAY"
        for name, installed, compatible in ROW.findall(line):
            name = name.replace("\\_", "_")
            if name != "ninja":
                self.ops[name] = DsOp(
                    name=name, installed=installed == "YES", compatible=compatible == "OKAY", warnings=(*self.pending,)
                )
                self.pending.clear()

    def _information(self, line: str) -> None:
        marks = list(KNOWN_KEY.finditer(line))
        for mark, following in zip(marks, [*marks[1:], None], strict=False):
            value = line[mark.end() : following.start() if following else None]
            self.info[mark.group(1)] = value.strip()[:KEEP]
        if not marks and self.in_info and len(self.info) < 100 and (other := _OTHER_KEY.match(line)):
            self.info[other.group(1)] = other.group(2).strip()[:KEEP]

    def _accelerator(self, line: str) -> None:
        if chosen := _ACCELERATOR.search(line):
            self.accelerator = chosen.group(1)
        self.fallback = self.fallback or _FALLBACK in line

    def _general(self, text: str) -> None:
        if text not in self.general and len(self.general) < _MOST_WARNINGS:
            self.general.append(text[:KEEP])

    def _flush(self) -> None:
        for text in self.pending:
            self._general(text)
        self.pending.clear()

    def rows(self) -> tuple[DsOp, ...]:
        """The op rows, with the warnings that named them; ends the reading."""
        self._flush()
        return tuple(
            DsOp(name=o.name, installed=o.installed, compatible=o.compatible, warnings=(*o.warnings, *extra))
            if (extra := self.by_name.get(o.name))
            else o
            for o in self.ops.values()
        )
