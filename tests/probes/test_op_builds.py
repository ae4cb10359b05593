"""Builds of ops by builders that misbehave: what is said of each, and what is left behind."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.events import Event, nobody
from dsdoctor.facts import CacheFolder, Caches, OpBuild, OpBuilds
from dsdoctor.healthy import cpu, memory
from dsdoctor.probes import ProbeFailed, op_builds
from dsdoctor.probes.op_builds import Order, fitting_jobs
from tests.probes.fake_patient import Patient

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
GOOD = "self.log('compiling ' + self.name); self.compiled()"
GIB = 1024**3


@pytest.fixture
def patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Patient]:
    made = Patient(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", os.fspath(made.temp))
    yield made
    assert os.listdir(made.temp) == []


def build(patient: Patient, *, observe: Any = nobody, env: dict[str, str] | None = None, **order: Any) -> OpBuilds:
    names = order.pop("names", None) or tuple(names_of(patient))
    known = Caches(extensions=CacheFolder(path=os.fspath(user_cache(patient)), because="default"))
    made = Order(names=names, **{"jobs": 1, "limit_s": 60.0, **order})
    return op_builds.build(patient.system(**(env or {})), patient.python, made, observe, known=known)


def names_of(patient: Patient) -> list[str]:
    text = (patient.site / "deepspeed" / "ops" / "op_builder" / "__init__.py").read_text()
    return [line.split("'")[1] for line in text.splitlines() if line.startswith("ALL_OPS[")]


def user_cache(patient: Patient) -> Path:
    return patient.home / ".cache" / "torch_extensions" / "py311_cpu"


def one(patient: Patient, load: str, **order: Any) -> OpBuild:
    (found,) = build(patient.builders({"sick": load}), **order).builds
    return found


def test_a_builder_that_succeeds(patient: Patient) -> None:
    built = build(patient.builders({"good": GOOD}))
    assert built.seconds is not None
    (found,) = built.builds
    assert (found.name, found.outcome, found.cached, found.error, found.log_tail) == ("good", "ok", False, None, None)
    assert found.seconds is not None


def test_a_builder_that_raises(patient: Patient) -> None:
    found = one(patient, "self.log('a.cpp:1:1: error: deep'); raise RuntimeError('shallow') from OSError('middle')")
    assert (found.outcome, found.error_type, found.error) == ("failed", "RuntimeError", "shallow <- OSError: middle")
    assert (found.first_error, found.log_tail) == ("a.cpp:1:1: error: deep", "a.cpp:1:1: error: deep")


def test_a_builder_that_ends_the_interpreter_politely(patient: Patient) -> None:
    found = one(patient, "raise SystemExit('no licence')")
    assert (found.outcome, found.error_type, found.error) == ("failed", "SystemExit", "no licence")


def test_an_exception_that_cannot_be_told(patient: Patient) -> None:
    load = """
        class Odd(Exception):
            def __str__(self): raise ValueError("\\udcff")
        raise Odd() from Odd()
    """
    found = one(patient, load)
    assert (found.outcome, found.error_type) == ("failed", "Odd")


SICK = {
    "hang": ("subprocess.Popen(['sleep', '4711']); time.sleep(600)", "timed-out", None),
    "hang_with_the_lock": ("import ctypes; ctypes.PyDLL(None).sleep(600)", "timed-out", None),
    "segfault": ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "SIGSEGV"),
    "exit": ("os._exit(3)", "crashed", None),
    "exit_well": ("os._exit(0)", "crashed", None),
}


@pytest.mark.parametrize("name", SICK)
def test_a_builder_that_takes_the_worker_with_it_costs_its_op_only(patient: Patient, name: str) -> None:
    load, outcome, by = SICK[name]
    built = build(patient.builders({"first": GOOD, name: load, "last": GOOD}), limit_s=1.5)
    assert [(b.name, b.outcome) for b in built.builds] == [("first", "ok"), (name, outcome), ("last", "ok")]
    sick = built.get(name)
    assert sick is not None
    assert sick.signal == by
    assert sick.error == {
        "timed-out": "gave no answer within 1.5 s",
        "crashed": f"ended the process ({by or 'exit code ' + load[-2]})",
    }.get(outcome)
    assert sick.log_tail is not None if "exit" not in name else sick.log_tail is None
    assert not running("sleep\0004711")


def running(words: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if words in command:
            found.append(command)
    return found


def test_a_builder_that_prints_megabytes_which_are_no_utf_8(patient: Patient) -> None:
    noise = "for _ in range(40): os.write(1, b'\\xff' * 100000)\n"
    started = "os.write(1, b'first.cpp:1:1: error: early\\n')\n"
    found = one(patient, f"{started}{noise}os.write(1, b'\\nlast\\n')\nraise RuntimeError('loud')")
    assert found.first_error == "first.cpp:1:1: error: early"
    assert (found.log_tail or "").endswith("last")
    assert len(found.log_tail or "") <= op_builds.TAIL_CHARACTERS


def test_packages_that_replace_and_close_the_streams(patient: Patient) -> None:
    patient.module("torch", "import sys\nsys.stdout.close()\nsys.stderr = None\n")
    built = build(patient.builders({"bad": "raise RuntimeError('told')", "good": GOOD}))
    assert [(b.outcome, b.error) for b in built.builds] == [("failed", "told"), ("ok", None)]


@pytest.mark.parametrize(
    ("init", "why"),
    [
        ("raise ImportError('libmpi.so.40: cannot open')", "ImportError: libmpi.so.40: cannot open"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended the process (SIGSEGV)"),
        ("import os; os._exit(9)", "ended the process (exit code 9)"),
        ("import time; time.sleep(600)", "gave no answer within 1.5 s"),
    ],
)
def test_a_deepspeed_that_cannot_be_imported_reaches_no_op(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, init: str, why: str
) -> None:
    monkeypatch.setattr(op_builds, "IMPORT_S", 1.5)
    patient.builders({"a": GOOD, "b": GOOD}).module("deepspeed", init)
    for found in build(patient, jobs=6, names=("a", "b")).builds:
        assert found.outcome == "not-reached"
        assert why in (found.error or "")


def test_an_op_that_this_deepspeed_does_not_have(patient: Patient) -> None:
    built = build(patient.builders({"good": GOOD}), names=("good", "gone"))
    assert [(b.name, b.outcome) for b in built.builds] == [("good", "ok"), ("gone", "not-reached")]
    assert "no builder of that name" in (built.builds[1].error or "")


def test_an_interpreter_that_is_gone(patient: Patient) -> None:
    import msgspec

    gone = msgspec.structs.replace(patient.python, executable="/no/python")
    (found,) = op_builds.build(patient.system(), gone, Order(names=("a",), jobs=1), nobody).builds
    assert (found.outcome, found.error) == (
        "not-reached",
        "No such file or directory: the interpreter was not started",
    )


KILLED_WHEN_SEVERAL = """
self.log('MAX_JOBS=' + os.environ['MAX_JOBS'])
if os.environ['MAX_JOBS'] != '1':
    self.log('c++: fatal error: Killed signal terminated program cc1plus')
    for _ in range(100): self.log('ninja has more to say')
    raise RuntimeError("Error building extension 'op'")
