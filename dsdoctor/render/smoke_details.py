"""What there is to tell of one smoke run beyond its row: parts, each with a label, that every view lays out in its way."""

import math
import statistics
from collections.abc import Iterable, Iterator

import msgspec

from dsdoctor.facts import SmokePhase, SmokeRank, SmokeRun
from dsdoctor.render.curves import charts, led
from dsdoctor.render.quantity import counted, finite, known, loss, percent, rate, seconds, size
from dsdoctor.render.smoke_evidence import evidence, verbatim
from dsdoctor.render.smoke_figures import load, memory, numbers, swap
from dsdoctor.render.smoke_summary import sound
from dsdoctor.smoke.recipes import BY_NAME

_IN_BRIEF = 9  # phases


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A row of cells; beside the first one a drawing, if there is one: a slice (start, share of the whole), or a curve."""

    cells: tuple[str, ...]
    slice: tuple[float, float] | None = None
    curve: tuple[float | None, ...] = ()
    floor: float | None = None  # what the bottom and the top of the curve mean, else its least and largest value
    ceiling: float | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Sentences, a table, or text as the machine wrote it."""

    label: str
    says: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    verbatim: str | None = None


def title(run: SmokeRun) -> str:
    """ "zero2 (ZeRO-2: gradients too)" """
    recipe = BY_NAME.get(run.recipe)
    return f"{run.recipe} ({recipe.title})" if recipe else run.recipe


def setup(run: SmokeRun) -> str:
    """How it was run: "2 ranks on NVIDIA H200, bf16, ZeRO stage 3, optimizer to cpu"."""
    parts = [
        counted(run.world_size, "rank")
        + (f" on {run.device or run.accelerator}" if run.device or run.accelerator else ""),
        run.dtype,
        f"ZeRO stage {run.stage}" if run.stage is not None else None,
        f"offload: {run.offload}" if run.offload else None,
        run.parallel,
        f"started by {run.launcher}" if run.launcher != "none" else None,
        f"with your {run.config}" if run.config else None,
        counted(len(run.steps), "step") if run.steps else None,
    ]
    return ", ".join(part for part in parts if part)


def parts(run: SmokeRun, depth: int) -> Iterator[Part]:
    """``depth``: 0 what is worth a word of a run that went well, 1 in full, 2 with stacks, output and every proof."""
    if run.outcome == "not-applicable":
        return
    yield from _told(_fate(run), "what happened")
    yield from _told(run.notes, "your config in this run")
    yield from _proofs(run, depth)
    yield from _phases(run, depth)
    if depth > 0:
        yield from _curves(run)
        yield from _told(numbers(run), "steps")
    yield from _told(memory(run, depth), "memory")
    yield from _told(load(run, depth), "load")
    yield from _told(swap(run), "disk")
    yield from _collectives(run)
    if not sound(run):
        yield from _told(evidence(run), "evidence")
    if depth > 1:
        yield from _ranks(run)
        yield from (Part(label=label, verbatim=text) for label, text in verbatim(run))


def _told(sentences: Iterable[str], label: str) -> Iterator[Part]:
    said = tuple(sentences)
    if said:
        yield Part(label=label, says=said)


def _fate(run: SmokeRun) -> Iterator[str]:
    """Why a run did not end well: who fell first, and what became of the others."""
    if run.because:
        yield run.because
    if run.outcome == "ok":
        return
    if run.outcome == "timed-out":
        yield f"it was not done within {seconds(run.limit_s)}" if known(run.limit_s) else "its time was over"
    culprit = run.culprit
    if culprit is not None:
        many = run.world_size > 1
        yield f"rank {culprit.rank} {'fell first' if many else 'fell'}: {_ending(culprit)}"
    others: dict[str, list[int]] = {}
    for rank in run.ranks:
        if rank is not culprit:
            others.setdefault(_ending(rank), []).append(rank.rank)
    for ending, who in others.items():
        yield f"rank{'s' if len(who) > 1 else ''} {', '.join(map(str, who))}: {ending}"


def _ending(rank: SmokeRank) -> str:
    """ "SIGKILL in first step" """
    error = ": ".join(part for part in (rank.error_type, rank.error) if part)
    code = f" (exit code {rank.exit_code})" if rank.exit_code is not None and rank.exit_code >= 0 else ""
    told = {
        "ok": "came to its end",
        "failed": error or f"an error that nobody told{code}",
        "signal": rank.signal or "ended by a signal",
        "exited": f"ended without a last word{code}",
        "hung": f"said nothing for {seconds(rank.silent_s)}" if known(rank.silent_s) else "said nothing any more",
        "timed-out": "still at work when the time was over",
        "torn-down": "torn down after that",
        "not-started": error or "was not started",
    }[rank.ending]
    return f"{told} (in {rank.last_phase})" if rank.last_phase and rank.ending != "ok" else told


