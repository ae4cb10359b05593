"""What stands before the words of a program: time, rank, host, stream, as launchers, schedulers and collectors write it."""

import json
from typing import NamedTuple

from dsdoctor.readers import pasted, regex

LONGEST = 4000  # characters of a line that are looked at
_MOST_PREFIXES = 5
_DAY = r"\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d[-/]\d{4}"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_PREFIXES = tuple(
    regex.compile(pattern)
    for pattern in (
        r">+ ?(?!>)",  # quoted in a mail or an issue
        rf"\[?(?P<time>(?:{_DAY})[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)\]?(?: -| \|)? ?",
        r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>[\w.-]{1,64}) [\w./-]{1,40}(?:\[\d+\])?: ",  # syslog
        r"(?:stdout|stderr) [FP] ",  # a container runtime's own log
        r"\[?rank ?(?P<rank>\d{1,5})\]?: ?",
        r"\[rank(?P<rank>\d{1,5})\] ?",
        r"\[(?:default|trainer|worker)(?P<rank>\d{1,5})\]: ?",  # torchrun --tee
        r"\[trainer\d{1,4}\|(?P<rank>\d{1,5})\]: ?",
        r"\[\d{1,5},(?P<rank>\d{1,5})\](?:<std(?:out|err)>|<stddiag>):? ?",  # mpirun --tag-output
        r"\((?:[A-Za-z]\w{0,60} )?(?:rank=(?P<rank>\d{1,5}), ?)?pid=\d{1,9}(?:, ?ip=(?P<host>[\w.:-]{1,64}))?\) ",  # Ray
        r"\[pod/(?P<host>[\w.-]{1,80})/[\w.-]{1,80}\] ",  # kubectl logs --prefix
        r"(?P<host>[A-Za-z][\w.-]{0,60}[-_]\d{1,5}) {1,20}\| ",  # docker compose
        r"(?P<rank>\d{1,5}): (?=\S)",  # srun --label
        r"\[(?P<rank>\d{1,5})\] (?=\D)",  # mpiexec.hydra -l
        r"(?P<host>(?!gcc|clang|python|pip|lib|cuda|x86)[a-z][a-z.-]{0,30}\d[a-z0-9.-]{0,60}): (?=\S)",  # pdsh
    )
)
_RANK = regex.compile(r"\[(?:[^\]]{0,80} )?[Rr]ank ?:?(\d{1,5})\]|\bglobal[_ ]rank[:= ]{1,3}(\d{1,5})\b")
_JSON_LOG = regex.compile(r'^\{"(?:log|message|msg|text)": ?"')


class Said(NamedTuple):
    """A line taken apart: ``words`` without its prefixes, ``line`` with them."""

    words: str
    line: str
    rank: int | None
    host: str | None
    time: str | None


def take_apart(raw: bytes) -> Said:
    """A line of a log, cleaned of escapes and controls. Never raises."""
    line = words = pasted.clean(_plain(raw.decode("utf-8", "replace"))[:LONGEST]).rstrip()
    told: dict[str, str] = {}
    for _ in range(_MOST_PREFIXES):
        found = next((m for p in _PREFIXES if (m := p.match(words))), None)
        if found is None:
            break
        told |= {k: v for k, v in found.groupdict().items() if v}
        words = words[found.end() :]
    rank = told.get("rank")
    if rank is None and (inner := _RANK.search(words[:200])):
        rank = inner.group(1) or inner.group(2)
    return Said(words, line, int(rank) if rank else None, told.get("host"), told.get("time"))


def _plain(line: str) -> str:
    """The text inside of a collector's JSON line."""
    if not _JSON_LOG.match(line):
        return line
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return next((str(held[key]) for key in ("log", "message", "msg", "text") if key in held), line)
