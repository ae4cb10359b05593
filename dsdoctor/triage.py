"""What a log's lines and the checks' verdicts say together: causes by confidence, and the story of the fall. Pure.

A root names its cause, the surer the higher its weight. A check that fails on facts found in the text is worth a root of
middle weight: it tells what is wrong with the machine, not that this killed the run. Where both see one cause they
confirm each other. A mask names at most what it may hide, and never goes before a root.
"""

from collections.abc import Iterable, Sequence

import msgspec

from dsdoctor.facts import Log, LogException, LogMatch, LogPlace
from dsdoctor.model import Cause, Evidence, Link, Severity, Story, Verdict
from dsdoctor.plan import counted_findings

CHECK_WEIGHT = {Severity.ERROR: 4.5, Severity.WARNING: 1.5, Severity.INFO: 0.5}
MASK_WEIGHT = 1.0
CHAIN = 8  # links that are told
_CONFIDENCE = {9: 0.97, 8: 0.93, 7: 0.88, 6: 0.8, 5: 0.7, 4: 0.6, 3: 0.5, 2: 0.4, 1: 0.3}
_COLLECT = (
    "the output of every rank from its start, not only its end: the first error is the cause, the last is an echo",
    "ds_report, run in the same environment on the same machine",
    "dmesg -T | tail -50 of the machine, when a process was killed",
    "the command that started the run, and its ds_config",
)


def weigh(causes: Sequence[Cause], verdicts: Iterable[Verdict], log: Log) -> tuple[Cause, ...]:
    """The causes by how surely they killed the run, each with its confidence and evidence."""
    evidence: dict[str, list[Evidence]] = {}
    checked: dict[str, float] = {}
    for severity, verdict, finding in counted_findings(verdicts):
        found = finding.evidence or (Evidence(where=verdict.code, text=finding.message),)
        evidence.setdefault(finding.cause, []).extend(found)
        if verdict.family != "LOG":
            checked[finding.cause] = max(checked.get(finding.cause, 0.0), CHECK_WEIGHT[severity])
    order = {cause: (weight, place) for cause, weight, place in named(log)}
    last = (0.0, len(log.matches))

    def rank(cause: Cause) -> tuple[float, int, bool, int]:
        weight, place = order.get(cause.cause, last)
        return (
            -max(weight, checked.get(cause.cause, 0.0)),
            place,
            cause.explained_by is not None,
            -cause.severity.rank,
        )

    return tuple(
        msgspec.structs.replace(
            cause,
            confidence=_confidence(order.get(cause.cause, last)[0], checked.get(cause.cause, 0.0)),
            evidence=tuple(dict.fromkeys(evidence.get(cause.cause, ()))),
        )
        for cause in sorted(causes, key=rank)
    )


def named(log: Log) -> list[tuple[str, float, int]]:
    """(cause, weight, place in the text) of roots; of masks only when there is no root."""
    roots: dict[str, tuple[float, int]] = {}
    for place, match in enumerate(log.matches):
        named = (match.cause,) if match.role == "root" else suspected(match)
        weight = float(match.weight) if match.role == "root" else MASK_WEIGHT
        for cause in named:
            if cause is not None and weight > roots.get(cause, (0.0, 0))[0]:
                roots[cause] = (weight, place)
    return [(cause, weight, place) for cause, (weight, place) in roots.items()]


def suspected(match: LogMatch) -> tuple[str, ...]:
    """The cause that a mask hides, if it is the only one."""
    return match.hides if match.role in ("mask", "collateral") and len(match.hides) == 1 else ()


def _confidence(said: float, checked: float) -> float:
    by_log = _CONFIDENCE.get(int(said), 0.0)
    by_check = 0.6 if checked >= CHECK_WEIGHT[Severity.ERROR] else 0.2 if checked else 0.0
    return round(1 - (1 - by_log) * (1 - by_check), 2)


def tell(log: Log, causes: Sequence[Cause]) -> Story:
    """How the run fell: its first fatal event, what followed from it, and what only looks bad."""
    first = next((m for c in causes for m in _first(log, c.cause)), None)
    links = _links(log, first)
    fell = bool(links)
    recognised = fell and any(c.severity is Severity.ERROR or c.codes == ("LOG002",) for c in causes)
    return Story(
        fell=fell,
        recognised=recognised,
        chain=tuple(links[:CHAIN]),
        harmless=tuple(_link("harmless", m.place, m.reason, m.count) for m in _harmless(log)),
        tail=() if recognised or not fell else _tail(log, links),
        collect=() if recognised or not fell else _COLLECT,
    )


def _first(log: Log, cause: str) -> list[LogMatch]:
    """The first line that names a cause about as surely as any does."""
    roots = [m for m in log.matches if m.role == "root" and m.cause == cause]
    best = max((m.weight for m in roots), default=0)
    return [m for m in roots if m.weight >= best - 2][:1]


def _links(log: Log, first: LogMatch | None) -> list[Link]:
    """The events that matter in the order of the text, the first fatal one at their head."""
    quiet = {m.place.where for m in log.having("harmless")}
    events: list[tuple[tuple[int, int], Link]] = []
    files = {file.name: number for number, file in enumerate(log.files)}
    taken: set[str] = set()

    def add(place: LogPlace, link: Link) -> None:
        if place.where not in taken:
            taken.add(place.where)
            events.append(((files.get(place.file, 0), place.line), link))

    for match in log.matches:
        if match.role == "root":
            add(match.place, _link("cause", match.place, match.reason, match.count))
    for match in (*log.having("mask"), *log.having("collateral")):
        kind = "mask" if match.role == "mask" else "collateral"
        add(match.place, _link(kind, match.place, match.reason, match.count))
    for raised in _once(log.exceptions):
        if raised.place.where not in quiet:
            add(raised.place, _link("exception", raised.place, raised.raised_in))
    for ended in log.exits:
        if ended.place.where not in quiet:
            link = _link("exit", ended.place, ended.signal)
            add(ended.place, msgspec.structs.replace(link, rank=ended.rank))
    ordered = [link for _, link in sorted(events, key=lambda event: event[0])]
    head = _head(ordered, first)
    return [*head, *(link for link in ordered if link not in head)]


def _head(links: Sequence[Link], first: LogMatch | None) -> list[Link]:
    """The first fatal event: the line that names the cause; else the first exception, the first end that nobody ordered, ..."""
    if first is not None:
        return [link for link in links if link.where == first.place.where][:1]
    for wanted in ("exception", "exit", "mask"):
        found = [link for link in links if link.kind == wanted and link.means != "SIGTERM"]
        if found:
            return found[:1]
    return list(links[:1])


def _once(exceptions: Iterable[LogException]) -> list[LogException]:
    """Of the same exception on several ranks, or shown again by a launcher, the first."""
    return list({(e.type, e.message): e for e in reversed(list(exceptions))}.values())[::-1]


def _harmless(log: Log) -> list[LogMatch]:
    """One for each signature, and one for each line."""
    first = {m.signature: m for m in reversed(log.having("harmless"))}
    return list({m.place.where: m for m in first.values()}.values())[::-1]


def _tail(log: Log, links: Sequence[Link]) -> tuple[Link, ...]:
    """The most useful lines when nothing was recognised: those told, else the last of each file."""
    if any(link.kind in ("exception", "exit") for link in links):
        return ()
    return tuple(_link("exit", place) for file in log.files for place in file.tail[-5:])


def _link(kind: str, place: LogPlace, means: str | None = None, count: int = 1) -> Link:
    return Link(kind=kind, where=place.where, text=place.text, rank=place.rank, means=means, count=count)  # type: ignore[arg-type]
