"""Exceptions, and how processes ended, as any program tells it: no knowledge of DeepSpeed is needed for these.

Wordings: CPython's traceback module and subprocess; deepspeed/launcher/launch.py 0.19.8; torch/distributed/elastic
(errors/__init__.py, multiprocessing/errors) 2.13; Slurm's srun; Open MPI's mpirun and Hydra; bash, docker, kubelet.
"""

from collections.abc import Callable, Sequence

from dsdoctor.facts import LogException, LogExit, LogPlace
from dsdoctor.readers import regex
from dsdoctor.readers.log.prefixes import Said

# One of these stands in every line that this module reads.
FRAGMENTS = (b"rror", b"xception", b"nterrupt", b"xit", b"illed", b"illing", b"ault", b"borted", b"ignal", b"terminate", b"status")  # fmt: skip
_ENDINGS = "Error|Exception|Interrupt|Exit|Timeout|Abort|Full|Empty"
_EXCEPTION = regex.compile(
    rf"^\s{{0,8}}((?:[A-Za-z_]\w{{0,60}}\.){{1,8}}\w{{0,60}}(?:{_ENDINGS})|[A-Z]\w{{1,60}}(?:{_ENDINGS}))(?:: ?(.*))?$"
)
_COMPLAINT = regex.compile(r"^(ERROR|error|fatal): (\S.*)$")  # of pip, uv, git: they raise nothing
_NOT_RAISED = regex.compile(r"(?:Future|Deprecation|User|Runtime|Syntax|Resource)?Warning$")
_THROWN = regex.compile(r"terminate called after throwing an instance of '([^']{1,120})'")
FRAME = regex.compile(r'^\s*(?:\|\s*)?File "([^"]{1,300})", line (\d{1,7}), in (\S{1,120})')
_LOCAL_RANK = regex.compile(r"--local[_-]rank[= ](\d{1,5})")
_OF_TORCHRUN = regex.compile(r"^ {1,4}(?:exitcode|traceback) *: ")
_TORCHRUN_RANK = regex.compile(r"^ {1,4}rank *: (\d{1,6})\b")
_WORDS = {"Killed": "SIGKILL", "Terminated": "SIGTERM", "Segmentation fault": "SIGSEGV", "Bus error": "SIGBUS", "Aborted": "SIGABRT",
          "Illegal instruction": "SIGILL", "Floating point exception": "SIGFPE", "Out Of Memory": "SIGKILL", "OOMKilled": "SIGKILL"}  # fmt: skip
_SAID = "|".join(_WORDS)
_EXITS = tuple(
    regex.compile(pattern)
    for pattern in (
        r"exits with return code = (?P<code>-?\d{1,10})",
        r"exitcode *: (?P<code>-?\d{1,10}) \(pid: (?P<pid>\d{1,9})\)",
        r"failed \(exitcode: (?P<code>-?\d{1,10})\) (?:local_rank: (?P<local>\d{1,5}) )?\(pid: (?P<pid>\d{1,9})\)",
        r"[Ss]ignal \d{1,2} \((?P<signal>SIG[A-Z]{2,6})\) received by PID (?P<pid>\d{1,9})",
        r"srun: error: (?P<host>\S{1,64}): tasks? (?P<rank>\d{1,5})(?:[\d,-]{0,40}): (?:Exited with exit code (?P<code>\d{1,3})|(?P<word>"
        + _SAID
        + "))",
        r"exited on signal (?P<number>\d{1,2})",
        r"EXIT CODE: (?P<code>\d{1,3})",
        r"[Ee]xit(?:ed)?(?: with)? (?:exit )?(?:code|status):? ?=? ?(?P<code>-?\d{1,10})\b",
        r"(?:returned non-zero exit status|exitcode[ =:]{1,3}|exit code:? ) ?(?P<code>-?\d{1,10})\b",
        r"died with <Signals\.(?P<signal>SIG[A-Z]{2,6})",
        r"(?:^|line \d{1,6}: {1,8}|\] {1,4})(?:\d{1,9} )?(?P<word>" + _SAID + r")(?: {2,}\S.*| \(core dumped\).*)?$",
        r"(?P<word>OOMKilled)",
        r"Fatal Python error: (?P<word>Segmentation fault|Bus error|Aborted|Illegal instruction)",
    )
)


def exception(said: Said, place: LogPlace, before: Callable[[int], Sequence[str]]) -> LogException | None:
    """The exception that this line ends, if it does. ``before(n)`` gives the n lines before it."""
    if thrown := _THROWN.search(said.words):
        return LogException(place=place, type=thrown.group(1))
    found = _EXCEPTION.match(said.words)
    if found is None and (complaint := _COMPLAINT.match(said.words)):
        return LogException(place=place, type=complaint.group(1), message=complaint.group(2)[:400])
    if found is None or _NOT_RAISED.search(found.group(1)):
        return None
    kind, message = found.group(1), (found.group(2) or "").strip()
    return LogException(place=place, type=kind, message=message[:400], raised_in=_frame(before(12)))


def _frame(lines: Sequence[str]) -> str | None:
    for line in reversed(lines):
        if frame := FRAME.match(line):
            file = frame.group(1).replace("\\", "/").rsplit("/", 1)[-1]
            return f"{file}:{frame.group(2)} in {frame.group(3)}"
    return None


def exit_of(said: Said, place: LogPlace, before: Callable[[int], Sequence[str]]) -> LogExit | None:
    """The end of a process that this line tells, if it does; an end with code 0 counts for nothing."""
    for pattern in _EXITS:
        if found := pattern.search(said.words):
            told = found.groupdict()
            code = int(told["code"]) if told.get("code") else None
            number = int(told["number"]) if told.get("number") else None
            if code == 0:
                return None
            named = told.get("signal") or _WORDS.get(told.get("word") or "") or signal_of(-number if number else code)
            rank = told.get("rank") or told.get("local") or _rank(said.words, before)
            pid = told.get("pid")
            return LogExit(
                place=place,
                code=code,
                signal=named,
                rank=int(rank) if rank else place.rank,
                pid=int(pid) if pid else None,
            )
    return None


def _rank(words: str, before: Callable[[int], Sequence[str]]) -> str | None:
    """The rank that a launcher names in the command that ended, or torchrun on a line above."""
    if own := _LOCAL_RANK.search(words):
        return own.group(1)
    if _OF_TORCHRUN.match(words):
        return next((m.group(1) for line in reversed(before(6)) if (m := _TORCHRUN_RANK.match(line))), None)
    return None


def signal_of(code: int | None) -> str | None:
    """The signal that an exit code means: -9 (Python), 137 (a shell: 128 + 9) and 247 (-9 as an unsigned byte) are SIGKILL."""
    if code is None:
        return None
    if code < 0:
        return _SIGNALS.get(-code)
    return _SIGNALS.get(code - 128) or _SIGNALS.get(256 - code) or _WINDOWS.get(code)


_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV",
            13: "SIGPIPE", 15: "SIGTERM", 24: "SIGXCPU"}  # fmt: skip
_WINDOWS = {3221225477: "SIGSEGV", 3221225501: "SIGILL", 3221226505: "SIGABRT"}
