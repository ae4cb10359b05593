"""Lists of packages: recordings of pip and uv, and short texts after conda's."""

from pathlib import Path

import pytest

from dsdoctor.readers import package_list
from dsdoctor.readers.told import Build

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
# conda/cli/main_list.py prints this head and these columns.
CONDA = """
# packages in environment at /opt/conda/envs/train:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                 conda_forge    conda-forge
deepspeed                 0.12.6                   pypi_0    pypi
python                    3.10.13         hd12c33a_0_cpython    conda-forge
pytorch                   2.1.2           py3.10_cuda12.1_cudnn8.9.2_0    pytorch
"""
EXPORT = """
name: train
channels:
  - pytorch
dependencies:
  - python=3.9.18=h955ad1f_0
  - pytorch=1.13.1=py3.9_cuda11.7_cudnn8.5.0_0
  - numpy=1.26.2
  - pip:
      - deepspeed==0.9.5
prefix: /home/user/miniconda3/envs/train
"""


def recording(name: str) -> str:
    return (TRANSCRIPTS / name).read_text()


@pytest.mark.parametrize(
    ("name", "whole"), [("pip-list.txt", True), ("uv-pip-list.txt", True), ("pip-freeze.txt", False)]
)
def test_recordings(name: str, whole: bool) -> None:
    (told,) = package_list.parse(recording(name))
    assert (told.torch, told.deepspeed, told.build, told.whole) == ("2.13.0+cpu", "0.19.8", Build("cpu"), whole)
    assert told.packages["accelerate"] == "1.15.0"
    assert told.packages["ast-serialize"] == "0.13.1"
    assert told.packages["dsdoctor"] == "0.1.0", "an editable install has its version too"
    assert ("setuptools" in told.packages) == whole, "pip freeze leaves it out"


def test_cuda_by_the_runtime_wheel_that_torch_pins() -> None:
    (told,) = package_list.parse(recording("pip-freeze__h200.txt"))
    assert (told.torch, told.build) == ("2.11.0", Build("cuda", "13.0"))


def test_conda() -> None:
    (told,) = package_list.parse(CONDA)
    assert (told.torch, told.build, told.python) == ("2.1.2", Build("cuda", "12.1"), "3.10.13")
    assert (told.deepspeed, told.prefix, told.whole) == ("0.12.6", "/opt/conda/envs/train", True)
    assert "python" not in told.packages


def test_conda_forge_writes_cuda_without_a_dot() -> None:
    (told,) = package_list.parse("# Name Version Build Channel\npytorch 2.3.0 cuda120_py310h3563f98_300 conda-forge\n")
    assert told.build == Build("cuda", "12.0")
    (told,) = package_list.parse("# Name Version Build Channel\npytorch 2.3.0 cpu_generic_py310h_0 conda-forge\n")
    assert told.build == Build("cpu")


def test_conda_env_export() -> None:
    (told,) = package_list.parse(EXPORT)
    assert (told.torch, told.build, told.deepspeed) == ("1.13.1", Build("cuda", "11.7"), "0.9.5")
    assert (told.python, told.prefix, told.whole) == ("3.9.18", "/home/user/miniconda3/envs/train", False)


def test_odd_lines_of_pip_freeze() -> None:
    text = (
        "accelerate @ git+https://github.com/huggingface/accelerate@0123456789abcdef\n"
        "numpy @ file:///croot/numpy_1701295038425/work/dist/numpy-1.26.2-cp310-cp310-linux_x86_64.whl#sha256=2ab6\n"
        "-e git+https://github.com/deepspeedai/DeepSpeed@0123456789abcdef#egg=deepspeed\n"
        "# Editable Git install with no remote (deepspeed==0.14.1+abc)\n-e /home/user/DeepSpeed\n"
        'triton==2.1.0; platform_system == "Linux"\n'
        "torch==2.1.2+cu118\n"
    )
    (told,) = package_list.parse(text)
    assert told.packages == {"numpy": "1.26.2", "deepspeed": "0.14.1+abc", "triton": "2.1.0", "torch": "2.1.2+cu118"}
    assert told.build == Build("cuda", "11.8")


def test_what_pip_and_uv_say_that_they_did() -> None:
    text = (
        "Requirement already satisfied: torch>=1.9 in /opt/env/lib/python3.10/site-packages (from deepspeed) (2.0.1+cu118)\n"
        "Successfully installed deepspeed-0.9.5 nvidia-cublas-cu12-12.1.3.1 py-cpuinfo-9.0.0\n"
    )
    (told,) = package_list.parse(text)
    assert told.packages == {
        "torch": "2.0.1+cu118",
        "deepspeed": "0.9.5",
        "nvidia-cublas-cu12": "12.1.3.1",
        "py-cpuinfo": "9.0.0",
    }
    assert told.site_packages == "/opt/env/lib/python3.10/site-packages"
    (told,) = package_list.parse("Installed 2 packages in 12ms\n + torch==2.5.1\n - triton==3.0.0\n + triton==3.1.0\n")
    assert told.packages == {"torch": "2.5.1", "triton": "3.1.0"}


def test_an_example_in_a_sentence_is_no_list() -> None:
    assert package_list.parse("try\ntorch==2.0.1\nand tell us\n") == ()
    assert package_list.parse("Package Version\nfoo 1.0\n") == ()


def test_a_list_that_was_cut_is_not_whole() -> None:
    (told,) = package_list.parse("Package Version\n------- -------\naccelerate 1.0\n...\ntorch 2.0\n")
    assert (told.packages, told.whole) == ({"accelerate": "1.0"}, False)
