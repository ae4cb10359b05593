"""What the terminal shows while probes, builds and smoke runs go on."""

import io
import os
import pty
import subprocess
import sys

from rich.console import Console

from dsdoctor.cli.progress import Line, View
from dsdoctor.events import Event

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[0m [bold]x[/bold] [/] \u202e"


def shown(view: View, width: int = 80, height: int = 24, encoding: str = "utf-8") -> str:
    """One picture of the view on a terminal without colours."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    console = Console(
        file=file, force_terminal=True, color_system=None, width=width, height=height, legacy_windows=False
    )
    console.print(view)
    file.seek(0)
    return file.read()


def test_builds_are_shown_with_their_place() -> None:
    line, said = Line(), []
    for event in (
        Event(kind="probe-started", name="torch"),
        Event(kind="probe-ended", name="torch"),
        Event(kind="op-started", name="fused_adam", detail="3 of 8"),
        Event(kind="op-started", name="cpu_adam", detail="4 of 8"),
        Event(kind="op-ended", name="fused_adam", outcome="ok", seconds=1.0),
        Event(kind="op-ended", name="cpu_adam", outcome="crashed"),
    ):
        line.see(event, 10.0)
        said.append(line.text(12.0))
    assert said == [
        "examining: torch 2 s",
        "examining: judging",
        "building fused_adam (3 of 8) 2 s",
        "building fused_adam (3 of 8) 2 s, building cpu_adam (4 of 8) 2 s",
        "building cpu_adam (4 of 8) 2 s",
        "examining: judging",
    ]


def test_many_probes_are_named_in_part_and_counted() -> None:
    line = Line()
    for n in range(8):
        line.see(Event(kind="probe-started", name=f"p{n}"), 0.0)
    assert line.text(1.0) == "examining: p0 1 s, p1 1 s, p2 1 s, p3 1 s, p4 1 s and 3 more"


def training(name: str = "zero2") -> View:
    view = View()
    view.observe(Event(kind="smoke-started", name=name, detail="2 of 5"))
    view.observe(Event(kind="smoke-phase", name="steps"))
    view.observe(Event(kind="smoke-step", name=name, values={"number": 5, "steps": 10, "loss": 0.9, "ms": 9.0}))
    view.observe(Event(kind="smoke-sample", name=name, values={"gpu_bytes": 2.0**30, "cpu_percent": 50.0}))
    return view


def test_a_smoke_run_takes_the_place_of_the_line_and_gives_it_back() -> None:
    view = training()
    picture = shown(view)
    for part in ("smoke run of zero2 (2 of 5)", "5 of 10", "VRAM", "1.0 GiB", "CPU", "50 %", "loss", "0.9"):
        assert part in picture
    assert "examining" not in picture
    view.observe(Event(kind="smoke-ended", name="zero2", outcome="ok", seconds=3.0))
    assert "examining: judging" in shown(view)


def test_the_picture_fits_small_terminals() -> None:
    for width, height in ((80, 24), (40, 8), (24, 5)):
        lines = shown(training(), width, height).splitlines()
        assert len(lines) < height
        assert max(map(len, lines)) <= width


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert shown(training(), encoding="ascii").isascii()


def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    view = View()
    view.observe(Event(kind="op-started", name=HOSTILE, detail=HOSTILE))
    pictures = shown(view) + shown(training(HOSTILE))
    assert pictures.count("red [bold]x[/bold] [/]") == 3
    for bad in ("\x1b]", "\x1b[31m", "\x07", "\u202e", "owned"):
        assert bad not in pictures


PROGRAM = """
import sys, time
from dsdoctor.cli.progress import progress
from dsdoctor.events import Event
with progress() as observe:
    observe(Event(kind="smoke-started", name="zero2", detail="1 of 1"))
    observe(Event(kind="smoke-phase", name="rendezvous"))
    time.sleep(0.5)
print("the result")
print("rich" in sys.modules)
"""


def test_on_a_real_terminal_it_is_drawn_and_wiped_and_stdout_stays_clean() -> None:
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    drawn = b""
    try:
        while True:
            drawn += os.read(ours, 65536)
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    out, _ = done.communicate()
    assert out == b"the result\nTrue\n"
    assert b"smoke run of zero2 (1 of 1)" in drawn
    assert b"rendezvous" in drawn
    assert b"\x1b[2K" in drawn.rpartition(b"rendezvous")[2]


def test_where_stderr_is_no_terminal_nothing_is_drawn_and_rich_stays_away() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.replace("0.5", "0")], capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout == b"the result\nFalse\n"
