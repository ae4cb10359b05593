"""A package of somebody else is found, and brings what it has: here only lines of logs and their causes."""

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from dsdoctor.plugins import plugins
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


def test_plug_ins_are_found_as_importlib_finds_them() -> None:
    groups = ("dsdoctor.checks", "dsdoctor.knowledge", "console_scripts", "pytest11")
    found = plugins(*groups)
    for group in groups:
        want = {(entry.name, entry.module) for entry in metadata.entry_points(group=group)}
        assert {(plugin.name, plugin.module) for plugin in found[group]} == want


def test_a_plug_in_in_a_zip_file_is_found_and_the_first_of_two_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def package(folder: Path, module: str) -> None:
        info = folder / "our_cluster-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-cluster\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"# ours\n[dsdoctor.checks]\nours = {module}:all [extra]\n")

    package(tmp_path / "one", "first")
    package(tmp_path / "two", "second")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "one"), str(tmp_path / "two"), *sys.path])
    assert ("ours", "first", "our_cluster") in plugins("dsdoctor.checks")["dsdoctor.checks"]
    with zipfile.ZipFile(tmp_path / "three.zip", "w") as archive:
        for file in (tmp_path / "two").rglob("*"):
            archive.write(file, file.relative_to(tmp_path / "two"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "three.zip"), *sys.path[2:]])
    assert ("ours", "second", "our_cluster") in plugins("dsdoctor.checks")["dsdoctor.checks"]
