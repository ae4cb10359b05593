"""A smoke run while it runs, as lines of text: phases with bars, memory, processor and loss as sparklines.

Fed by events, asked for lines; it knows no terminal and no clock.
"""

from collections import deque

from dsdoctor.events import Event
from dsdoctor.render.plain import cut
from dsdoctor.render.quantity import counted, known, loss, percent, seconds, size
from dsdoctor.render.smoke_summary import outcome_word
from dsdoctor.render.spark import bar, pulse, sparkline

_KEPT = 600  # samples
_STEPS = "steps"  # the phase whose length the steps tell from its start
_SPARK, _BAR = 24, 20  # characters where there is room


class Phase:
    """``took`` is None while it lasts; ``counts``: steps fall into it."""

    def __init__(self, name: str, words: str, began: float) -> None:
        self.name, self.words, self.began = name, words, began
        self.took: float | None = None
        self.counts = name == _STEPS


class Training:
    """One recipe: what its events told so far."""

    def __init__(self, recipe: str, place: str, began: float) -> None:
        self.recipe, self.place, self.began = recipe, place, began
        self.phases: list[Phase] = []
        self.losses: list[float | None] = []
        self.samples: deque[dict[str, float]] = deque(maxlen=_KEPT)
        self.step: dict[str, float] = {}

    def enter(self, name: str, words: str, at: float) -> None:
        """The next phase, or one of before that goes on after something inside of it."""
        same = next((phase for phase in self.phases if phase.name == name), None)
        if same is None or same is not self.phases[-1]:
            self.leave(at)
        if same is not None:
            self.phases.remove(same)
            same.words, same.took = words, None
        self.phases.append(same or Phase(name, words, at))

    def leave(self, at: float) -> None:
        if self.phases and self.phases[-1].took is None:
            self.phases[-1].took = at - self.phases[-1].began

    def stepped(self, values: dict[str, float], at: float) -> None:
        self.step = values
        self.losses.append(values.get("loss"))
        if self.phases:
            self.phases[-1].counts = True
        number, steps = values.get("number"), values.get("steps")
        if known(number) and known(steps) and number >= steps and self.phases and self.phases[-1].name == _STEPS:
            self.leave(at)  # what follows is no phase: the ranks compare and end

    def curve(self, name: str) -> list[float | None]:
        """One value of all samples; empty when no sample has it."""
        values = [sample.get(name) for sample in self.samples]
        return values if any(known(value) for value in values) else []


class Live:
    """Follows smoke runs by their events. Times are seconds of any one clock, given by the caller."""

    def __init__(self) -> None:
        self._now: Training | None = None
        self._before: list[str] = []

    @property
    def running(self) -> bool:
        return self._now is not None

    @property
    def title(self) -> str:
        """ "zero2 (2 of 5)", "" when nothing runs."""
        if self._now is None:
            return ""
        return f"{self._now.recipe} ({self._now.place})" if self._now.place else self._now.recipe

    def brief(self, at: float) -> str:
        """ "smoke run of zero2 (2 of 5): steps, 4 of 10, 0.3 s", "" when nothing runs."""
        if self._now is None:
            return ""
        phase = self._now.phases[-1] if self._now.phases else None
        told = f": {phase.words}, {_progress(phase, self._now, 1, at, True)[1]}" if phase else ""
        return f"smoke run of {self.title or 'a recipe'}{told}"

    def see(self, event: Event, at: float) -> None:
        """Take one event in; those of other things are none of its business."""
        if not event.kind.startswith("smoke-"):
            return
        if event.kind == "smoke-started":
            self._now = Training(event.name, event.detail or "", at)
            return
        if event.kind == "smoke-ended":
            self._end(event, at)
            return
        self._now = self._now or Training("", "", at)
        if event.kind == "smoke-phase":
            self._now.enter(event.name, event.detail or event.name, at)
        elif event.kind == "smoke-step":
            self._now.stepped(event.values, at)
        elif event.kind == "smoke-sample":
            self._now.samples.append(event.values)

    def _end(self, event: Event, at: float) -> None:
        took = event.seconds if event.seconds is not None else at - self._now.began if self._now else None
        told = f"{event.name} {outcome_word(event.outcome or 'ended')}"
        self._before.append(told + (f" in {seconds(took)}" if known(took) and took else ""))
        self._now = None

    def lines(self, width: int, at: float, *, unicode: bool = True, height: int = 24) -> list[str]:
        """What a screen of ``width`` columns shows in at most ``height`` lines; nothing before the first run."""
        lines = [cut(f"before: {', '.join(self._before)}", width, unicode=unicode)] if self._before else []
        if self._now is not None:
            curves = _curves(self._now, width, unicode)
            room = max(height - len(lines) - len(curves) - 1, 1)
            head = f"smoke run of {self.title or 'a recipe'}, {at - self._now.began:.0f} s"
            lines = [cut(head, width, unicode=unicode), *lines, *_phases(self._now, width, at, unicode, room), *curves]
        return [line[:width].rstrip() for line in lines[:height]]