def _proofs(run: SmokeRun, depth: int) -> Iterator[Part]:
    failed = [f"{proof.name}: {proof.detail}" for proof in run.proofs if not proof.ok]
    odd = [step for step in run.steps if not known(step.loss)]
    if odd:
        failed.append(f"the loss of step {odd[0].number} is {loss(odd[0].loss)}")
    yield from _told(failed, "not so")
    passed = [proof for proof in run.proofs if proof.ok]
    if depth > 1:
        yield from _told((f"{proof.name}: {proof.detail}" for proof in passed), "proved")
    elif passed:
        yield Part(label="proved", says=(", ".join(proof.name for proof in passed),))


def _phases(run: SmokeRun, depth: int) -> Iterator[Part]:
    """Of the leading rank, and of the one that fell first when that is another."""
    mine = led(run)
    if depth < 1:
        yield from _told(_brief(mine), "phases")
        return
    ends = finite(
        run_end for phase in run.phases for run_end in (phase.start_s, phase.start_s + (phase.seconds or 0.0))
    )
    whole = max([*finite([run.seconds]), *ends], default=0.0)
    if mine:
        yield Part(label="phases", lines=tuple(_phase(phase, whole) for phase in mine))
    fallen = tuple(p for p in run.phases if p.rank == run.fell_first and p.rank != mine[0].rank)
    if fallen and depth > 1:
        yield Part(label=f"phases of rank {run.fell_first}", lines=tuple(_phase(phase, whole) for phase in fallen))


def _brief(phases: tuple[SmokePhase, ...]) -> Iterator[str]:
    """All in one sentence; of very many the longest, in their order."""
    longest = sorted(phases, key=lambda phase: -(phase.seconds if known(phase.seconds) else math.inf))[:_IN_BRIEF]
    named = [f"{phase.name} {_lasted(phase)}" for phase in phases if phase in longest]
    rest = [phase.seconds for phase in phases if phase not in longest]
    if rest:
        named.append(f"{counted(len(rest), 'shorter one')} {seconds(sum(finite(rest)))}")
    if named:
        yield ", ".join(named)


def _phase(phase: SmokePhase, whole: float) -> Line:
    cells = (phase.name, _lasted(phase))
    if not whole or not known(phase.start_s):
        return Line(cells=cells)
    lasted = phase.seconds if phase.seconds is not None and known(phase.seconds) else whole - phase.start_s
    return Line(cells=cells, slice=(phase.start_s / whole, lasted / whole))


def _lasted(phase: SmokePhase) -> str:
    return seconds(phase.seconds) or "did not end"


def _curves(run: SmokeRun) -> Iterator[Part]:
    say = {"bytes": size, "percent": percent, "bytes/s": rate, "loss": loss}
    lines = [
        Line(
            cells=(
                f"{chart.title} ({series.name})" if len(chart.series) > 1 else chart.title,
                f"up to {say[chart.unit](series.peak)}",
            ),
            curve=series.values,
            floor=None if chart.unit == "loss" else 0.0,
            ceiling=100.0 if chart.unit == "percent" else None,
        )
        for chart in charts(run)
        for series in chart.series
        if series.peak  # nothing is to be seen of what was never used
    ]
    if lines:
        yield Part(label="curves", lines=tuple(lines))


def _collectives(run: SmokeRun) -> Iterator[Part]:
    lines = []
    for one in run.collectives:
        rates = [value / 1e9 for value in finite(one.bytes_per_s)]
        told = (min(rates), statistics.median(rates), max(rates)) if rates else ()
        figures = tuple(f"{value:#.3g}".rstrip(".") for value in told) or ("-", "-", "-")
        lines.append(Line(cells=(one.name, size(one.message_bytes), *figures, "right" if one.correct else "WRONG")))
    if lines:
        yield Part(
            label="collectives", header=("", "message", "GB/s least", "median", "most", "sums"), lines=tuple(lines)
        )


def _ranks(run: SmokeRun) -> Iterator[Part]:
    """What each rank holds, where ranks said so."""
    lines = tuple(
        Line(
            cells=(
                str(rank.rank),
                size(rank.peak_bytes) or "-",
                size(rank.peak_host_bytes) or "-",
                _share(rank.held_parameter_elements, rank.parameter_elements),
                size(rank.state_bytes) or "-",
            )
        )
        for rank in run.ranks
    )
    if any(cell != "-" for line in lines for cell in line.cells[1:]):
        yield Part(label="ranks", header=("rank", "VRAM", "host memory", "parameters kept", "states"), lines=lines)


def _share(held: int | None, whole: int | None) -> str:
    """ "524288 of 1048576" """
    told = [str(number) for number in (held, whole) if number is not None]
    return " of ".join(told) or "-"
