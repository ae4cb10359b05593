"""The smoke runner on patients whose torch stands in for a training that goes wrong."""

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.events import Event, nobody
from dsdoctor.facts import Python, SmokeRun
from dsdoctor.probes.system import System
from dsdoctor.smoke import runner, watchdog
from dsdoctor.smoke.order import Job
from dsdoctor.smoke.recipes import BY_NAME

posix = pytest.mark.skipif(os.name != "posix", reason="signals")
BUILDS_AND_HANGS = """
import os, time
op = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], "deepspeed_shm_comm")
os.makedirs(op)
open(os.path.join(op, "lock"), "w").close()
time.sleep(600)
"""


def patient(site: Path | None = None, executable: str = sys.executable) -> Python:
    return Python(
        executable=executable, chosen_because="-", version="3.11.7", prefix=sys.prefix, base_prefix="/usr",
        site_packages=(str(site or sysconfig.get_path("purelib")),),
    )  # fmt: skip


class Patient:
    """A folder with a stand-in for torch, and what is observed while it trains."""

    def __init__(self, folder: Path, torch: str, **files: str) -> None:
        self.folder = folder
        self.heard: list[Event] = []
        for name, text in {"torch.py": torch, **files}.items():
            file = folder / "fake" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (folder / "work").mkdir()
        (folder / "tmp").mkdir()

    def train(self, ranks: int = 1, recipe: str = "zero2", env: dict[str, str] | None = None, **job: Any) -> SmokeRun:
        env = {
            **os.environ, "PYTHONPATH": str(self.folder / "fake"), "XDG_CACHE_HOME": str(self.folder / "cache"),
            **(env or {}),
        }  # fmt: skip
        order = Job(recipe=BY_NAME[recipe], ranks=ranks, **{"use_gpu": False, "limit_s": 60.0, **job})
        return runner.run(System(env, cwd=str(self.folder / "work")), patient(), order, self.heard.append)

    def words(self) -> list[str | None]:
        return [event.detail for event in self.heard if event.kind == "smoke-phase"]


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every run takes its private folder with it."""
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    yield
    assert list(private.glob("dsdoctor-smoke-*")) == []


def test_torch_that_raises(tmp_path: Path) -> None:
    raises = "print('words before')\nraise ImportError('libcudart.so.12: cannot open shared object file')"
    found = Patient(tmp_path, raises).train()
    assert (found.outcome, found.fell_first) == ("failed", 0)
    rank = found.ranks[0]
    assert (rank.ending, rank.last_phase, rank.exit_code) == ("failed", "import torch", 1)
    assert (rank.error_type, rank.error) == ("ImportError", "libcudart.so.12: cannot open shared object file")
    assert "words before" in (found.output_tail or "")
    assert "Traceback" in (found.output_tail or "")
    assert [(p.name, p.seconds) for p in found.phases] == [("import torch", None)]


def test_the_compilers_first_error_is_kept_however_long_its_command_is(tmp_path: Path) -> None:
    """torch puts ninja's whole output into its error: commands of many kilobytes, and pages of template notes."""
    command = "[1/3] c++ " + "-I/a/folder " * 1000
    build = f"Error building extension 'op': {command}\nFAILED: op.o\n{command}\nop.h:12:3: error: expected '}}'\n"
    rank = Patient(tmp_path, f"raise RuntimeError({build!r} + 'note: candidate template\\n' * 9000)").train().ranks[0]
    assert rank.error_type == "RuntimeError"
    assert (rank.error or "").startswith("Error building extension 'op'")
    assert "op.h:12:3: error: expected '}'" in (rank.error or "")
    assert len(rank.error or "") < 6000


@posix
@pytest.mark.parametrize(("number", "name"), [(4, "SIGILL"), (11, "SIGSEGV"), (7, "SIGBUS"), (6, "SIGABRT")])
def test_a_crash_leaves_the_line_that_it_came_from(tmp_path: Path, number: int, name: str) -> None:
    found = Patient(tmp_path, f"import os\nos.kill(os.getpid(), {number})").train()
    rank = found.ranks[0]
    assert (found.outcome, rank.ending, rank.signal, rank.last_phase) == ("signal", "signal", name, "import torch")
    assert "torch.py" in (rank.stack or "")
    assert "line 2" in (rank.stack or "")


@posix
def test_a_rank_that_is_killed_takes_the_others_with_it(tmp_path: Path) -> None:
    found = Patient(
        tmp_path, "import os, time\nif os.environ['RANK'] == '1': os.kill(os.getpid(), 9)\ntime.sleep(600)"
    ).train(2)
    assert (found.outcome, found.fell_first) == ("signal", 1)
    assert [(rank.ending, rank.signal) for rank in found.ranks] == [("torn-down", None), ("signal", "SIGKILL")]
    assert "line 3" in (found.ranks[0].stack or "")
    assert found.aftermath is not None


@posix
def test_silent_ranks_are_asked_where_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One waits in Python, the other without ever giving up the interpreter's lock."""
    monkeypatch.setattr(watchdog, "_SILENT_S", (("import ", 4.0), ("start", 20.0)))
    waits = "import os, re, time\nif os.environ['RANK'] == '0':\n    time.sleep(600)\nre.match('(a+)+b', 'a' * 60)"
    found = Patient(tmp_path, waits).train(2)
    assert (found.outcome, found.fell_first, found.limit_s) == ("hung", None, 4.0)
    assert [rank.ending for rank in found.ranks] == ["hung", "hung"]
    assert "line 3" in (found.ranks[0].stack or "")
    assert "line 4" in (found.ranks[1].stack or "")
    assert all((rank.silent_s or 0) >= 4.0 for rank in found.ranks)


