"""The same intention is another command on another machine."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsdoctor.facts import Host, Python
from dsdoctor.prescribe import Prescriber

DEBIAN = Host(system="linux", kernel="6", machine="x86_64", package_manager="apt", is_root=True)
VENV = Python(
    executable="/w/v/bin/python",
    chosen_because="x",
    version="3.11.7",
    prefix="/w/v",
    base_prefix="/usr",
    environment="venv",
)


def replace_host(fact: Host, **changes: object) -> Host:
    return msgspec.structs.replace(fact, **changes)


def replace(fact: Python, **changes: object) -> Python:
    return msgspec.structs.replace(fact, **changes)


@pytest.mark.parametrize(
    ("python", "command"),
    [
        (VENV, "/w/v/bin/python -m pip install torch==2.13.0"),
        (replace(VENV, environment="uv", uv="/bin/uv"), "uv pip install --python /w/v/bin/python torch==2.13.0"),
        (replace(VENV, has_pip=False, uv="/bin/uv"), "uv pip install --python /w/v/bin/python torch==2.13.0"),
        (replace(VENV, executable="/my env/bin/python"), "'/my env/bin/python' -m pip install torch==2.13.0"),
    ],
    ids=["venv", "uv", "no pip", "blank in path"],
)
def test_install_into_the_patients_environment(python: Python, command: str) -> None:
    assert (
        Prescriber(DEBIAN, python).pip("torch==2.13.0").replace("torch==2.13.0", "torch==2.13.0").replace("''", "'")
        == command
    )


def test_system_package_by_package_manager() -> None:
    fedora = msgspec.structs.replace(DEBIAN, package_manager="dnf", is_root=False)
    assert Prescriber(DEBIAN, VENV).system("libaio-dev") == ("apt-get update && apt-get install -y libaio-dev",)
    assert Prescriber(fedora, VENV).system("libaio-dev") == ("sudo dnf install -y libaio-devel",)
    user = msgspec.structs.replace(DEBIAN, is_root=False)
    assert Prescriber(user, VENV).system("g++") == ("sudo apt-get update && sudo apt-get install -y g++",)
    assert Prescriber(None, None).system("libaio-dev") == ()


COLAB = msgspec.structs.replace(DEBIAN, hosted_on="colab")
WINDOWS = msgspec.structs.replace(DEBIAN, system="windows")


def test_notebook_commands_are_typed_with_an_exclamation_mark() -> None:
    assert Prescriber(COLAB, VENV).pip("ninja").startswith("!")


def test_variables_by_shell() -> None:
    unix, windows = Prescriber(DEBIAN, VENV), Prescriber(WINDOWS, VENV)
    assert unix.set("A", "b") == "export A=b"
    assert unix.set("A", "b c") == "export A='b c'"
    assert unix.set("PATH", "/my tools:$PATH") == 'export PATH="/my tools:$PATH"'
    assert unix.unset("A") == "unset A"
    assert windows.set("A", "b") == 'set "A=b"'
    assert windows.set("PATH", "C:\\Program Files\\ninja;$PATH") == 'set "PATH=C:\\Program Files\\ninja;%PATH%"'
    assert windows.unset("A") == 'set "A="'


LITERAL = st.text(st.characters(exclude_characters="\0$", exclude_categories=["Cs"]), max_size=12)
ANY_VALUE = st.lists(LITERAL | st.sampled_from(["$OTHER", "${OTHER}", "$ $1 $$", "!", "`id`", "$(id)", '"', "'", "\\", "{x}"]),
                     max_size=5).map("".join)  # fmt: skip
OTHER = "/o ther/$HOME/*"


def meant(value: str) -> str:
    """The value with its variables replaced and nothing else touched."""
    value = re.sub(r"(^|:)~(?=[/:]|\Z)", r"\1${HOME}", value)
    known = {"OTHER": OTHER, "HOME": "/my home"}
    return re.sub(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", lambda m: known.get(m[1] or m[2], ""), value, flags=re.A)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads the command")
@settings(deadline=None, max_examples=60)
@given(ANY_VALUE)
@example("~/cuda:$OTHER")
@example("/opt/my cuda/lib64:$OTHER")
@example("$OTHER[1]:tail")
def test_a_shell_reads_back_what_was_meant(value: str) -> None:
    command = Prescriber(DEBIAN, VENV).set("GIVEN", value)
    done = subprocess.run(
        ["bash", "-c", f'{command}\nprintf %s "$GIVEN"'],
        env={"OTHER": OTHER, "HOME": "/my home", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    assert done.stdout.decode() == meant(value)


@settings(deadline=None)
@given(ANY_VALUE)
@example("~/cuda:$OTHER")
def test_a_notebook_reads_back_what_was_meant(value: str) -> None:
    """IPython's %env expands no variable of the environment (IPython/core/magics/osm.py), so it is plain Python there."""
    command = Prescriber(COLAB, VENV).set("GIVEN", value)
    environ = {"OTHER": OTHER, "HOME": "/my home"}
    exec(command.removeprefix("import os; "), {"os": SimpleNamespace(environ=environ)})
    assert environ["GIVEN"] == meant(value)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")
def test_files_with_odd_names_are_removed_and_nothing_else(tmp_path: Path) -> None:
    odd, folder, kept = tmp_path / "-rf $HOME; it's", tmp_path / "a b", tmp_path / "kept"
    odd.write_text("x")
    (folder / "c").mkdir(parents=True)
    kept.write_text("x")
    subprocess.run(["sh", "-c", Prescriber(DEBIAN, VENV).remove(str(odd), str(folder))], check=True)
    assert list(tmp_path.iterdir()) == [kept]


def test_removal_by_shell() -> None:
    colab, windows = replace_host(DEBIAN, hosted_on="colab"), replace_host(DEBIAN, system="windows")
    assert Prescriber(colab, VENV).remove("/tmp/a b") == "!rm -rf -- '/tmp/a b'"
    written = Prescriber(windows, VENV).remove(r"C:\tmp\it's", r"D:\b")
    assert written.split(" -LiteralPath ")[1] == r"""'C:\tmp\it''s', 'D:\b'" """.strip()


def test_system_python_that_pip_may_not_touch_gets_a_virtual_environment() -> None:
    system = replace(VENV, executable="/usr/bin/python3", environment="system", externally_managed=True)
    assert Prescriber(DEBIAN, system).pip("ninja") == (
        "/usr/bin/python3 -m venv .venv && .venv/bin/python -m pip install ninja"
    )
    docker = msgspec.structs.replace(DEBIAN, container="docker")
    assert Prescriber(docker, system).pip("ninja") == "/usr/bin/python3 -m pip install --break-system-packages ninja"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads the command")
@pytest.mark.parametrize("path", ["~/v/bin/python", "~/my env/bin/python", "/my env/~/python", "/v$x/`id`/python"])
def test_paths_of_a_redacted_machine_are_found_by_the_shell(path: str) -> None:
    rx = Prescriber(DEBIAN, replace(VENV, executable=path, prefix=path, environment="conda"))
    wanted = re.sub(r"\A~", "/my home", path)
    assert rx.conda("nvcc") == f"conda install -y -p {rx.python} -c conda-forge nvcc"
    done = subprocess.run(["bash", "-c", f"printf %s {rx.python}"], env={"HOME": "/my home"}, capture_output=True)
    assert done.stdout.decode() == wanted
