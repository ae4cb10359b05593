"""What a run changes in the environment, where ops are compiled, and how launchers are called."""

import json
import os
import sys
import sysconfig
from pathlib import Path

import pytest

from dsdoctor.facts import Python
from dsdoctor.probes.system import System
from dsdoctor.smoke import folder, launch
from dsdoctor.smoke.order import Job
from dsdoctor.smoke.recipes import BY_NAME


def patient(site: Path | None = None) -> Python:
    return Python(
        executable="/venv/bin/python", chosen_because="-", version="3.11.7", prefix=sys.prefix, base_prefix="/usr",
        site_packages=(str(site or sysconfig.get_path("purelib")),),
    )  # fmt: skip


def job(recipe: str = "zero2", ranks: int = 1, **rest: object) -> Job:
    return Job(recipe=BY_NAME[recipe], ranks=ranks, **{"use_gpu": False, **rest})  # type: ignore[arg-type]


def launched(one: Job, **env: str) -> list[launch.Launch]:
    places = launch.Places(folder="/f", cache="/cache", port=4711)
    return launch.launches(System(env=env), patient(), one, places)


def test_each_rank_gets_its_place_and_none_of_another_launcher() -> None:
    stale = {"RANK": "3", "CROSS_SIZE": "8", "GROUP_RANK": "1", "MASTER_ADDR": "node7", "KEPT": "yes"}
    found = launched(job(ranks=2), TORCH_EXTENSIONS_DIR="/theirs", **stale)
    assert [(one.rank, one.env["RANK"], one.env["LOCAL_RANK"], one.env["WORLD_SIZE"]) for one in found] == [
        (0, "0", "0", "2"),
        (1, "1", "1", "2"),
    ]
    for one in found:
        assert (one.env["MASTER_ADDR"], one.env["MASTER_PORT"], one.env["KEPT"]) == ("127.0.0.1", "4711", "yes")
        assert not {"CROSS_SIZE", "GROUP_RANK"} & one.env.keys()
        assert (one.env["DS_ACCELERATOR"], one.env["CUDA_VISIBLE_DEVICES"]) == ("cpu", "")
        assert one.env["TORCH_EXTENSIONS_DIR"] == "/cache"


def test_on_gpus_the_users_choice_of_devices_and_accelerator_stays() -> None:
    (found,) = launched(job(use_gpu=True), CUDA_VISIBLE_DEVICES="3")
    assert found.env["CUDA_VISIBLE_DEVICES"] == "3"
    assert "DS_ACCELERATOR" not in found.env


def test_nccl_speaks_into_a_file_at_the_users_own_level() -> None:
    assert launched(job())[0].env["NCCL_DEBUG"] == "INFO"
    (found,) = launched(job(), NCCL_DEBUG="TRACE", NCCL_DEBUG_FILE="/theirs")
    assert (found.env["NCCL_DEBUG"], found.env["NCCL_DEBUG_FILE"]) == ("TRACE", "/f/nccl/%p")


@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun"])
def test_a_launcher_is_the_patients_own_and_gets_the_same_order(launcher: str) -> None:
    (found,) = launched(job("zero3", 2, launcher=launcher))
    assert found.rank is None
    assert found.argv[:2] == ("/venv/bin/python", "-m")
    assert "4711" in found.argv
    order = json.loads(found.argv[-1])
    assert (order["recipe"], order["stage"], order["cpu"]) == ("zero3", 3, True)
    assert not {"RANK", "WORLD_SIZE"} & found.env.keys()


@pytest.mark.parametrize("user", [{}, {"HOME": "/proc/none"}, {"XDG_CACHE_HOME": "relative"}])
def test_without_a_home_the_users_cache_is_still_not_touched(user: dict[str, str]) -> None:
    found = folder.cache_folder(System(env={**user, "TORCH_EXTENSIONS_DIR": "/theirs"}), patient())
    assert found is not None
    assert Path(found).is_absolute()
    assert found != "/theirs"
    Path(found).rmdir()


def test_another_torch_or_deepspeed_gets_a_cache_of_its_own(tmp_path: Path) -> None:
    """ninja does not see that the torch under an op has changed, and the old op would not load."""
    folders = set()
    for torch, deepspeed in (("2.6.0+cu126", "0.16.9"), ("2.7.0", "0.16.9"), ("2.7.0", "0.17.0")):
        site = tmp_path / f"{torch}-{deepspeed}"
        for name in (f"torch-{torch}", f"deepspeed-{deepspeed}"):
            (site / f"{name}.dist-info").mkdir(parents=True)
        folders.add(folder.cache_folder(System({"XDG_CACHE_HOME": str(tmp_path / "cache")}), patient(site)))
    assert len(folders) == 3
    assert all(Path(str(path)).is_dir() for path in folders)


def test_lock_of_a_killed_run_is_released_and_a_young_one_is_not(tmp_path: Path) -> None:
    for name in ("old", "young"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").write_text("")
    os.utime(tmp_path / "old/lock", (1, 1))
    folder.release_locks(System(), str(tmp_path), folder.OLD_LOCK_S)
    assert [p.parent.name for p in tmp_path.glob("*/lock")] == ["young"]


def test_lines_of_a_rank_come_whole_and_in_order_however_they_were_written() -> None:
    with folder.private(2) as private:
        writer = os.open(os.path.join(private.path, "events", "rank1"), os.O_WRONLY)
        os.write(writer, b"one\ntw")
        assert list(private.lines()) == [(1, b"one")]
        os.write(writer, b"o\n")
        os.close(writer)
        assert list(private.lines()) == [(1, b"two")]
        assert list(private.lines()) == []
    assert not Path(private.path).exists()


STACK = """Fatal Python error: Segmentation fault

Thread 0x00007f49f6c9a6c0 (most recent call first):
  File "/site/dsdoctor/smoke/patient/channel.py", line 117 in _sample
  File "/usr/lib/python3.12/threading.py", line 1010 in run

Thread 0x00007f787b7fe6c0 (most recent call first):
  <no Python frame>

Current thread 0x00007f49f779e300 (most recent call first):
  File "/usr/lib/python3.12/ctypes/__init__.py", line 525 in string_at
"""


def test_of_a_crash_the_thread_that_crashed_is_kept() -> None:
    """Form of Python 3.12's faulthandler, recorded on an H200."""
    with folder.private(1) as private:
        Path(private.path, "stacks", "rank0").write_text(STACK)
        found = private.stack(0) or ""
    assert found.startswith("Fatal Python error: Segmentation fault")
    assert found.endswith("line 525 in string_at")
    assert "_sample" not in found
    assert "no Python frame" not in found
