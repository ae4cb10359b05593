"""A lock in the extensions cache: does somebody build there, or would the next run wait for ever?"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsdoctor.facts import CachedOp, Python, Torch
from dsdoctor.probes import caches
from dsdoctor.probes.system import System

PYTHON = Python(executable="p", chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr")
TORCH = Torch(version="2.13.0+cu130", cuda="13.0", path="/venv/lib/python3.11/site-packages/torch")
Builder = Callable[[Path], None]
# torch 2.13's own words (torch.utils.cpp_extension._write_ninja_file), paths shortened
TORCH_2_13 = """ninja_required_version = 1.3
cxx = c++
nvcc = /usr/local/cuda-13.0/bin/nvcc

cflags = -DTORCH_EXTENSION_NAME=cpu_adam -I/ds/includes -isystem /venv/lib/python3.11/site-packages/torch/include -isystem /venv/lib/python3.11/site-packages/torch/include/torch/csrc/api/include -isystem /usr/local/cuda-13.0/include -fPIC -std=c++20
post_cflags =
rule link
  command = $cxx $in $ldflags -o $out
build cpu_adam.so: link a.o b.cuda.o
"""
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


@pytest.fixture
def build_in() -> Iterator[Builder]:
    """Starts a process that works in a folder, as ninja does."""
    running: list[subprocess.Popen[bytes]] = []

    def start(folder: Path) -> None:
        running.append(subprocess.Popen([sys.executable, "-c", "input()"], cwd=folder, stdin=subprocess.PIPE))

    yield start
    for process in running:
        process.communicate()


def op_in(root: Path) -> CachedOp:
    found = caches.probe(System({"TORCH_EXTENSIONS_DIR": os.fspath(root)}), PYTHON, TORCH)
    (op,) = found.ops
    return op


def locked(root: Path) -> Path:
    folder = root / "cpu_adam"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    return folder


@linux_only
def test_somebody_builds_there(tmp_path: Path, build_in: Builder) -> None:
    build_in(locked(tmp_path / "cache"))
    assert op_in(tmp_path / "cache").lock_builder_alive is True


@linux_only
def test_somebody_builds_there_although_the_cache_is_reached_through_a_link(tmp_path: Path, build_in: Builder) -> None:
    build_in(locked(tmp_path / "cache"))
    (tmp_path / "link").symlink_to(tmp_path / "cache")
    assert op_in(tmp_path / "link").lock_builder_alive is True


@linux_only
def test_a_builder_of_another_op_does_not_count(tmp_path: Path, build_in: Builder) -> None:
    locked(tmp_path / "cache")
    (tmp_path / "elsewhere").mkdir()
    build_in(tmp_path / "elsewhere")
    assert op_in(tmp_path / "cache").lock_builder_alive is False


@linux_only
def test_the_lock_of_a_user_whose_processes_are_hidden_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked(tmp_path / "cache")
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    assert op_in(tmp_path / "cache").lock_builder_alive is None


def test_without_a_lock_nothing_is_said_of_a_builder(tmp_path: Path) -> None:
    folder = locked(tmp_path / "cache")
    (folder / "lock").unlink()
    (folder / "cpu_adam.so").touch()
    op = op_in(tmp_path / "cache")
    assert (op.lock_age_s, op.lock_builder_alive) == (None, None)


def test_a_build_that_never_gave_a_library(tmp_path: Path) -> None:
    (locked(tmp_path / "cache") / "build.ninja").write_text(TORCH_2_13, encoding="utf-8")
    assert op_in(tmp_path / "cache").shared_object is None


def test_which_torch_and_nvcc_an_op_was_built_with(tmp_path: Path) -> None:
    (locked(tmp_path / "cache") / "build.ninja").write_text(TORCH_2_13, encoding="utf-8")
    op = op_in(tmp_path / "cache")
    assert (op.torch_path, op.nvcc) == (TORCH.path, "/usr/local/cuda-13.0/bin/nvcc")


def test_without_torch_the_default_folder_is_not_guessed(tmp_path: Path) -> None:
    found = caches.probe(System({"HOME": os.fspath(tmp_path)}), PYTHON, None)
    assert (found.extensions, found.ops) == (None, ())
