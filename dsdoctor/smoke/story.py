"""What the ranks tell, put together: the pure part of watching a run. Times are time.monotonic of the machine."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dsdoctor.facts import Collective, SmokePhase, SmokeProof, SmokeRank, SmokeStep, SmokeSwap

_RANK_FACTS = ("device", "loss", "parameter_elements", "held_parameter_elements", "held_state_elements", "state_bytes",
               "peak_reserved_bytes", "peak_host_bytes")  # fmt: skip
_SETUP = ("accelerator", "device", "dtype", "stage", "world_size", "offload", "parallel")


_ADDED = frozenset({"read_bytes", "written_bytes"})  # over all ranks


class RankStory:
    """One rank: its phases, its numbers, its last word."""

    def __init__(self, began: float) -> None:
        self.pid: int | None = None
        self.spoke_at: float | None = None  # of its last event that is more than a sample
        self.done = False
        self.error: tuple[str, str, float] | None = None  # type, text, when
        self.not_applicable: str | None = None
        self.phases: list[SmokePhase] = []
        self.torch_bytes: tuple[int, int] = (0, 0)  # allocated, reserved: now
        self.facts: dict[str, Any] = {}
        self.peak: tuple[int, str] | None = None
        self._began = began
        self._open: list[tuple[str, float]] = []
        self._last: str | None = None

    @property
    def phase(self) -> str | None:
        """The innermost phase that began and did not end, else the last one."""
        return self._open[-1][0] if self._open else self._last

    @property
    def in_steps(self) -> bool:
        """True in a phase in which steps after the first run."""
        return bool(self._open) and self._open[-1][0] in ("steps", "steady load")

    def told_phases(self, rank: int) -> list[SmokePhase]:
        """Those that ended, in the order of their beginning, and those that did not."""
        unended = [
            SmokePhase(name=n, seconds=None, start_s=round(t - self._began, 3), rank=rank) for n, t in self._open
        ]
        return sorted([*self.phases, *unended], key=lambda phase: phase.start_s)

    def begin(self, name: str, at: float) -> None:
        self._open.append((name, at))
        self._last = name

    def end(self, name: str, seconds: float, peak: int | None, rank: int) -> None:
        began = next((t for n, t in reversed(self._open) if n == name), None)
        self._open = [(n, t) for n, t in self._open if n != name]
        start = round((began if began is not None else self._began) - self._began, 3)
        self.phases.append(SmokePhase(name=name, seconds=round(seconds, 4), start_s=start, rank=rank))
        if peak is not None and (self.peak is None or peak > self.peak[0]):
            self.peak = (peak, name)


class Story:
    """All ranks of one run. ``hear`` takes their events as they come; it never raises for what a rank says."""

    def __init__(self, ranks: int, began: float) -> None:
        self.began = began
        self.ranks = {rank: RankStory(began) for rank in range(ranks)}
        self.setup: dict[str, Any] = {}
        self.steps: list[SmokeStep] = []
        self.proofs: dict[str, SmokeProof] = {}
        self.collectives: dict[str, Collective] = {}
        self._swap: dict[str, Any] = {}
        self._handlers: dict[str, Callable[[int, RankStory, Mapping[str, Any], float], None]] = {
            "hello": self._hello, "begin": self._begin, "end": self._end, "setup": self._setup, "step": self._step,
            "memory": self._memory, "rank": self._rank, "proof": self._proof, "collective": self._collective,
            "swap": self._moved, "not-applicable": self._absent, "error": self._error, "done": self._done,
        }  # fmt: skip

    def hear(self, rank: int, event: Mapping[str, Any]) -> None:
        """One event. One that is malformed (a rank died while it wrote) is left out."""
        story, handler = self.ranks.get(rank), self._handlers.get(str(event.get("what")))
        if story is None or handler is None:
            return
        event = {name: _plain(value) for name, value in event.items()}
        try:
            at = float(event["t"])
            handler(rank, story, event, at)
        except (KeyError, TypeError, ValueError, msgspec.ValidationError):
            return
        if event["what"] != "memory":
            story.spoke_at = at

    @property
    def spoke_at(self) -> float:
        """When any rank that has not ended its work last told something."""
        return max((s.spoke_at for s in self.ranks.values() if s.spoke_at is not None), default=self.began)

    @property
    def not_applicable(self) -> str | None:
        return next((s.not_applicable for s in self.ranks.values() if s.not_applicable), None)

    @property
    def swap(self) -> SmokeSwap | None:
        return msgspec.convert(self._swap, SmokeSwap) if "path" in self._swap else None

    def rank_facts(self, rank: int) -> dict[str, Any]:
        """The fields of SmokeRank that the rank itself told."""
        story = self.ranks[rank]
        found = dict(story.facts)
        if story.peak is not None:
            found |= {"peak_bytes": story.peak[0], "peak_phase": story.peak[1]}
        if story.error is not None:
            found |= {"error_type": story.error[0], "error": story.error[1]}
        return found

    def _hello(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        story.pid = int(event["pid"])

    def _begin(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        story.begin(str(event["name"]), at)

    def _end(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        story.end(str(event["name"]), float(event["seconds"]), event.get("peak"), rank)

    def _memory(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        story.torch_bytes = (int(event["allocated"]), int(event["reserved"]))

    def _setup(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        self.setup |= {name: event[name] for name in _SETUP if event.get(name) is not None}

    def _step(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        if rank == 0:
            values = {name: event.get(name) for name in ("number", "loss", "grad_norm", "loss_scale")}
            self.steps.append(msgspec.convert({**values, "ms": round(event["ms"], 3)}, SmokeStep))

    def _rank(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        told = {name: event[name] for name in _RANK_FACTS if event.get(name) is not None}
        msgspec.convert({"rank": rank, "ending": "ok", **told}, SmokeRank)  # raises when a value is of another kind
        story.facts |= told

    def _proof(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        """Told by several ranks under one name: the first that is not ok counts."""
        proof = msgspec.convert({name: event[name] for name in ("name", "ok", "detail")}, SmokeProof)
        known = self.proofs.get(proof.name)
        if known is None or (known.ok and not proof.ok):
            self.proofs[proof.name] = proof

    def _collective(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        names = ("name", "message_bytes", "bytes_per_s", "correct")
        found = msgspec.convert({name: event[name] for name in names}, Collective)
        known = self.collectives.get(found.name)
        if known is None or known.correct:  # one that was wrong stays
            self.collectives[found.name] = found

    def _moved(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        told = {name: event[name] for name in SmokeSwap.__struct_fields__ if event.get(name) is not None}
        for name in _ADDED & told.keys():
            told[name] += self._swap.get(name, 0)
        msgspec.convert({"path": "", **told}, SmokeSwap)
        self._swap |= told

    def _absent(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        story.not_applicable = str(event["because"])

    def _error(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        story.error = (str(event["type"]), str(event["text"]), at)

    def _done(self, rank: int, story: RankStory, event: Mapping[str, Any], at: float) -> None:
        story.done = True


def _plain(value: Any) -> Any:
    """None for a number that JSON cannot hold: a report must be readable again."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
