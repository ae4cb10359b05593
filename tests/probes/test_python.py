"""Choosing the patient's interpreter, and asking a real one."""

import ast
import os
import sys
import venv
from pathlib import Path

import pytest

from dsdoctor.probes import ProbeFailed, python
from dsdoctor.probes.system import System

PATH = {"PATH": os.environ.get("PATH", os.defpath)}


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def environment_at(prefix: Path) -> Path:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/python").symlink_to(sys.executable)
    return prefix / "bin/python"


def test_active_environment_comes_first(tmp_path: Path) -> None:
    inside = environment_at(tmp_path / "venv")
    env = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "none"), **PATH}
    assert python.choose(System(env=env), None) == (str(inside), "the active virtual environment")


def test_environment_that_was_deleted_is_passed_over(tmp_path: Path) -> None:
    assert python.choose(System(env={"VIRTUAL_ENV": str(tmp_path / "gone"), **PATH}), None)[0] == sys.executable


def test_tool_home_is_not_the_patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "uv/tools/dsdoctor"
    own, neighbour = environment_at(home), environment_at(tmp_path / "uv/tools/dsdoctor-x")
    monkeypatch.setattr(sys, "prefix", str(home))
    env = {"PATH": f"{own.parent}:{neighbour.parent}"}
    found, because = python.choose(System(env=env), None)
    assert found == str(neighbour)
    assert "PATH" in because


@pytest.mark.parametrize("wanted", ["venv", "venv/bin/python", "./venv/bin/../bin/python"])
def test_named_relative_to_the_working_folder(tmp_path: Path, wanted: str) -> None:
    inside = environment_at(tmp_path / "venv")
    assert python.choose(System(env=PATH, cwd=str(tmp_path)), wanted) == (str(inside), "named by --python")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("nowhere/python", "no such program"),
        ("", "no such program"),
        ("no\0name", "no such program"),
        ("empty", "folder without a Python"),
        ("text.txt", "no Python"),
        ("script", "no Python"),
        ("/bin/echo", "asked for its version it said"),
        ("/bin/true", "it said nothing"),
        ("dies", "exit code 3, boom"),
        ("two", "is Python 2"),
    ],
)
def test_named_is_no_python(tmp_path: Path, wanted: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("hello")
    program(tmp_path / "script", "no shebang\x00\xff")
    program(tmp_path / "dies", "#!/bin/sh\necho boom >&2\nexit 3\n")
    program(tmp_path / "two", "#!/bin/sh\necho 'dsdoctor asks python 2'\n")
    with pytest.raises(ProbeFailed) as caught:
        python.choose(System(env=PATH, cwd=str(tmp_path)), wanted)
    detail = caught.value.unavailable.detail
    assert words in detail
    assert "\n" not in detail


def test_deleted_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ProbeFailed):
        python.choose(System(env=PATH), "venv/bin/python")
    assert python.probe(System(env=PATH), sys.executable, "-").cwd is None
    monkeypatch.chdir(tmp_path)


def test_a_talkative_site_configuration_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome to the cluster')\n")
    system = System(env={**PATH, "PYTHONPATH": str(tmp_path)})
    assert python.choose(system, sys.executable)[0] == sys.executable
    found = python.probe(system, sys.executable, "-")
    assert found.version == ".".join(str(n) for n in sys.version_info[:3])
    assert found.sys_path_extra[0] == str(tmp_path)


def test_safe_path_does_not_hide_pythonpath(tmp_path: Path) -> None:
    found = python.probe(System(env={**PATH, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}), sys.executable, "-")
    assert str(tmp_path) in found.sys_path_extra


def test_broken_pythonhome_is_stepped_around(tmp_path: Path) -> None:
    system = System(env={**PATH, "PYTHONHOME": str(tmp_path)})
    assert python.choose(system, sys.executable)[0] == sys.executable
    found = python.probe(system, sys.executable, "-")
    assert found.prefix == sys.prefix
    assert found.site_packages


def test_scripts_on_path() -> None:
    folder = os.path.join(sys.prefix, "bin")
    assert python.probe(System(env={"PATH": f"/nowhere:{folder}/"}), sys.executable, "-").scripts_on_path is True
    assert python.probe(System(env={"PATH": "/nowhere"}), sys.executable, "-").scripts_on_path is False


def test_no_python_at_all(tmp_path: Path) -> None:
    with pytest.raises(ProbeFailed, match="no working Python"):
        python.probe(System(env=PATH), str(tmp_path / "python"), "-")


@pytest.mark.skipif(os.name != "posix", reason="layout of a POSIX environment")
def test_environment_whose_broken_pth_ends_python_is_still_described(tmp_path: Path) -> None:
    """The fallback starts without site: it must not describe the interpreter below the environment instead."""
    venv.create(tmp_path / "v", symlinks=True, with_pip=False)
    site = next((tmp_path / "v").glob("lib/python*/site-packages"))
    (site / "broken_pth.pth").write_text("import os; os._exit(9)\n")
    found = python.probe(System(env=PATH), str(tmp_path / "v/bin/python"), "-")
    assert (found.prefix, found.environment) == (str(tmp_path / "v"), "venv")
    assert found.site_packages == (str(site),)
    assert found.scripts_dir == str(tmp_path / "v/bin")
    assert found.has_pip is False


@pytest.mark.skipif(os.name != "posix", reason="layout of a POSIX environment")
def test_kinds_of_environment(tmp_path: Path) -> None:
    venv.create(tmp_path / "v", symlinks=True, with_pip=False)
    executable = str(tmp_path / "v/bin/python")
    assert python.probe(System(env=PATH), executable, "-").environment == "venv"
    with open(tmp_path / "v/pyvenv.cfg", "a") as file:
        file.write("uv = 0.5.1\n")
    assert python.probe(System(env=PATH), executable, "-").environment == "uv"
    (tmp_path / "v/conda-meta").mkdir()
    assert python.probe(System(env=PATH), executable, "-").environment == "conda"


def test_scripts_run_on_the_oldest_python_that_users_train_with() -> None:
    for script in (*python.SCRIPTS.glob("*.py"), *(python.SCRIPTS.parents[1] / "smoke" / "patient").glob("*.py")):
        ast.parse(script.read_text(encoding="utf-8"), str(script), feature_version=(3, 8))
