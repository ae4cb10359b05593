"""torch read from its files, as wheels write them; nothing is imported."""

from pathlib import Path

import pytest

from dsdoctor.facts import Distribution, Packages, Python, Torch
from dsdoctor.probes import ProbeFailed, torch
from dsdoctor.probes.system import System

# torch/version.py of a wheel since 2.0; older ones have no annotations.
WHEEL = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '2.11.0+cu130'
debug = False
cuda: Optional[str] = '13.0'
git_version = '70d99e998b4955e0049d13a98d77ae1b14db1f45'
hip: Optional[str] = None
xpu: Optional[str] = None
"""
NCCL = {
    "nvidia-nccl-cu12": Distribution(name="nvidia-nccl-cu12", version="2.21.5", location="/x"),
    "nvidia-nccl-cu13": Distribution(name="nvidia-nccl-cu13", version="2.28.9", location="/x"),
}


def read(site: Path, source: str | None, metadata: str | None = None, extra: Path | None = None) -> Torch:
    if source is not None:
        (site / "torch").mkdir(parents=True)
        (site / "torch" / "version.py").write_text(source, encoding="utf-8")
    python = Python(
        executable="/v/bin/python", chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr",
        site_packages=(str(site),), sys_path_extra=(str(extra),) if extra else (),
    )  # fmt: skip
    own = {"torch": Distribution(name="torch", version=metadata, location=str(site))} if metadata else {}
    return torch.probe(System(env={}), python, Packages(distributions={**own, **NCCL}))


def test_cuda_wheel(tmp_path: Path) -> None:
    found = read(tmp_path, WHEEL, "2.11.0")
    assert (found.version, found.base_version, found.cuda, found.hip, found.xpu) == (
        "2.11.0+cu130", "2.11.0", "13.0", None, None,
    )  # fmt: skip
    assert found.path == str(tmp_path / "torch")
    assert found.debug is False
    assert found.cxx11_abi is None


def test_nccl_is_that_of_torchs_cuda_when_two_wheels_lie_there(tmp_path: Path) -> None:
    assert read(tmp_path / "a", WHEEL, "2.11.0").nccl == "2.28.9"
    assert read(tmp_path / "b", WHEEL.replace("13.0", "12.6"), "2.11.0").nccl == "2.21.5"


def test_cpu_wheel_has_neither_cuda_nor_nccl(tmp_path: Path) -> None:
    found = read(tmp_path, WHEEL.replace("'13.0'", "None").replace("+cu130", "+cpu"), "2.11.0+cpu")
    assert (found.version, found.cuda, found.nccl) == ("2.11.0+cpu", None, None)


def test_rocm_wheel(tmp_path: Path) -> None:
    source = WHEEL.replace("'13.0'", "None").replace("hip: Optional[str] = None", "hip: Optional[str] = '6.4.43482'")
    found = read(tmp_path, source, "2.11.0+rocm6.4")
    assert (found.cuda, found.hip, found.nccl) == (None, "6.4.43482", None)


def test_old_wheel_without_annotations(tmp_path: Path) -> None:
    source = "__version__ = '1.13.1+cu117'\ndebug = True\ncuda = '11.7'\ngit_version = '49444c3'\nhip = None\n"
    found = read(tmp_path, source, "1.13.1+cu117")
    assert (found.version, found.cuda, found.debug, found.xpu) == ("1.13.1+cu117", "11.7", True, None)


def test_files_and_not_the_metadata_tell_the_version(tmp_path: Path) -> None:
    assert read(tmp_path, WHEEL, "2.6.0+cu124").version == "2.11.0+cu130"


def test_version_file_is_read_and_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    found = read(tmp_path / "site", f"{WHEEL}open({str(mark)!r}, 'w')\ncuda = open('x').read()\n", "2.11.0")
    assert found.cuda == "13.0"
    assert not mark.exists()


def test_patient_without_pip_metadata(tmp_path: Path) -> None:
    assert read(tmp_path, WHEEL).version == "2.11.0+cu130"


def test_torch_outside_site_packages_without_metadata(tmp_path: Path) -> None:
    read(tmp_path / "source", WHEEL)
    (tmp_path / "site").mkdir()
    assert read(tmp_path / "site", None, extra=tmp_path / "source").path == str(tmp_path / "source" / "torch")


@pytest.mark.parametrize("metadata", [None, "2.11.0"])
def test_no_torch_names_the_interpreter(tmp_path: Path, metadata: str | None) -> None:
    with pytest.raises(ProbeFailed, match="torch is not installed for /v/bin/python") as caught:
        read(tmp_path, None, metadata)
    assert caught.value.unavailable.kind == "failed"
