"""Judging asks nothing of the machine: no file, no socket, no process. Verdicts are a function of the snapshot."""

import subprocess
import sys
from pathlib import Path

import pytest

MACHINES = sorted(p for p in (Path(__file__).parents[2] / "fixtures/machines").iterdir() if p.is_dir())
GUARDED = """
import sys
from pathlib import Path
from dsdoctor import examination
from dsdoctor.facts.snapshot import decode
knowledge = examination.load_knowledge()
snapshot = decode(Path(sys.argv[1], "facts.json").read_bytes(), "fixture")
examination.diagnose(snapshot, knowledge)  # tables are read and cached on first use
touched = []
def hook(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn") or event.startswith("socket."):
        touched.append(f"{event} {arguments!r:.200}")
sys.addaudithook(hook)
examination.diagnose(snapshot, knowledge)
print("\\n".join(touched))
"""


@pytest.mark.parametrize("machine", MACHINES, ids=lambda p: p.name)
def test_diagnosing_touches_nothing(machine: Path) -> None:
    done = subprocess.run([sys.executable, "-c", GUARDED, str(machine)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