self.compiled()
"""


def test_a_compiler_that_was_killed_is_tried_alone(patient: Patient) -> None:
    built = build(patient.builders({"big": KILLED_WHEN_SEVERAL, "bad": "raise RuntimeError('no')"}), jobs=3)
    big, bad = built.builds
    assert (big.outcome, big.error) == ("ok", None)
    assert "killed" in (big.retried or "")
    assert (bad.outcome, bad.retried) == ("failed", None)


def test_a_compiler_that_is_killed_again_is_not_tried_a_third_time(patient: Patient) -> None:
    load = "open('count', 'a').write('x'); self.log('Killed'); raise RuntimeError('again')"
    found = one(patient, load, jobs=3)
    assert (found.outcome, found.error, found.first_error) == ("failed", "again", "Killed")
    assert found.retried is not None
    assert (patient.folder / "work" / "count").read_text() == "xx"


def test_workers_share_the_work_and_build_nothing_twice(patient: Patient) -> None:
    load = "open('built', 'a').write(f'{self.name} {os.getpid()} {os.environ[\"MAX_JOBS\"]}\\n'); time.sleep(0.3)"
    names = [f"op{i}" for i in range(6)]
    built = build(patient.builders(dict.fromkeys(names, load)), jobs=8)
    assert [b.name for b in built.builds] == names
    assert {b.outcome for b in built.builds} == {"ok"}
    lines = [line.split() for line in (patient.folder / "work" / "built").read_text().splitlines()]
    assert sorted(line[0] for line in lines) == names
    assert len({line[1] for line in lines}) == 2
    assert {line[2] for line in lines} == {"4"}


def test_events_come_in_order_with_a_place(patient: Patient) -> None:
    events: list[Event] = []
    loads = {"a": GOOD, "b": "raise RuntimeError('x')", "c": "os._exit(3)", "d": GOOD}
    build(patient.builders(loads), observe=events.append)
    told = [(e.kind, e.name, e.detail if e.kind == "op-started" else e.outcome) for e in events]
    assert told == [
        ("op-started", "a", "1 of 4"),
        ("op-ended", "a", "ok"),
        ("op-started", "b", "2 of 4"),
        ("op-ended", "b", "failed"),
        ("op-started", "c", "3 of 4"),
        ("op-ended", "c", "crashed"),
        ("op-started", "d", "4 of 4"),
        ("op-ended", "d", "ok"),
    ]


def test_a_private_cache_touches_no_other(patient: Patient) -> None:
    named = patient.folder / "named"
    build(patient.builders({"good": GOOD}), env={"TORCH_EXTENSIONS_DIR": os.fspath(named)})
    assert not named.exists()
    build(patient)
    assert list(patient.home.iterdir()) == []


@pytest.mark.parametrize("variable", [True, False])
def test_the_users_cache_is_warmed_and_then_only_loaded(patient: Patient, variable: bool) -> None:
    named = patient.folder / "named" if variable else user_cache(patient)
    env = {"TORCH_EXTENSIONS_DIR": os.fspath(named)} if variable else {}
    patient.builders({"good": GOOD, "bad": "raise RuntimeError('x')"})
    first, second = (build(patient, cache="user", env=env) for _ in range(2))
    assert (first.cache, [b.cached for b in first.builds], [b.cached for b in second.builds]) == (
        "user",
        [False, False],
        [True, False],
    )
    assert (named / "good" / "good.so").exists()


LOCKS = "open(os.path.join(self.folder(), 'lock'), 'w').close()\n"


def test_locks_that_our_builds_left_are_released_and_those_of_others_stay(patient: Patient) -> None:
    cache = user_cache(patient)
    (cache / "theirs").mkdir(parents=True)
    (cache / "theirs" / "lock").touch()
    loads = {"died": f"{LOCKS}os._exit(3)", "late": f"{LOCKS}time.sleep(600)", "raised": f"{LOCKS}raise RuntimeError()"}
    build(patient.builders(loads), cache="user", limit_s=1.5)
    # a builder that comes back released its own lock: one that is there now is another's
    assert {p.parent.name for p in cache.glob("*/lock")} == {"theirs", "raised"}


def test_the_lock_of_an_op_that_somebody_else_builds_too_stays(patient: Patient) -> None:
    cache = user_cache(patient)
    (cache / "died").mkdir(parents=True)
    other = subprocess.Popen([sys.executable, "-c", "input()"], cwd=cache / "died", stdin=subprocess.PIPE)
    try:
        build(patient.builders({"died": f"{LOCKS}os._exit(3)"}), cache="user")
    finally:
        other.communicate()
    assert (cache / "died" / "lock").exists()


def test_logs_are_kept_where_they_were_asked_for(patient: Patient) -> None:
    logs = patient.folder / "new" / "logs"
    loads = {"good": GOOD, "bad": "self.log('a.cpp:1:1: error: deep'); raise RuntimeError()"}
    good, bad = build(patient.builders(loads), logs=os.fspath(logs)).builds
    assert Path(good.log or "").read_text() == "compiling good\n"
    assert Path(bad.log or "") == logs / "bad.log"
    assert "error: deep" in (logs / "bad.log").read_text()
    assert one(patient, GOOD).log is None


def test_a_folder_for_logs_that_cannot_be_made(patient: Patient) -> None:
    (patient.folder / "file").touch()
    with pytest.raises(ProbeFailed) as failed:
        one(patient, GOOD, logs=os.fspath(patient.folder / "file" / "logs"))
    assert failed.value.unavailable.detail == f"logs cannot be kept in {patient.folder}/file/logs: Not a directory"


def test_no_temporary_folder(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", os.fspath(patient.folder / "gone"))
    with pytest.raises(ProbeFailed) as failed:
        one(patient, GOOD)
    assert failed.value.unavailable.detail == "no folder to build in: No such file or directory"


@pytest.mark.parametrize(
    ("options", "word"), [("nr_inodes=4", "no folder to build in: No space left"), ("noexec", "noexec")]
)
def test_a_temporary_folder_in_which_nothing_can_be_built(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, options: str, word: str
) -> None:
    place = patient.folder / "mounted"
    place.mkdir()
    if not shutil.which("mount") or os.geteuid() != 0:
        pytest.skip("mounting needs root")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "dsdoctor", place], check=False).returncode:
        pytest.skip("no filesystem can be mounted here")
    try:
        monkeypatch.setattr("tempfile.tempdir", os.fspath(place))
        with pytest.raises(ProbeFailed) as failed:
            one(patient, GOOD)
        assert word in failed.value.unavailable.detail
        assert os.listdir(place) == []
    finally:
        subprocess.run(["umount", "-l", place], check=False)


@pytest.mark.parametrize(("cores", "gib", "jobs"), [(16, 64, 16), (16, 8, 4), (16, 1, 1), (1, 64, 1), (None, 64, 8)])
def test_as_many_compilers_as_cores_and_memory_allow(cores: int | None, gib: int, jobs: int) -> None:
    here = cpu(usable_cores=cores, logical_cores=8)
    assert fitting_jobs(here, memory(total_bytes=gib * GIB, available_bytes=gib * GIB, cgroup_limit_bytes=None)) == jobs


def test_without_facts_as_many_compilers_as_cores() -> None:
    assert fitting_jobs(None, None) == os.cpu_count()
