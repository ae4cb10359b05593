"""The line on the terminal while probes and builds run."""

from dsdoctor.cli.progress import _Line
from dsdoctor.events import Event


def test_builds_are_shown_with_their_place() -> None:
    shown: list[str] = []
    line = _Line(shown.append)
    line.stopped.set()
    line.observe(Event(kind="probe-started", name="torch"))
    line.observe(Event(kind="probe-ended", name="torch"))
    line.observe(Event(kind="op-started", name="fused_adam", detail="3 of 8"))
    line.observe(Event(kind="op-started", name="cpu_adam", detail="4 of 8"))
    line.observe(Event(kind="op-ended", name="fused_adam", outcome="ok", seconds=1.0))
    line.observe(Event(kind="op-ended", name="cpu_adam", outcome="crashed"))
    assert shown == [
        "examining: torch 0 s",
        "examining: judging",
        "building fused_adam (3 of 8) 0 s",
        "building fused_adam (3 of 8) 0 s, building cpu_adam (4 of 8) 0 s",
        "building cpu_adam (4 of 8) 0 s",
        "examining: judging",
    ]
