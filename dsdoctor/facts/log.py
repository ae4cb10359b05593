"""What the text of a run that died says: known lines, exceptions, ends of processes, and what kinds of text were there."""

from typing import Any, Literal

from dsdoctor.facts.base import Fact

Role = Literal["root", "mask", "collateral", "harmless"]
TextKind = Literal[
    "training-log", "build-log", "ds_report", "collect-env", "accelerate-env", "transformers-env", "package-list",
    "conda-list", "nvidia-smi", "nvcc", "kernel-log", "nccl-debug", "ds_config", "accelerate-config", "text",
]  # fmt: skip


class LogPlace(Fact, frozen=True, kw_only=True):
    """One line of a text: where it stands, who said it and when."""

    file: str
    line: int  # 1-based, as an editor counts
    text: str  # without prefix, terminal escapes and control characters; at most 400 characters
    rank: int | None = None  # of the process that said it, where a prefix or the line tells
    host: str | None = None
    time: str | None = None  # as printed

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


class LogMatch(Fact, frozen=True, kw_only=True):
    """A line that a signature knows; of many lines with the same meaning the first."""

    signature: str
    role: Role
    place: LogPlace
    cause: str | None = None  # slug of the causes table, for a root
    hides: tuple[str, ...] = ()  # causes that a mask or collateral usually hides
    weight: int = 5  # 1 to 9: how surely the line names its cause
    reason: str  # one sentence, groups of the line filled in
    groups: tuple[str, ...] = ()
    remedy: dict[str, Any] = {}  # keys as in the table: order, type, pip, unset, uninstall, system, set, safety, note
    count: int = 1  # how many lines
    ranks: tuple[int, ...] = ()  # all that said it


class LogException(Fact, frozen=True, kw_only=True):
    """A Python exception: the last line of its traceback."""

    place: LogPlace
    type: str  # "torch.cuda.OutOfMemoryError"
    message: str = ""
    raised_in: str | None = None  # "engine.py:1234 in step": its newest frame


class LogExit(Fact, frozen=True, kw_only=True):
    """How a process ended, as a launcher, a scheduler, a shell or a kernel tells it."""

    place: LogPlace
    code: int | None = None  # as printed
    signal: str | None = None  # "SIGKILL": printed, or what the code means
    rank: int | None = None
    pid: int | None = None


class LogFile(Fact, frozen=True, kw_only=True):
    """One file or stream that was read."""

    name: str
    kinds: tuple[TextKind, ...] = ()
    size_bytes: int = 0  # of text, unpacked
    lines: int = 0
    packed: str | None = None  # "gzip", "utf-16"
    cut: str | None = None  # why not all of it was read
    tail: tuple[LogPlace, ...] = ()  # its last lines


class Log(Fact, frozen=True, kw_only=True):
    """All that was pasted, as one incident. ``matches``, ``exceptions`` and ``exits`` stand in the order of the text."""

    files: tuple[LogFile, ...] = ()
    matches: tuple[LogMatch, ...] = ()
    exceptions: tuple[LogException, ...] = ()
    exits: tuple[LogExit, ...] = ()
    ranks: tuple[int, ...] = ()  # that said anything
    versions: dict[str, str] = {}  # of distributions, as the text tells them

    def having(self, role: Role) -> tuple[LogMatch, ...]:
        """The matches with this role."""
        return tuple(match for match in self.matches if match.role == role)
