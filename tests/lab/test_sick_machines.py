"""Machines whose tools, folders and driver misbehave. Each must give the right cause, valid JSON, the exit code of
`design.md`, no check that raises, and nothing left running."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.sick import Answer, Sick
from tests.lab.test_broken_environments import cuda_torch, torch_that

pytestmark = pytest.mark.lab
Make = Callable[[], Sick]
NVML = Path(__file__).parents[2] / "fixtures" / "nvml" / "nvml.c"


def judged(answer: Answer, code: int) -> Answer:
    assert answer.code == code, (answer.causes, answer.document["summary"], answer.stderr)
    assert (answer.crashed, answer.left) == ([], [])
    assert "Traceback" not in answer.stderr
    return answer


def why(answer: Answer, cause: str) -> str:
    assert cause in answer.causes
    return str(next(step["why"] for step in answer.document["plan"] if step["cause"] == cause))


def toolkit(patient: Sick, script: str | None) -> Path:
    """CUDA_HOME with an nvcc that is this script, or a folder."""
    nvcc = patient.home / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    if script is None:
        nvcc.mkdir()
    else:
        nvcc.write_text(f"#!/bin/sh\n{script}\n")
        nvcc.chmod(0o755)
    patient.env["CUDA_HOME"] = str(nvcc.parents[1])
    return nvcc


@pytest.mark.parametrize(
    ("script", "word"),
    [
        (None, "is a directory"),
        pytest.param("echo 'module: loading cuda'", "printed no version", marks=pytest.mark.rare),
        pytest.param("head -c 3000000 /dev/urandom", "printed no version", marks=pytest.mark.rare),
        pytest.param("exit 127", "nvcc", marks=pytest.mark.rare),
        ("kill -SEGV $$", "nvcc"),
    ],
    ids=["directory", "words", "noise", "silent", "crash"],
)
def test_an_nvcc_that_gives_no_version_is_named(sick: Make, script: str | None, word: str) -> None:
    patient = cuda_torch(sick, "13.0")
    nvcc = toolkit(patient, script)
    said = why(judged(patient.examine("--purpose", "builder"), 1), "cuda-home-without-nvcc")
    assert str(nvcc) in said
    assert word in said


@pytest.fixture
def full_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "full"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a full filesystem needs root")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        with pytest.raises(OSError, match="No space left"):
            (folder / "fill").write_bytes(b"x" * 100_000)
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_folder_for_temporary_files_stops_no_examination(sick: Make, full_folder: Path) -> None:
    patient = sick().mirror()
    patient.env["TMPDIR"] = str(full_folder)
    answer = patient.examine()
    judged(answer, 1 if answer.causes else 0)
    assert set(answer.causes) <= {"build-no-space"}, "nothing else is wrong"
    assert answer.document["facts"]["torch_live"]["imported"]["outcome"] == "ok"


@pytest.mark.parametrize("home", [None, pytest.param("/nonexistent", marks=pytest.mark.rare)])
def test_without_a_home_nothing_else_is_wrong(sick: Make, home: str | None) -> None:
    patient = sick().mirror()
    patient.env.pop("HOME", None)
    if home:
        patient.env["HOME"] = home
    answer = judged(patient.examine(), 0)
    assert answer.causes == []
    assert answer.document["facts"]["torch_live"]["imported"]["outcome"] == "ok"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler for the stand-in")
@pytest.mark.parametrize(
    ("fault", "cause", "word"),
    [
        ("FAKE_LOST", "gpu-lost", "GPU 1"),
        pytest.param("FAKE_CRASH", "nvml-unavailable", "GPU 1: NVML crashed with SIGABRT", marks=pytest.mark.rare),
        ("FAKE_HANG", "nvml-unavailable", "GPU 1: NVML did not answer"),
    ],
)
def test_an_nvml_that_fails_at_the_second_gpu_still_tells_of_the_first(
    sick: Make, fault: str, cause: str, word: str
) -> None:
    patient = sick().mirror()
    library = patient.home / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, NVML], check=True)
    patient.env |= {"LD_LIBRARY_PATH": str(patient.home), fault: "1"}
    answer = judged(patient.examine("--purpose", "multi-gpu"), 1)
    assert answer.first_cause == cause
    assert word in why(answer, cause)
    first, second = answer.document["facts"]["gpus"]["devices"]
    assert first["total_bytes"] == 80 * 2**30
    assert second["error"]


def test_packages_without_metadata_are_known_by_their_files(sick: Make) -> None:
    patient = sick().mirror()
    for metadata in (*patient.site.glob("*.dist-info"), *patient.site.glob("*.egg-info")):
        metadata.unlink()
    answer = judged(patient.examine(), 0)
    assert answer.causes == []
    facts = answer.document["facts"]
    assert facts["torch"]["version"]
    assert facts["deepspeed"]["version"]


def test_torch_that_floods_both_streams_and_ends_the_process(sick: Make) -> None:
    noise = 'import os, sys\nsys.stdout.write("noise " * 1_000_000)\nsys.stdout.flush()\nsys.stderr.write("x" * 3_000_000)\n'
    answer = judged(torch_that(sick, noise + "os._exit(3)\n").examine(), 1)
    assert answer.first_cause == "import-crashes"
    assert "3" in why(answer, "import-crashes")


def test_torch_that_leaves_a_child_behind_leaves_nothing_running(sick: Make) -> None:
    child = 'import os, subprocess\nsubprocess.Popen(["sleep", "300"])\nos._exit(0)\n'
    answer = judged(torch_that(sick, child).examine(), 1)
    assert answer.first_cause == "import-crashes"
