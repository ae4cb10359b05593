"""The wheel carries what users need and nothing else."""

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dsdoctor.registry import checks_of, load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(out),
        str(ROOT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(out.glob("dsdoctor-*.whl"))) as wheel:
        return wheel.namelist()


def test_wheel_holds_engine_checks_tables_and_styles(names: list[str]) -> None:
    for wanted in (
        "dsdoctor/cli/__init__.py",
        "dsdoctor/probes/scripts/live.py",
        "dsdoctor/smoke/patient/worker.py",
        "dsdoctor/tui/app.tcss",
        "dsdoctor/py.typed",
        "dsdoctor_checks/tables/causes.toml",
    ):
        assert wanted in names


def test_wheel_adds_no_other_top_level_package(names: list[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"dsdoctor", "dsdoctor_checks"}


def test_every_check_that_is_written_is_loaded() -> None:
    written = {
        check.code
        for file in (ROOT / "checks/dsdoctor_checks").glob("*.py")
        for check in checks_of(importlib.import_module(f"dsdoctor_checks.{file.stem}"))
    }
    assert written == {check.code for check in load().checks}
