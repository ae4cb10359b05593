"""What a fallen run says, brought to findings: who fell, the line that tells most, and what is only an echo."""

import re
from collections.abc import Iterable, Sequence

from dsdoctor.api import Evidence, Finding, Prescriber, Remedy, SmokeRank, SmokeRun
from dsdoctor_checks.rows import Row, first_match, last_lines
from dsdoctor_checks.tables import table

TABLE = "run_errors"
_COMPILER = r"(?im)^.*(?:\berror\b *[A-Z]*\d*: |undefined reference to|cannot find -l|: (?:command )?not found).*$"
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
_WARNING = re.compile(r"(?m)^.*\[WARN(?:ING)?\].*$")
_FALLEN = ("failed", "signal", "exited")
FallenRun = tuple[SmokeRun, SmokeRank]


def speaker(run: SmokeRun) -> SmokeRank:
    """The rank to listen to: the one that fell first, unless all that it says is an echo of another that ended by itself."""
    fallen = [rank for rank in run.ranks if rank.ending in _FALLEN]
    first = run.culprit or next(iter((*fallen, *run.ranks)), SmokeRank(rank=0, ending="exited"))
    if not said(first) or roots(said(first)):
        return first
    return next((rank for rank in fallen if roots(said(rank)) or not said(rank)), first)


def said(rank: SmokeRank) -> str:
    """The error of a rank, with its type, as Python shows it."""
    return f"{rank.error_type or ''}: {rank.error or ''}".strip(": ")


def roots(text: str | None) -> str:
    """The text without the lines that only tell that another rank is gone."""
    echoes = [row["pattern"] for row in table(TABLE)["echo"]]
    return "\n".join(line for line in (text or "").splitlines() if not any(re.search(echo, line) for echo in echoes))


def failures() -> tuple[Row, ...]:
    """All rows of the table that a run may match, in their order."""
    return (*table(TABLE)["run"], *table(TABLE)["error"])


def known_failure(run: SmokeRun, own: str | None, *around: str | None) -> tuple[Row, re.Match[str]] | None:
    """The row of the table that tells why: one that the rank's own error matches, else what was printed around it.

    Echoes of other ranks and warnings count for nothing; a row that tells only what failed counts last. ``{swap}`` in a pattern
    stands for the folder of the NVMe offload; without one the row does not count.
    """
    swap = re.escape(run.swap.path) if run.swap else None
    rows = [
        {**row, "pattern": row["pattern"].replace("{swap}", swap or "")}
        for row in failures()
        if swap or "{swap}" not in row["pattern"]
    ]
    precise = [row for row in rows if not row.get("vague")]
    texts = [_WARNING.sub("", roots(text)) for text in around]
    return first_match(precise, roots(own)) or first_match(precise, *texts) or first_match(rows, roots(own), *texts)


def again(run: SmokeRun, prescriber: Prescriber) -> str:
    """The command that runs the same once more."""
    words = [run.recipe]
    words += ["--cpu"] if run.accelerator == "cpu" else []
    words += ["--ranks", str(run.world_size)] if run.world_size > 1 else []
    words += ["--config", prescriber.quote(run.config)] if run.config else []
    words += ["--nvme", prescriber.quote(run.swap.path)] if run.swap else []
    words += ["--launcher", run.launcher] if run.launcher != "none" else []
    return prescriber.shell(f"dsdoctor smoke {' '.join(words)}")


def about(run: SmokeRun) -> str:
    """The run in words: "the smoke run (zero2 on NVIDIA H200, 2 ranks)"."""
    ranks = f", {run.world_size} ranks" if run.world_size > 1 else ""
    device = run.device or run.accelerator
    own = f", {run.config}" if run.config else ""
    return f"the smoke run ({run.recipe}{f' on {device}' if device else ''}{ranks}{own})"


def who(run: SmokeRun, rank: SmokeRank) -> str:
    """Which rank, where there are several."""
    if run.world_size < 2 or rank not in run.ranks or run.fell_first is None:
        return ""
    return f": rank {rank.rank} fell first, it" if rank.rank == run.fell_first else f": rank {rank.rank}"


