"""What `dsdoctor ops --clean` removes, and what it must not touch."""

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dsdoctor.facts import CacheFolder, Caches, Snapshot
from dsdoctor.facts.snapshot import encode
from dsdoctor.healthy import healthy, python, torch
from dsdoctor.probes import caches
from dsdoctor.probes.stale import Stale, look_again, reason_to_keep_all, release_locks, remove, stale_things
from dsdoctor.probes.system import System
from tests.lab.sick import DOCTOR, ROOMS, Sick
from tests.probes.fake_patient import TORCH

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
NINJA = "cflags = -isystem {torch}/include -isystem {python} -fPIC\nbuild op.so: link a.o\n"
HERE = "/usr/include/python3.11"


class Cache:
    """A folder of built ops."""

    def __init__(self, root: Path, torch_path: Path) -> None:
        self.root, self.torch = root, torch_path
        self.root.mkdir(parents=True)

    def op(
        self, name: str, *, torch: Path | None = None, lock: bool = False, so: str | None = "op.so", python: str = HERE
    ) -> Path:
        folder = self.root / name
        folder.mkdir()
        (folder / "build.ninja").write_text(NINJA.format(torch=torch or self.torch, python=python))
        if lock:
            (folder / "lock").touch()
        if so:
            (folder / so).touch()
        return folder

    def snapshot(self, **folder: object) -> Snapshot:
        place = msgspec.convert({"path": os.fspath(self.root), "because": "default", **folder}, CacheFolder)
        found = Caches(extensions=place, ops=tuple(caches.ops(System(), os.fspath(self.root), place.network)))
        return healthy(found, torch(path=os.fspath(self.torch)), python(version="3.11.7"))

    def judged(self, **folder: object) -> dict[str, Stale]:
        return {os.path.relpath(t.path, self.root): t for t in stale_things(self.snapshot(**folder))}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    (tmp_path / "torch").mkdir()
    return Cache(tmp_path / "cache", tmp_path / "torch")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "other" / "torch").mkdir(parents=True)
    return tmp_path / "other" / "torch"


def test_what_is_of_use_is_not_stale(cache: Cache) -> None:
    cache.op("good")
    (cache.root / "notes").mkdir()
    assert cache.judged() == {}


def test_what_is_proved_stale(cache: Cache) -> None:
    cache.op("locked", lock=True)
    cache.op("orphan", torch=Path("/no/such/torch"))
    cache.op("orphan_locked", torch=Path("/no/such/torch"), lock=True)
    cache.op("ruin", so=None)
    found = cache.judged()
    assert {name: thing.kept for name, thing in found.items()} == dict.fromkeys(
        ("locked/lock", "orphan", "orphan_locked", "ruin"), False
    )
    assert "nothing builds there" in found["locked/lock"].why
    assert found["orphan"].why == "was built with the torch in /no/such/torch, which is gone"
    for thing in found.values():
        assert remove(thing) is None
    assert {p.name for p in cache.root.iterdir()} == {"locked"}
    assert (cache.root / "locked" / "op.so").exists()


def test_what_another_living_environment_uses_is_shown_and_kept(cache: Cache, elsewhere: Path) -> None:
    cache.op("theirs", torch=elsewhere)
    cache.op("tagged", so="op.cpython-310-x86_64-linux-gnu.so")
    cache.op("headers", python="/usr/include/python3.12")
    found = cache.judged()
    assert {name: thing.kept for name, thing in found.items()} == dict.fromkeys(("theirs", "tagged", "headers"), True)
    assert os.fspath(elsewhere) in found["theirs"].why
    assert found["tagged"].why == "was built for Python 3.10; here it is 3.11"
    assert found["headers"].why == "was built for Python 3.12; here it is 3.11"


def test_a_torch_reached_through_a_link_is_the_same(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "link" / "lib").mkdir(parents=True)
    (tmp_path / "link" / "lib" / "torch").symlink_to(cache.torch)
    cache.op("good", torch=tmp_path / "link" / "lib" / "torch")
    assert cache.judged() == {}