def test_training_that_ends_without_a_word(tmp_path: Path) -> None:
    found = Patient(tmp_path, "import os; os._exit(0)").train()
    assert (found.outcome, found.ranks[0].ending, found.ranks[0].exit_code) == ("exited", "exited", 0)


def test_build_that_is_cut_off_leaves_no_lock_for_the_next_run(tmp_path: Path) -> None:
    found = Patient(tmp_path, BUILDS_AND_HANGS).train(limit_s=4.0)
    assert (found.outcome, found.ranks[0].last_phase) == ("timed-out", "import torch")
    there = [p.name for p in (tmp_path / "cache").rglob("*") if p.name in ("deepspeed_shm_comm", "lock")]
    assert there == ["deepspeed_shm_comm"]


def test_swap_files_of_a_run_that_was_ended_are_removed(tmp_path: Path) -> None:
    swaps = "import json, os, sys, time\np = json.loads(sys.argv[1])['nvme']\nos.mkdir(p)\nopen(p + '/x', 'w').close()\ntime.sleep(600)"
    (tmp_path / "nvme").mkdir()
    found = Patient(tmp_path, swaps).train(recipe="zero3-nvme", nvme=str(tmp_path / "nvme"), limit_s=4.0)
    assert found.outcome == "timed-out"
    assert list((tmp_path / "nvme").iterdir()) == []


@posix
def test_shared_memory_of_a_killed_rank_is_removed_and_that_of_others_is_not(tmp_path: Path) -> None:
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no /dev/shm")
    theirs = Path("/dev/shm/deepspeed_allreduce_buffer_0_127.0.0.1_1_0")
    theirs.touch()
    makes = (
        "import os\nname = '/dev/shm/deepspeed_allreduce_buffer_0_127.0.0.1_%s_0' % os.environ['MASTER_PORT']\n"
        "open(name, 'w').close()\nopen('made', 'w').write(name)\nos.kill(os.getpid(), 9)"
    )
    try:
        found = Patient(tmp_path, makes).train()
        assert found.ranks[0].signal == "SIGKILL"
        assert not Path((tmp_path / "work" / "made").read_text()).exists()
        assert theirs.exists()
    finally:
        theirs.unlink()


FAKE_DEEPSPEED = """
import os
from deepspeed.ops.op_builder.builder import OpBuilder

class Builder(OpBuilder):
    name = "deepspeed_shm_comm"

def init_distributed(**_):
    Builder().jit_load()
    raise RuntimeError("far enough")
"""
FAKE_BUILDER = """
import os, time

class OpBuilder:
    def jit_load(self, verbose=True):
        folder = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], self.name)
        os.makedirs(folder, exist_ok=True)
        if os.environ.get("HANGS"):
            time.sleep(600)
        open(os.path.join(folder, self.name + ".so"), "w").close()
"""
FAKE_ACCELERATOR = """
class Cpu:
    _name = "cpu"

get_accelerator = Cpu
"""
FAKE = {
    "deepspeed/accelerator.py": FAKE_ACCELERATOR,
    "deepspeed/__init__.py": FAKE_DEEPSPEED,
    "deepspeed/ops/op_builder/builder.py": FAKE_BUILDER,
}


def test_observer_hears_which_op_is_compiled_and_that_it_is_only_loaded_the_next_time(tmp_path: Path) -> None:
    one = Patient(tmp_path, "", **FAKE)
    found = one.train()
    assert one.words() == ["import torch", "import deepspeed", "rendezvous", "compiling deepspeed_shm_comm (first time only)", "rendezvous"]  # fmt: skip
    assert (found.ranks[0].last_phase, found.ranks[0].error) == ("rendezvous", "far enough")
    one.heard.clear()
    one.train()
    assert one.words()[-2:] == ["loading deepspeed_shm_comm", "rendezvous"]


def test_a_compilation_that_stands_still_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "BUILD_IDLE_S", 3.0)
    one = Patient(tmp_path, "", **FAKE)
    found = one.train(env={"HANGS": "1"})
    assert one.words()[-1] == "compiling deepspeed_shm_comm (first time only)"
    assert (found.outcome, found.ranks[0].last_phase) == ("hung", "compile deepspeed_shm_comm")


def test_an_interpreter_that_cannot_be_started(tmp_path: Path) -> None:
    order = Job(recipe=BY_NAME["zero2"], ranks=2, use_gpu=False)
    nothing = patient(executable=str(tmp_path / "none"))
    found = runner.run(System({"XDG_CACHE_HOME": str(tmp_path)}), nothing, order, nobody)
    assert found.outcome == "not-started"
    assert "No such file" in (found.because or "")


def test_ranks_end_themselves_when_dsdoctor_is_gone(tmp_path: Path) -> None:
    """Nobody reads their events any more: the next sample finds the pipe broken."""
    import subprocess
    import time

    fake = "import time, os\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    one = Patient(tmp_path, fake)
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); from tests.smoke.test_smoke_runner import Patient, Path; p = Patient.__new__(Patient); p.folder = Path({str(tmp_path)!r}); p.heard = []; p.train()"
    doctor = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(one.folder / "tmp")})
    pid_file = tmp_path / "work" / "pid"
    try:
        for _ in range(600):
            if pid_file.exists() and pid_file.read_text():
                break
            time.sleep(0.05)
        pid = int(pid_file.read_text())
    finally:
        doctor.kill()
        doctor.wait()
    for _ in range(200):
        stat = Path(f"/proc/{pid}/stat")  # Z: dead, and nobody has reaped it yet
        if not stat.exists() or ") Z " in stat.read_text():
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    raise AssertionError("the rank lives on")
