"""nvidia-smi and nvcc pasted beside a ds_report: found by content, and never found in a ds_report alone."""

from pathlib import Path

import pytest

from dsdoctor.examination import take_snapshot
from dsdoctor.facts import Snapshot
from dsdoctor.request import Request

FIXTURES = Path(__file__).parents[2] / "fixtures"
REPORTS = sorted(path.name for path in (FIXTURES / "ds_report").glob("*.txt"))
SMI = (FIXTURES / "transcripts" / "nvidia-smi__h200-x2.txt").read_text()
NVCC = (FIXTURES / "transcripts" / "nvcc-version__13.0.txt").read_text()
MATCHED = ("purpose", "ds_report", "torch", "deepspeed", "toolkits", "gpus")


def told(folder: Path, *texts: str) -> Snapshot:
    file = folder / "pasted.txt"
    file.write_text("\n".join(texts))
    return take_snapshot(Request(ds_report=str(file)))


def report(name: str) -> str:
    return (FIXTURES / "ds_report" / name).read_text(errors="replace")


@pytest.mark.parametrize("name", REPORTS)
def test_a_ds_report_alone_says_nothing_of_gpus(name: str, tmp_path: Path) -> None:
    assert told(tmp_path, report(name)).gpus is None


@pytest.mark.parametrize("order", [1, -1])
def test_nvidia_smi_beside_it_gives_the_gpus_and_the_driver(order: int, tmp_path: Path) -> None:
    found = told(tmp_path, *[report("0.19.8__accel-cuda.txt"), "$ nvidia-smi\n" + SMI][::order])
    assert found.gpus is not None
    assert (found.gpus.driver_version, len(found.gpus.devices)) == ("580.159.04", 2)
    assert found.ds_report is not None
    assert found.ds_report.complete
    assert found.torch is not None
    assert "gpus" not in found.unavailable


def test_nvcc_fills_what_the_report_does_not_know(tmp_path: Path) -> None:
    bare = told(tmp_path, "$ nvcc --version\n" + NVCC, report("0.19.8__cpu-torch.txt")).toolkits
    assert bare is not None
    assert [kit.version for kit in bare.found if kit.version] == ["13.0"]
    failed = told(tmp_path, "/opt/cuda/bin/nvcc\n" + NVCC, report("0.19.8__accel-cuda_nvcc-missing.txt")).toolkits
    assert failed is not None
    assert failed.nvcc_on_path == "/opt/cuda/bin/nvcc"
    assert failed.selected is None or failed.selected.version is None, "CUDA_HOME's nvcc is still not there"


def test_an_nvcc_whose_folder_is_not_told_is_no_toolkit_to_point_at(tmp_path: Path) -> None:
    found = told(tmp_path, NVCC, report("0.19.8__accel-cuda_nvcc-missing.txt")).toolkits
    assert found is not None
    assert [kit.version for kit in found.found] == [None]


def test_the_reports_own_nvcc_counts(tmp_path: Path) -> None:
    found = told(tmp_path, NVCC, report("0.19.8__accel-cuda_nvcc-12.4.txt")).toolkits
    assert found is not None
    assert [kit.version for kit in found.found] == ["12.4"]


def test_nothing_of_this_machine_is_mixed_into_a_pasted_report(tmp_path: Path) -> None:
    found = told(tmp_path, report("0.19.8__accel-cuda.txt"), SMI, NVCC)
    here = [name for name in found.__struct_fields__ if name not in MATCHED]
    sections = {name: getattr(found, name) for name in here if name in found.unavailable}
    assert {"host", "python", "memory", "torch_live", "environment", "packages"} <= set(sections)
    assert not any(sections.values())