def test_another_users_folder_is_shown_and_kept(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.op("ruin", so=None)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    found = cache.judged()["ruin"]
    assert (found.kept, found.why) == (True, f"belongs to another user (uid {me})")


@pytest.fixture
def builder(cache: Cache) -> Iterator[None]:
    """Somebody who works in "busy", as ninja does, and somebody who holds the lock of "held" open, as torch does."""
    cache.op("busy", so=None)
    held = cache.op("held", lock=True, so=None)
    hold = f"x = open({os.fspath(held / 'lock')!r}); "
    people = [person_in(cache.root / "busy", ""), person_in(cache.root.parent, hold)]
    for person in people:
        assert person.stdout is not None
        person.stdout.readline()
    yield
    for person in people:
        person.communicate(b"\n")


def person_in(folder: Path, work: str) -> "subprocess.Popen[bytes]":
    pipe, script = subprocess.PIPE, f"{work}print(1, flush=True); input()"
    return subprocess.Popen([sys.executable, "-c", script], cwd=folder, stdin=pipe, stdout=pipe)


@pytest.mark.usefixtures("builder")
def test_a_folder_in_which_somebody_builds_is_neither_shown_nor_touched(cache: Cache) -> None:
    assert cache.judged() == {}
    release_locks(System(), os.fspath(cache.root), ["held", "busy"])
    assert (cache.root / "held" / "lock").exists()


def test_a_build_that_began_meanwhile_is_seen(cache: Cache) -> None:
    folder = cache.op("ruin", so=None)
    before = cache.snapshot()
    assert [t.path for t in stale_things(before)] == [os.fspath(folder)]
    (folder / "op.so").touch()
    assert stale_things(look_again(before)) == ()


def test_on_a_network_filesystem_everything_stays(cache: Cache) -> None:
    cache.op("orphan", torch=Path("/no/such/torch"))
    assert cache.judged(network=True, filesystem="nfs4") == {}
    said = reason_to_keep_all(cache.snapshot(network=True, filesystem="nfs4").caches)
    assert said is not None
    assert "is on nfs4" in said


def test_what_cannot_be_removed_is_said(tmp_path: Path) -> None:
    problem = remove(Stale(path=os.fspath(tmp_path / "gone"), why="-"))
    assert problem == f"{tmp_path}/gone could not be removed: No such file or directory"


class Home:
    """A user with a fake torch, and a cache where torch would have put it."""

    def __init__(self, folder: Path) -> None:
        self.patient = Sick(folder / "venv")
        self.patient.fake("torch", "2.13.0+cpu", TORCH, version="__version__ = '2.13.0+cpu'\ncuda = None\nhip = None\n")
        self.home = folder / "home"
        self.home.mkdir()
        python = "py{}{}_cpu".format(*sys.version_info[:2])
        self.cache = Cache(self.home / ".cache" / "torch_extensions" / python, self.patient.site / "torch")
        self.env = {k: v for k, v in self.patient.env.items() if not k.startswith(("TORCH_EXT", "XDG_"))}
        self.env["HOME"] = os.fspath(self.home)

    def argv(self, *options: str) -> list[str]:
        static = () if "--snapshot" in options else ("--static", "--python", os.fspath(self.patient.python))
        return [sys.executable, "-c", DOCTOR, ROOMS, "ops", *static, "--clean", *options]

    def clean(self, *options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.argv(*options),
            env=self.env,
            cwd=self.patient.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_the_command_shows_and_removes_only_when_told(home: Home, elsewhere: Path) -> None:
    home.cache.op("good")
    home.cache.op("theirs", torch=elsewhere)
    stale = {home.cache.op("orphan", torch=Path("/no/such/torch")), home.cache.op("ruin", so=None)}
    locked = home.cache.op("locked", lock=True)
    shown = home.clean()
    assert (shown.returncode, shown.stderr) == (0, "")
    for path in (*stale, locked / "lock"):
        assert f"  {path}\n" in shown.stdout
        assert path.exists()
    assert "Nothing was removed" in shown.stdout
    kept = shown.stdout.partition("Kept")[2]
    assert f"  {home.cache.root / 'theirs'}\n" in kept
    done = home.clean("--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("3 removed.\n")
    assert {p.name for p in home.cache.root.iterdir()} == {"good", "theirs", "locked"}
    assert not (locked / "lock").exists()
    assert home.clean("--yes").stdout.endswith("Nothing in the extension cache is proved stale.\n")


@pytest.mark.parametrize(("answer", "stays"), [("n", True), ("y", False)])
def test_on_a_terminal_it_asks(home: Home, answer: str, stays: bool) -> None:
    ruin = home.cache.op("ruin", so=None)
    control, terminal = pty.openpty()
    os.write(control, f"{answer}\n".encode())
    done = subprocess.run(
        home.argv(), env=home.env, cwd=home.patient.cwd, stdin=terminal, capture_output=True, text=True, timeout=100
    )
    os.close(control)
    os.close(terminal)
    assert done.returncode == 0, done.stderr
    assert "Remove these 1?" in done.stderr
    assert ruin.exists() is stays


def test_a_recorded_machines_cache_is_never_cleaned_here(home: Home) -> None:
    ruin = home.cache.op("ruin", so=None)
    recorded = home.patient.cwd / "facts.json"
    recorded.write_bytes(encode(home.cache.snapshot()))
    done = home.clean("--yes", "--snapshot", os.fspath(recorded))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dsdoctor: --clean cleans this machine: it does not go with --snapshot or --ds-report\n"
    assert ruin.exists()


def test_without_torch_nothing_is_looked_at(home: Home) -> None:
    home.cache.op("ruin", so=None)
    for entry in home.patient.site.glob("torch*"):
        shutil.rmtree(entry)
    done = home.clean("--yes")
    assert done.returncode == 0
    assert "cannot be told without torch" in done.stdout
    assert (home.cache.root / "ruin").exists()
