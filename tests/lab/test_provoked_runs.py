"""Real training on two ranks, in which one thing goes wrong: the right cause is named and nothing is left behind."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.lab.runs import Trained, Training, train

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.name != "posix", reason="signals, mounts")]
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounts need root"
)
TWO = ("zero2", "--ranks", "2")


def judged(trained: Trained, cause: str, outcome: str) -> str:
    """What was told of the cause; it is the only root, and all is cleared away."""
    assert trained.code == 1, (trained.document.get("summary"), trained.stderr)
    assert trained.left == []
    assert trained.run["outcome"] == outcome
    assert trained.causes == [cause]
    return trained.told(cause)


@pytest.mark.parametrize(
    ("what", "name", "cause"),
    [
        ("kill", "SIGKILL", "run-killed"),
        pytest.param("segv", "SIGSEGV", "rc-minus-11-segfault", marks=pytest.mark.rare),
    ],
)
def test_the_rank_that_a_signal_ended_is_told_from_the_one_that_was_torn_down(
    tmp_path: Path, what: str, name: str, cause: str
) -> None:
    trained = train(tmp_path, *TWO, PROVOKE=f"tiny.take_steps:{what}")
    said = judged(trained, cause, "signal")
    assert "rank 1 fell first" in said
    assert name in said
    assert trained.run["fell_first"] == 1
    assert trained.run["ranks"][1]["signal"] == name
    assert trained.run["ranks"][0]["signal"] is None


@pytest.mark.rare
def test_a_rank_that_ends_before_it_says_a_word(tmp_path: Path) -> None:
    trained = train(tmp_path, *TWO, PROVOKE="start:exit")
    said = judged(trained, "smoke-fails", "exited")
    assert "rank 1" in said
    assert trained.run["ranks"][1]["exit_code"] == 1


def test_a_rank_that_skips_a_collective_is_the_suspect(tmp_path: Path) -> None:
    trained = train(tmp_path, *TWO, PROVOKE="tiny.take_steps:skip")
    said = judged(trained, "nccl-watchdog-timeout", "hung")
    assert "rank 1" in said
    assert "sitecustomize.py" in trained.run["ranks"][1]["stack"]
    assert "all_reduce" in trained.run["ranks"][0]["stack"] or "wait" in trained.run["ranks"][0]["stack"]
    assert trained.run["seconds"] < trained.run["limit_s"] + 60


@pytest.mark.rare
def test_a_port_that_is_taken(tmp_path: Path) -> None:
    trained = train(tmp_path, *TWO, PROVOKE="tiny.rendezvous:bind", PROVOKE_RANK="0")
    judged(trained, "port-in-use", "failed")


@pytest.mark.rare
@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun"])
def test_a_launcher_hides_neither_the_rank_nor_its_signal(tmp_path: Path, launcher: str) -> None:
    trained = train(tmp_path, *TWO, "--launcher", launcher, PROVOKE="tiny.take_steps:kill")
    assert "rank 1 fell first" in judged(trained, "run-killed", "signal")


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.rare)])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: int) -> None:
    training = Training(tmp_path, *TWO, PROVOKE="tiny.take_steps:skip")
    training.wait_for("provoked")
    training.process.send_signal(number)
    trained = training.ended(60)
    assert (trained.code, trained.left) == (130, [])
    assert trained.document["interrupted"] is True


def test_a_configuration_that_deepspeed_refuses(tmp_path: Path) -> None:
    config = tmp_path / "ds_config.json"
    config.write_text('{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 7}}')
    trained = train(tmp_path, "--config", str(config))
    assert (trained.code, trained.left, trained.run["outcome"]) == (1, [], "failed")
    assert trained.run["config"] == str(config)
    assert any(cause.startswith("config") for cause in trained.causes), trained.causes


def test_an_op_that_does_not_build(tmp_path: Path) -> None:
    trained = train(tmp_path, "zero2", CXX="/bin/false", CC="/bin/false", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (trained.code, trained.left, trained.run["outcome"]) == (1, [], "failed")
    assert trained.run["ranks"][0]["last_phase"] == "compile deepspeed_shm_comm"
    assert not list((tmp_path / "cache").rglob("lock"))


def mounted(folder: Path, kind: str, options: str) -> list[str]:
    """A command prefix: what follows it sees another filesystem at ``folder``, and nobody else does."""
    script = f'mount -t {kind} -o {options} {kind} "$0" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(folder)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    if subprocess.run([*mounted(tmp_path, "tmpfs", "size=1m"), "true"], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@needs_root
def test_shared_memory_that_is_too_small(tmp_path: Path, place: Path) -> None:
    """DeepSpeed's CPU collectives map 69 MB a rank there; small sums never touch them, those of 1 MiB do."""
    trained = train(tmp_path, "comm", "--ranks", "2", before=mounted(Path("/dev/shm"), "tmpfs", "size=64k"))
    said = judged(trained, "shm-too-small", "signal")
    assert "64 KiB" in said


@needs_root
@pytest.mark.parametrize(
    ("kind", "options", "cause"), [("tmpfs", "ro", "nvme-path-permission"), ("tmpfs", "size=1m", "nvme-disk-full")]
)
def test_a_swap_folder_that_takes_no_file(tmp_path: Path, place: Path, kind: str, options: str, cause: str) -> None:
    trained = train(tmp_path, "zero3-nvme", "--nvme", str(place), before=mounted(place, kind, options))
    assert (trained.code, trained.left, trained.run["outcome"]) == (1, [], "failed")
    assert trained.run["ranks"][0]["last_phase"] == "plain write and read"
    assert cause in trained.causes
    assert str(place) in trained.told(cause)
    assert list(place.iterdir()) == []


@needs_root
@pytest.mark.rare
def test_a_swap_folder_without_o_direct(tmp_path: Path, place: Path) -> None:
    """ramfs takes everything but O_DIRECT. What comes then hangs on libaio, which this machine may lack."""
    trained = train(
        tmp_path, "zero3-nvme", "--nvme", str(place), "--timeout", "30", before=mounted(place, "ramfs", "size=200m")
    )
    assert trained.left == []
    assert trained.run["swap"]["direct"] is False
    assert "O_DIRECT" in "".join(f["message"] for v in trained.document["verdicts"] for f in v["findings"])


@needs_root
def test_a_memory_limit_that_the_run_exceeds(tmp_path: Path) -> None:
    group = Path("/sys/fs/cgroup/memory/dsdoctor-lab")
    try:
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(250 * 1024 * 1024))
    except OSError:
        pytest.skip("no memory cgroup can be made here")
    enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    try:
        trained = train(tmp_path, "zero2", before=["sh", "-c", enter, "lab"])
        said = judged(trained, "rc-minus-9-host-oom", "signal")
        assert "OOM" in said
        assert trained.run["aftermath"]["oom_kills"] >= 1
    finally:
        group.rmdir()
