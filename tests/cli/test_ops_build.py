"""`dsdoctor ops --build` as a user types it, on a patient whose builders are a few lines."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.sick import DOCTOR, ROOMS, left_running
from tests.probes.fake_patient import Patient

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


class Doctor:
    """The command in a process group of its own, as a shell starts it."""

    def __init__(self, patient: Patient) -> None:
        self.patient, self.mark = patient, f"ops-{os.getpid()}-{time.monotonic()}"

    def start(self, *options: str) -> "subprocess.Popen[str]":
        env = self.patient.env | {"TMPDIR": os.fspath(self.patient.temp), "DSDOCTOR_LAB": self.mark}
        argv = [sys.executable, "-c", DOCTOR, ROOMS, "ops", "--python", sys.executable, "--build", *options]
        return subprocess.Popen(
            argv,
            env=env,
            cwd=self.patient.folder / "work",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*options)
        out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    return Doctor(Patient(tmp_path))


def test_builds_are_told_and_nothing_is_left(doctor: Doctor) -> None:
    doctor.patient.builders({"fused_adam": "self.compiled()", "cpu_adam": "os._exit(3)"})
    done = doctor.run("fused_adam", "cpu_adam", "--json", "--jobs", "1")
    assert done.returncode == 1, done.stderr
    builds = {b["name"]: b for b in json.loads(done.stdout)["facts"]["op_builds"]["builds"]}
    assert (builds["fused_adam"]["outcome"], builds["cpu_adam"]["outcome"]) == ("ok", "crashed")
    assert os.listdir(doctor.patient.temp) == []
    assert left_running(doctor.mark) == []


def test_ctrl_c_leaves_no_process_and_no_folder(doctor: Doctor) -> None:
    load = "subprocess.Popen(['sleep', '600']); open(self.name, 'w').close(); time.sleep(600)"
    names = ("fused_adam", "cpu_adam", "fused_lamb")
    work = doctor.patient.builders(dict.fromkeys(names, load)).folder / "work"
    process = doctor.start(*names, "--jobs", "6")
    deadline = time.monotonic() + 90
    while len(os.listdir(work)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert len(os.listdir(work)) == 2
    assert os.listdir(doctor.patient.temp) == []
    assert left_running(doctor.mark) == []


def test_logs_that_cannot_be_kept_are_said_in_one_sentence(doctor: Doctor) -> None:
    doctor.patient.builders({"fused_adam": "self.compiled()"})
    (doctor.patient.folder / "work" / "file").touch()
    done = doctor.run("fused_adam", "--logs", "file/logs")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "dsdoctor: logs cannot be kept in file/logs: Not a directory\n"
