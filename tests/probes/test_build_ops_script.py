"""The script that builds in the patient, by itself: its answers, its claims, its limits."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.probes import runner
from dsdoctor.probes.python import SCRIPTS
from tests.probes.fake_patient import Patient

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX descriptors")
GOOD = "self.log('compiling')"


class Folder:
    def __init__(self, folder: Path) -> None:
        self.patient, self.folder = Patient(folder), folder / "shared"
        for name in ("claims", "logs"):
            (self.folder / name).mkdir(parents=True)

    def run(self, *names: str, import_s: float = 60, limit_s: float = 60) -> tuple[list[dict[str, Any]], runner.Ran]:
        script = os.fspath(SCRIPTS / "build_ops.py")
        argv = [sys.executable, script, os.fspath(self.folder), str(import_s), str(limit_s), *names]
        ran = runner.run(argv, 60, env=self.patient.env, cwd=os.fspath(self.folder), answer=True)
        return [json.loads(line) for line in ran.answer.splitlines()], ran

    def log(self, name: str) -> str:
        return (self.folder / "logs" / f"{name}.log").read_text("utf-8", "replace")


@pytest.fixture
def shared(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def begun(answers: list[dict[str, Any]]) -> list[str]:
    return [a["begin"] for a in answers if "begin" in a]


def test_every_step_is_told_and_chatter_goes_to_the_logs(shared: Folder) -> None:
    shared.patient.builders({"a": "print('printed'); self.log('compiled')", "b": "raise ValueError('b')", "c": GOOD})
    answers, ran = shared.run("c", "b", "a", "gone")
    assert ran.ok
    assert begun(answers) == ["import", "c", "b", "a"]
    assert answers[-1] == {"done": True}
    assert next(a for a in answers if a.get("end") == "import")["known"] == ["a", "b", "c"]
    failed = next(a for a in answers if a.get("end") == "b")
    assert (failed["error_type"], failed["error"], failed["cause"]) == ("ValueError", "b", None)
    assert (ran.stdout, shared.log("c")) == ("", "compiling\n")
    assert sorted(shared.log("a").split()) == ["compiled", "printed"]


def test_what_is_taken_is_left_to_who_took_it(shared: Folder) -> None:
    shared.patient.builders({"a": GOOD, "b": GOOD})
    (shared.folder / "claims" / "a").touch()
    answers, ran = shared.run("a", "b")
    assert (begun(answers), ran.ok) == (["import", "b"], True)
    assert sorted(os.listdir(shared.folder / "claims")) == ["a", "b"]


def test_several_at_once_take_every_op_once(shared: Folder) -> None:
    names = [f"op{i}" for i in range(20)]
    shared.patient.builders(dict.fromkeys(names, "time.sleep(0.02)"))
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.extend(begun(shared.run(*names)[0]))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name for name in found if name != "import") == sorted(names)


def test_a_folder_that_is_gone_is_an_error_and_not_a_claim(shared: Folder) -> None:
    shared.patient.builders({"a": GOOD})
    (shared.folder / "claims").rmdir()
    answers, ran = shared.run("a")
    assert not ran.ok
    assert {"done": True} not in answers
    assert "FileNotFoundError" in ran.stderr


def test_without_a_place_for_logs_it_is_built_all_the_same(shared: Folder) -> None:
    shared.patient.builders({"a": GOOD})
    (shared.folder / "logs").rmdir()
    answers, ran = shared.run("a")
    assert (answers[-1], ran.stdout) == ({"done": True}, "compiling\n")


@pytest.mark.parametrize("hang", ["time.sleep(600)", "import ctypes; ctypes.PyDLL(None).sleep(600)"])
def test_a_late_op_ends_the_process_with_its_stack(shared: Folder, hang: str) -> None:
    seconds = str(4713 + len(hang))  # its own: another worker runs the other hang at the same time
    shared.patient.builders({"a": GOOD, "slow": f"subprocess.Popen(['sleep', '{seconds}']); {hang}"})
    answers, ran = shared.run("a", "slow", limit_s=1)
    assert (begun(answers)[-1], ran.ending, ran.code) == ("slow", "exited", 1)
    assert "Timeout (0:00:01)!" in shared.log("slow")
    assert "in load" in shared.log("slow")
    alive = subprocess.run(["pgrep", "-f", f"^sleep {seconds}"], capture_output=True, check=False)
    assert alive.stdout == b""


def test_the_limit_of_one_op_does_not_count_for_the_next(shared: Folder) -> None:
    names = ("a", "b", "c")
    shared.patient.builders(dict.fromkeys(names, "time.sleep(0.6)"))
    answers, _ = shared.run(*names, limit_s=1.1, import_s=60)
    assert answers[-1] == {"done": True}


def test_a_late_import_ends_the_process(shared: Folder) -> None:
    shared.patient.builders({"a": GOOD}).module("torch", "import time; time.sleep(600)")
    answers, ran = shared.run("a", import_s=1)
    assert (begun(answers), ran.code) == (["import"], 1)
    assert "Timeout (0:00:01)!" in ran.stderr