def the_others(run: SmokeRun, rank: SmokeRank) -> str:
    """That the other ranks fell because this one had: torn down, or with an error that is only its echo."""
    others = [r for r in run.ranks if r.rank != rank.rank]
    torn = [r for r in others if r.ending == "torn-down"]
    echoes = [r for r in others if r.ending == "failed" and not roots(said(r))]
    told = f"; {_listed(torn)} only torn down after it" if torn else ""
    return told + (
        f"; {_listed(echoes)} left without it ({first_line(said(echoes[0]), None)[:80]}...)" if echoes else ""
    )


def _listed(ranks: Sequence[SmokeRank]) -> str:
    names = ", ".join(str(rank.rank) for rank in ranks[:4]) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
    return f"ranks {names} were" if len(ranks) > 1 else f"rank {names} was"


def place(rank: SmokeRank) -> str:
    return rank.last_phase or "its start"


def frames(stack: str | None) -> list[tuple[str, str, str]]:
    """(file, line, function) of a faulthandler dump, newest call first."""
    return _FRAME.findall(stack or "")


def own_stack(stack: str | None) -> str:
    """Of a dump of all threads the one that matters: the one that crashed, or Python's main thread, which comes last."""
    blocks = re.split(r"\n(?=(?:Current thread|Thread) 0x)", stack or "")
    current = next((block for block in blocks if "Current thread 0x" in block), None)
    return current or (blocks[-1] if blocks else "")


def newest_frame(rank: SmokeRank) -> str | None:
    """Where a rank stood, in words."""
    found = frames(own_stack(rank.stack))
    return "{2} ({0}:{1})".format(*found[0]) if found else None


def first_line(text: str, output: str | None) -> str:
    """What a failure says in one line: its first; of a build the first error of the compiler instead of its command, of a
    value that pydantic refuses its key and why."""
    lines = text.splitlines()
    line = next(iter(lines), "")
    if re.search(r"\d+ validation errors? for \w+$", line):
        return ": ".join((line, *(more.strip() for more in lines[1:3])))[:300]
    build = re.match(r".*Error building extension '\w+'", line)
    if build is None:
        return line[:300]
    log = text[build.end() :]
    error = re.search(_COMPILER, log) or re.search(_COMPILER, output or "")
    return build.group() + (f": {error.group().strip()[:300]}" if error else "")


def fallen(run: SmokeRun, rank: SmokeRank, what: str, cause: str, remedy: Remedy, *more: Evidence) -> Finding:
    """A finding of a run that did not come to its end."""
    return Finding(
        message=f"{about(run)}{who(run, rank)} {what}{the_others(run, rank)}",
        cause=cause,
        subject=run.recipe,
        evidence=(*more, *_evidence(run, rank)),
        remedy=remedy,
    )


def _telling(output: str | None) -> str:
    """The output without the warnings of every run, which push out what is wanted."""
    return re.sub(
        r"(?m)^.*(?:Future|Deprecation|User)Warning: .*\n?(?:^  \S.*\n?)?|^.*_op built successfully.*\n?",
        "",
        output or "",
    )


def _evidence(run: SmokeRun, rank: SmokeRank) -> Iterable[Evidence]:
    where = f"smoke run, recipe {run.recipe}"
    if "Error building extension" in said(rank) and (error := re.search(_COMPILER, said(rank))):
        yield Evidence(where=f"{where}, compiler", text=error.group().strip()[:300])
    if rank.stack:
        yield Evidence(
            where=f"{where}, stack of rank {rank.rank}", text="\n".join(own_stack(rank.stack).splitlines()[:9])
        )
    if tail := last_lines(_telling(run.output_tail), 12):
        yield Evidence(where=where, text=tail)
    words = run.aftermath.nccl_words if run.aftermath else None
    if words:
        yield Evidence(where=f"{where}, NCCL's last words", text=last_lines(words, 8))


def size(count: int | None) -> str:
    """Bytes in the unit that a reader expects."""
    number = float(count or 0)
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"
