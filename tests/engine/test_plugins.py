"""A package of somebody else brings what it has: here only lines of logs and their causes."""

import subprocess
import sys
from pathlib import Path

from tests.cli.program import environment

MODULE = """
from dsdoctor.api import CauseInfo

def causes():
    return {"our-cluster-drained": CauseInfo(title="The node was drained", layer="launch", why="w", remedy="ask the operators")}

def signatures():
    yield '''
[[signature]]
id = "our-drain"
cause = "our-cluster-drained"
role = "root"
anchor = "node was drained"
pattern = "node was drained by (\\\\\\\\w+)"
weight = 9
reason = "{0} drained the node"
order = "Ask {0}"
example = ["node was drained by ops"]
source = "our cluster"
date = "2026-11-30"

[[signature]]
id = "our-mistake"
role = "root"
anchor = "node was"
pattern = "("
reason = "r"
'''
"""


def test_a_plug_in_may_bring_nothing_but_lines_of_logs(tmp_path: Path) -> None:
    (tmp_path / "our_cluster.py").write_text(MODULE)
    info = tmp_path / "our_cluster-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-cluster\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dsdoctor.knowledge]\nours = our_cluster\n")
    (tmp_path / "slurm.out").write_text("step 1\nnode was drained by ops\nexits with return code = -15\n")
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", "triage", "slurm.out"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.startswith("The node was drained (certain; our-cluster-drained)"), done.stdout + done.stderr
    assert "ops drained the node" in done.stdout
    assert "left out: a known line cannot be used" in done.stdout, "a wrong row is told, and silences no other"
