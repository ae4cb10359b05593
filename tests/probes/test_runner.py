"""Programs that chatter, crash, hang and leave children behind."""

import os
import sys
import time
from pathlib import Path

import pytest

from dsdoctor.probes.runner import Ran, run

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