def _phases(run: Training, width: int, at: float, unicode: bool, room: int) -> list[str]:
    """A bar for each; when there is no room for all, the first ones become one line."""
    left = run.phases[-max(room - 1, 1) :] if len(run.phases) > room else run.phases
    gone = run.phases[: len(run.phases) - len(left)]
    name = min(max((len(phase.words) for phase in left), default=0), max(width // 3, 8))
    cells = max(min(_BAR, width - name - 28), 4)
    told = (
        [f"  {counted(len(gone), 'phase')} before {sum(p.took or 0.0 for p in gone):.1f} s"]
        if gone and room > 1
        else []
    )
    for phase in left:
        drawn, words = _progress(phase, run, cells, at, unicode)
        told.append(f"  {cut(phase.words, name, unicode=unicode):{name}}  {drawn}  {words}")
    return told


def _progress(phase: Phase, run: Training, cells: int, at: float, unicode: bool) -> tuple[str, str]:
    """The bar of a phase and the words beside it."""
    if phase.took is not None:
        return bar(1.0, cells, unicode=unicode), seconds(phase.took)
    lasts = at - phase.began
    number, steps = run.step.get("number"), run.step.get("steps")
    if phase.counts and known(number) and known(steps) and steps >= 1:
        return bar(number / steps, cells, unicode=unicode), f"{number:.0f} of {steps:.0f}, {lasts:.1f} s"
    return pulse(lasts, cells, unicode=unicode), f"{lasts:.1f} s"


def _curves(run: Training, width: int, unicode: bool) -> list[str]:
    cells = max(min(_SPARK, width - 36), 4)
    rows = []
    for label, name in (("VRAM", "gpu_bytes"), ("VRAM", "torch_bytes"), ("memory", "rss_bytes")):
        curve = run.curve(name)
        if curve:  # NVML's if it is there, else torch's, else the host's
            rows.append((label, curve, {"low": 0.0}, _memory(run, name)))
            break
    cpu = run.curve("cpu_percent")
    if cpu:
        rows.append(("CPU", cpu, {"low": 0.0, "high": 100.0}, _load(run)))
    if run.losses:
        rows.append(("loss", run.losses, {}, _loss(run)))
    return [
        f"  {label:6}  {sparkline(values[-_KEPT:], cells, unicode=unicode, **ends):{cells}}  {words}"
        for label, values, ends, words in rows
    ]


def _last(run: Training, name: str) -> float | None:
    return next((value for value in reversed(run.curve(name)) if known(value)), None)


def _memory(run: Training, name: str) -> str:
    torch = _last(run, "torch_bytes") if name == "gpu_bytes" else None
    return size(_last(run, name)) + (f" (torch {size(torch)})" if known(torch) else "")


def _load(run: Training) -> str:
    gpu = _last(run, "gpu_percent")
    return percent(_last(run, "cpu_percent")) + (f", GPU {percent(gpu)}" if known(gpu) else "")


def _loss(run: Training) -> str:
    first, last = loss(run.losses[0]), loss(run.losses[-1])
    took = run.step.get("ms")
    told = f"{first} -> {last}" if len(run.losses) > 1 else last
    return told + (f", a step {seconds(took / 1000)}" if known(took) else "")
