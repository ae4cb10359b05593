"""The environments that crash, silence or mislead other doctors. Each must give the right cause, valid JSON and exit 1 soon.

"Soon" is 10 s on an idle machine of two cores; the tests print the seconds, the benchmark measures them.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.sick import Sick

pytestmark = pytest.mark.lab

VERSION = 'from typing import Optional\n__version__ = "2.13.0+cpu"\ndebug = False\ncuda: Optional[str] = None\nhip: Optional[str] = None\n'
Make = Callable[[], Sick]


def torch_that(make: Make, init: str) -> Sick:
    patient = make().mirror(without=("torch", "functorch"))
    patient.fake("torch", "2.13.0+cpu", init, version=VERSION)
    return patient


@pytest.mark.parametrize("kept", [200_000_000, 0], ids=["truncated", "zeroed"])
def test_damaged_libtorch_is_named_before_the_crash_that_it_causes(sick: Make, kept: int) -> None:
    patient = sick().mirror()
    library = patient.own("torch") / "lib" / "libtorch_cpu.so"
    source = library.read_bytes()[:kept]
    patient.rewrite(library, source)
    answer = patient.examine()
    assert answer.code == 1
    assert answer.first_cause == "package-files-damaged"
    assert any("libtorch_cpu.so" in step["why"] for step in answer.document["plan"])
    assert any("--force-reinstall" in c and "torch" in c for c in answer.document["plan"][0]["commands"])


def test_torch_that_raises_names_the_missing_library(sick: Make) -> None:
    patient = torch_that(
        sick, 'raise ImportError("libcudart.so.12: cannot open shared object file: No such file or directory")\n'
    )
    answer = patient.examine()
    assert answer.code == 1
    assert answer.first_cause == "runtime-lib-not-found"
    assert "libcudart.so.12" in answer.document["plan"][0]["why"]


def test_torch_that_segfaults_is_reported_with_its_signal(sick: Make) -> None:
    patient = torch_that(sick, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    answer = patient.examine()
    assert answer.code == 1
    assert answer.first_cause == "import-crashes"
    assert "SIGSEGV" in answer.document["plan"][0]["why"]
    assert answer.document["facts"]["torch"]["version"] == "2.13.0+cpu", "what the files say survives the crash"


def test_torch_that_hangs_does_not_hang_the_doctor(sick: Make) -> None:
    patient = torch_that(sick, "import time\ntime.sleep(60)\n")
    answer = patient.examine()
    assert answer.code == 1
    assert answer.first_cause == "import-hangs"
    assert answer.seconds < 30, "the import alone sleeps for 60 s"


def test_torch_that_ends_the_process_is_reported(sick: Make) -> None:
    answer = torch_that(sick, "import os\nos._exit(7)\n").examine()
    assert answer.code == 1
    assert answer.first_cause == "import-crashes"
    assert "7" in answer.document["plan"][0]["why"]


def test_torch_that_prints_megabytes_leaves_one_json_document(sick: Make) -> None:
    patient = torch_that(sick, 'import sys\nsys.stdout.write("noise " * 1_000_000)\nraise ImportError("no good")\n')
    answer = patient.examine()
    assert answer.code == 1
    assert "no good" in answer.document["facts"]["torch_live"]["imported"]["error"]


def test_missing_torch_is_one_cause_not_many(sick: Make) -> None:
    answer = sick().mirror(without=("torch", "functorch")).examine()
    assert answer.code == 1
    assert answer.first_cause == "pip-needs-torch-first"
    assert len(answer.document["plan"]) == 1, answer.document["plan"]


def test_missing_deepspeed_is_said_and_torch_is_fine(sick: Make) -> None:
    answer = sick().mirror(without=("deepspeed",)).examine()
    assert answer.code == 1
    assert any("deepspeed" in c for c in answer.document["plan"][0]["commands"])
    assert answer.document["facts"]["torch_live"]["imported"]["outcome"] == "ok"


def test_deepspeed_that_raises_is_not_called_missing(sick: Make) -> None:
    patient = sick().mirror(without=("deepspeed",))
    patient.fake("deepspeed", "0.19.8", 'raise AttributeError("module torch has no attribute xyz")\n')
    for part in ("accelerator", "ops/op_builder"):
        (patient.site / "deepspeed" / part).mkdir(parents=True)
    answer = patient.examine()
    assert answer.code == 1
    assert "no attribute xyz" in answer.document["plan"][0]["why"]
    assert (
        "install" not in answer.document["plan"][0]["order"].lower()
        or "reinstall" in answer.document["plan"][0]["order"].lower()
    )


@pytest.mark.parametrize(
    "script",
    [
        "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        'NVIDIA driver is installed and running."; exit 9',
        "sleep 45",
    ],
    ids=["fails", "hangs"],
)
def test_nvidia_smi_that_fails_or_hangs_names_the_driver(sick: Make, script: str) -> None:
    patient = sick().mirror()
    patient.tool("nvidia-smi", script)
    answer = patient.examine("--purpose", "single-gpu")
    assert answer.code == 1
    assert answer.first_cause == "nvml-unavailable"
    assert answer.seconds < 40, "nvidia-smi alone sleeps for 45 s"


def cuda_torch(make: Make, cuda: str) -> Sick:
    """The CPU build, relabelled as a CUDA build in version.py; RECORD agrees."""
    patient = make().mirror()
    version = patient.own("torch") / "version.py"
    text = version.read_text().replace("+cpu", f"+cu{cuda.replace('.', '')}")
    text = "\n".join(
        f"cuda: Optional[str] = '{cuda}'" if line.startswith("cuda") else line for line in text.splitlines()
    )
    patient.rewrite(version, text.encode())
    record = patient.own_record("torch")
    rows = [
        f"torch/version.py,,{len(text.encode())}" if row.startswith("torch/version.py,") else row
        for row in record.read_text().splitlines()
    ]
    record.write_text("\n".join(rows) + "\n")
    return patient


def test_no_nvcc_for_a_cuda_torch(sick: Make, tmp_path: Path) -> None:
    patient = cuda_torch(sick, "13.0")
    patient.env["CUDA_HOME"] = str(tmp_path / "no-toolkit-here")
    answer = patient.examine("--purpose", "builder")
    assert answer.code == 1
    assert answer.first_cause in ("cuda-home-malformed", "cuda-home-missing")


def test_toolkit_of_another_major_than_torch(sick: Make, tmp_path: Path) -> None:
    patient = cuda_torch(sick, "12.6")
    toolkit = tmp_path / "cuda-13.0"
    (toolkit / "bin").mkdir(parents=True)
    nvcc = toolkit / "bin" / "nvcc"
    nvcc.write_text(
        '#!/bin/sh\necho "nvcc: NVIDIA (R) Cuda compiler driver"\necho "Cuda compilation tools, release 13.0, V13.0.88"\n'
    )
    nvcc.chmod(0o755)
    patient.env["CUDA_HOME"] = str(toolkit)
    answer = patient.examine("--purpose", "builder")
    assert answer.code == 1
    assert "torch-cuda-vs-nvcc-major" in answer.causes
    why = next(step["why"] for step in answer.document["plan"] if step["cause"] == "torch-cuda-vs-nvcc-major")
    assert "13.0" in why
    assert "12.6" in why


def test_ascii_stdout_loses_nothing(sick: Make) -> None:
    patient = sick().mirror(without=("torch", "functorch"))
    patient.env |= {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", "check", "--python", str(patient.python)],
        env=patient.env,
        cwd=patient.cwd,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"Traceback" not in done.stderr
    assert "torch" in done.stdout.decode("ascii")
