"""DeepSpeed read from its files, as its setup.py writes them; nothing is imported."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.facts import DeepSpeed, Distribution, Packages, Python
from dsdoctor.probes import ProbeFailed, deepspeed
from dsdoctor.probes.system import System

SOURCE = """version='0.9.5+unknown'
git_hash='unknown'
git_branch='unknown'
installed_ops={'cpu_adam': True, 'fused_adam': False, 'async_io': False, 'utils': True}
compatible_ops={'cpu_adam': True, 'fused_adam': True}
torch_info={'version': '2.0', 'bf16_support': False, 'cuda_version': '11.8', 'nccl_version': '2.14', 'hip_version': '0.0'}
"""
WHEEL = """version='0.19.8'
git_hash='unknown'
git_branch='unknown'
installed_ops={'cpu_adam': False, 'fused_adam': False}
accelerator_name='cpu'
torch_info={'version': '0.0', 'bf16_support': False, 'cuda_version': '0.0', 'nccl_version': '0.0', 'hip_version': '0.0'}
"""


class Home:
    """An environment with a DeepSpeed in it."""

    def __init__(self, root: Path, recorded: str | None = WHEEL) -> None:
        self.root, self.site, self.bin = root, root / "site-packages", root / "bin"
        self.env: Mapping[str, str] = {"PATH": str(self.bin)}
        self.distribution: dict[str, Any] | None = {"version": "0.19.8"}
        for folder in (
            self.bin,
            self.site / "deepspeed" / "accelerator",
            self.site / "deepspeed" / "ops" / "op_builder",
        ):
            folder.mkdir(parents=True)
        if recorded is not None:
            (self.site / "deepspeed" / "git_version_info_installed.py").write_text(recorded)

    def script(self, first_lines: str, mode: int = 0o755, folder: Path | None = None) -> Path:
        path = (folder or self.bin) / "deepspeed"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{first_lines}\nfrom deepspeed.launcher.runner import main\nmain()\n")
        path.chmod(mode)
        return path

    def read(self) -> DeepSpeed:
        python = Python(
            executable="/v/bin/python", chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr",
            site_packages=(str(self.site),), scripts_dir=str(self.bin),
        )  # fmt: skip
        about = {"name": "deepspeed", "location": str(self.site), **(self.distribution or {})}
        found = {"deepspeed": Distribution(**about)} if self.distribution else {}
        return deepspeed.probe(System(env=self.env), python, Packages(distributions=found))


def test_wheel_without_compiled_ops(tmp_path: Path) -> None:
    found = Home(tmp_path).read()
    assert (found.version, found.built_torch, found.built_cuda, found.built_accelerator) == (
        "0.19.8",
        "0.0",
        "0.0",
        "cpu",
    )
    assert (found.prebuilt_ops, found.prebuilt_files, found.editable) == ((), (), False)
    assert (found.has_accelerator_package, found.has_op_builder) == (True, True)
    assert (found.launcher, found.launcher_executable, found.launcher_on_path) == (None, None, None)


def test_ops_compiled_at_install_time(tmp_path: Path) -> None:
    home = Home(tmp_path, SOURCE)
    for file in ("adam/cpu_adam_op.cpython-310-x86_64-linux-gnu.so", "utils_op.so", "adam/cpu_adam.py"):
        path = home.site / "deepspeed" / "ops" / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    found = home.read()
    assert (found.version, found.built_torch, found.built_cuda) == ("0.9.5+unknown", "2.0", "11.8")
    assert found.prebuilt_ops == ("cpu_adam", "utils")
    assert found.prebuilt_files == ("ops/utils_op.so", "ops/adam/cpu_adam_op.cpython-310-x86_64-linux-gnu.so")


def test_recorded_file_is_read_and_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    home = Home(tmp_path, f"{WHEEL}open({str(mark)!r}, 'w')\n")
    assert home.read().built_torch == "0.0"
    assert not mark.exists()


@pytest.mark.parametrize("recorded", [None, "version='0.19", "torch_info=7\ninstalled_ops=[]\n", "\0\0"])
def test_damaged_record_leaves_the_version_of_the_metadata(tmp_path: Path, recorded: str | None) -> None:
    found = Home(tmp_path, recorded).read()
    assert (found.version, found.built_torch, found.prebuilt_ops) == ("0.19.8", None, ())


def test_incomplete_copy(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (home.site / "deepspeed" / "accelerator").rmdir()
    assert home.read().has_accelerator_package is False


def test_editable_source_keeps_its_parts_beside_the_package(tmp_path: Path) -> None:
    home = Home(tmp_path / "v")
    source = tmp_path / "DeepSpeed"
    for folder in ("deepspeed/ops", "accelerator", "op_builder"):
        (source / folder).mkdir(parents=True)
    home.distribution = {"version": "0.19.9+abc", "editable": str(source)}
    found = home.read()
    assert (found.path, found.version, found.editable) == (str(source / "deepspeed"), "0.19.9+abc", True)
    assert (found.has_accelerator_package, found.has_op_builder) == (True, True)


def test_patient_without_pip_metadata(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.distribution = None
    assert home.read().version == "0.19.8"


def test_not_installed_names_the_interpreter(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.distribution = None
    (home.site / "deepspeed").rename(tmp_path / "elsewhere")
    with pytest.raises(ProbeFailed, match="DeepSpeed is not installed for /v/bin/python"):
        home.read()


posix = pytest.mark.skipif(os.name != "posix", reason="scripts with a first line are POSIX")


@posix
def test_launcher_in_order(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (home.bin / "python").write_text("")
    script = home.script(f"#!{home.bin}/python")
    found = home.read()
    assert (found.launcher, found.launcher_executable, found.launcher_on_path) == (str(script), True, str(script))
    assert (found.launcher_interpreter, found.launcher_interpreter_exists) == (f"{home.bin}/python", True)


@posix
def test_launcher_of_an_environment_that_was_moved(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.script("#!/old/place/bin/python")
    found = home.read()
    assert (found.launcher_interpreter, found.launcher_interpreter_exists) == ("/old/place/bin/python", False)


@posix
def test_launcher_with_a_path_too_long_for_a_first_line(tmp_path: Path) -> None:
    home = Home(tmp_path / "with space")
    (home.bin / "python").write_text("")
    home.script(f"#!/bin/sh\n'''exec' \"{home.bin}/python\" \"$0\" \"$@\"\n' '''")
    found = home.read()
    assert (found.launcher_interpreter, found.launcher_interpreter_exists) == (f"{home.bin}/python", True)


@posix
def test_launcher_that_asks_env_for_its_python(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.script("#!/usr/bin/env python")
    assert home.read().launcher_interpreter == "/usr/bin/env python"
    assert home.read().launcher_interpreter_exists is True


@posix
def test_launcher_that_is_not_executable(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.script("#!/bin/sh", mode=0o644)
    found = home.read()
    assert (found.launcher_executable, found.launcher_on_path) == (False, None)


@posix
def test_another_environments_launcher_comes_first_on_path(tmp_path: Path) -> None:
    home = Home(tmp_path)
    own = home.script("#!/bin/sh")
    other = home.script("#!/bin/sh", folder=tmp_path / "other")
    home.env = {"PATH": f"{other.parent}:{home.bin}"}
    found = home.read()
    assert (found.launcher, found.launcher_on_path) == (str(own), str(other))
