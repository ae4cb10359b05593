"""Programs that chatter, crash, hang and leave children behind."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from dsdoctor.probes.runner import Ran, kill_all, run

ANSWER = "import os, sys; fd = int(sys.argv[sys.argv.index('--answer-fd') + 1])\n"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and process groups")


def python(source: str, limit_s: float = 30.0, **options: object) -> Ran:
    return run([sys.executable, "-c", source], limit_s, **options)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """True when the process is dead; one that its new parent has not reaped yet is dead too."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def test_noise_is_bounded_and_its_ends_are_kept() -> None:
    ran = python("import sys; sys.stdout.write('first' + 'x' * 5_000_000 + 'last')", keep_bytes=4096)
    assert ran.ok
    assert ran.stdout.startswith("first")
    assert ran.stdout.endswith("last")
    assert "bytes left out" in ran.stdout
    assert len(ran.stdout) < 10_000


def test_exit_code_and_signal() -> None:
    assert python("import os; os._exit(7)").code == 7
    died = python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (died.ending, died.signal, died.ok) == ("signalled", "SIGSEGV", False)


def test_answer_is_apart_from_noise() -> None:
    source = ANSWER + "os.write(1, b'\\xff' * 300000); os.write(fd, b'{\"a\": 1}'); os.write(2, b'\\xfe noise')"
    ran = python(source, answer=True)
    assert ran.answer == b'{"a": 1}'
    assert "�" in ran.stdout
    assert "noise" in ran.stderr


def test_lines_of_the_answer_are_heard_while_the_program_runs(tmp_path: Path) -> None:
    """The program waits for a file that only the listener makes: without streaming it would run over."""
    sign = tmp_path / "heard"
    heard: list[bytes] = []

    def hear(line: bytes) -> None:
        heard.append(line)
        sign.touch()

    source = ANSWER + (
        "import time; os.write(fd, b'fir'); os.write(fd, b'st\\nsec')\n"
        f"while not os.path.exists({str(sign)!r}): time.sleep(0.02)\n"
        "os.write(fd, b'ond\\nunended')"
    )
    ran = python(source, 20.0, answer=True, hear=hear)
    assert ran.ok
    assert heard == [b"first", b"second"]
    assert ran.answer == b"first\nsecond\nunended"


def test_a_listener_that_raises_loses_nothing_of_the_answer() -> None:
    def hear(line: bytes) -> None:
        raise ValueError(line)

    ran = python(ANSWER + "os.write(fd, b'one\\ntwo\\n')", answer=True, hear=hear)
    assert (ran.ok, ran.answer) == (True, b"one\ntwo\n")


CHILD = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"


@pytest.mark.parametrize("then", ["import time; time.sleep(600)", "pass"])
def test_grandchildren_that_hold_the_pipe_are_ended(then: str) -> None:
    source = ANSWER + CHILD + f"os.write(fd, str(p.pid).encode()); sys.stdout.flush()\n{then}"
    ran = python(source, 5.0 if "sleep" in then else 60.0, answer=True)
    assert ran.ending == ("timed-out" if "sleep" in then else "exited")
    assert gone(int(ran.answer))


@pytest.mark.parametrize("argv", [["/no/such/program"], ["no\0name"], [os.sep]])
def test_not_started(argv: list[str]) -> None:
    ran = run(argv, 5.0, answer=True)
    assert (ran.ending, ran.ok, ran.code) == ("not-started", False, None)
    assert ran.problem


def test_not_started_leaves_no_descriptor_open() -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        run(["/no/such/program"], 5.0, answer=True)
    assert len(os.listdir("/dev/fd")) == before


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@linux
def test_a_sleeper_is_ended_early() -> None:
    ran = python("print('asleep', flush=True); import time; time.sleep(600)", 120.0, stall_s=2.0)
    assert (ran.ending, ran.stalled) == ("timed-out", True)
    assert "asleep" in ran.stdout


BUSY = "import time\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass\n"


@linux
@pytest.mark.parametrize("source", [BUSY, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"])
def test_who_computes_or_waits_for_a_computing_child_is_left_alone(source: str) -> None:
    assert python(source, 120.0, stall_s=2.5).ok


def test_stdin_is_closed() -> None:
    assert python("import sys; print(repr(sys.stdin.read()))").stdout.strip() == "''"


OWN_GROUP = "import os, subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], preexec_fn=os.setpgrp)\n"


@linux
@pytest.mark.parametrize(
    ("then", "ending"),
    [
        ("import time; time.sleep(600)", "timed-out"),
        ("os._exit(3)", "exited"),
        ("os.kill(os.getpid(), 11)", "signalled"),
    ],
)
def test_grandchild_in_a_group_of_its_own_is_ended(then: str, ending: str) -> None:
    """As ninja starts its compilers: they hold none of our pipes."""
    apart = OWN_GROUP.replace("preexec_fn", "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn")
    ran = python(ANSWER + apart + f"os.write(fd, str(p.pid).encode())\n{then}", 5.0, answer=True)
    assert ran.ending == ending
    assert gone(int(ran.answer))


@linux
def test_grandchild_in_a_group_of_its_own_that_holds_the_pipe_of_a_good_run_is_ended() -> None:
    ran = python(ANSWER + OWN_GROUP + "os.write(fd, str(p.pid).encode()); print('said')", answer=True)
    assert ran.ok
    assert ran.stdout == "said\n"
    assert gone(int(ran.answer))


def test_a_daemon_does_not_hold_the_runner() -> None:
    """It left the session: it is not ours to end, and what was said before is there."""
    ran = python(ANSWER + OWN_GROUP.replace("setpgrp", "setsid") + "os.write(fd, str(p.pid).encode())", answer=True)
    assert ran.ok
    os.kill(int(ran.answer), signal.SIGKILL)  # fails when it is not alive


def test_answer_larger_than_a_pipe_holds() -> None:
    ran = python(ANSWER + "data = b'x' * 3_000_000\nwhile data: data = data[os.write(fd, data):]", answer=True)
    assert ran.ok
    assert len(ran.answer) == 3_000_000


@pytest.mark.parametrize(
    ("then", "ending"),
    [
        ("import time; time.sleep(600)", "timed-out"),
        ("os._exit(7)", "exited"),
        ("os.kill(os.getpid(), 11)", "signalled"),
    ],
)
def test_what_was_answered_before_the_end_is_kept(then: str, ending: str) -> None:
    ran = python(ANSWER + f"os.close(1); os.close(2); os.write(fd, b'before')\n{then}", 3.0, answer=True)
    assert (ran.ending, ran.answer) == (ending, b"before")


def test_kill_all_ends_what_runs(tmp_path: Path) -> None:
    up = tmp_path / "up"
    results: list[Ran] = []
    source = f"open({str(up)!r}, 'w').close(); import time; time.sleep(600)"
    thread = threading.Thread(target=lambda: results.append(python(source, 120.0)))
    thread.start()
    while not up.exists():
        time.sleep(0.02)
    kill_all()
    thread.join()
    assert [ran.signal for ran in results] == ["SIGKILL"]
