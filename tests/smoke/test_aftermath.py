"""What is looked at after a run: NCCL's words without names, the kernel's only since the run began."""

import os
import sys
from pathlib import Path

import pytest

from dsdoctor.probes.system import System
from dsdoctor.smoke import aftermath, folder
from dsdoctor.smoke.sampler import Sampler

NCCL = """vm:3129:3129 [0] NCCL INFO Channel 23/0 : 0[0] -> 1[1] via P2P/CUMEM
vm:3129:3129 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
vm:3129:3195 [0] NCCL INFO [Service thread] Connection closed by localRank 1
"""
WARNED = "vm:77:90 [1] misc/socket.cc:84 NCCL WARN socketProgress: Connection closed by remote peer vm<45678>\n"


def look(system: System, private: folder.Folder, *, well: bool = False, began: float = 0.0) -> object:
    before, sampler = aftermath.Before(system), Sampler(system, began=began, usable_cores=1)
    return aftermath.look(
        system, before, sampler, private, {0: 3129, 1: 77}, began=began, well=well, left_behind=()
    )  # fmt: skip


def test_nccls_last_words_name_the_rank_and_neither_host_nor_channels() -> None:
    with folder.private(2) as private:
        Path(private.path, "nccl", "3129").write_text(NCCL)
        Path(private.path, "nccl", "77").write_text(NCCL + WARNED)
        found = look(System(), private)
    words = (found.nccl_words or "").splitlines()  # type: ignore[attr-defined]
    assert words[0] == "rank 0: NCCL INFO Connected all rings, use ring PXN 0 GDR 1"
    assert words[1] == "rank 0: NCCL INFO [Service thread] Connection closed by localRank 1"
    assert words[2].startswith("rank 1: misc/socket.cc:84 NCCL WARN socketProgress")
    assert len(words) == 3


def test_a_run_that_ended_well_costs_no_look_at_logs() -> None:
    with folder.private(2) as private:
        Path(private.path, "nccl", "77").write_text(WARNED)
        found = look(System(), private, well=True)
    assert (found.nccl_words, found.kernel_log) == (None, None)  # type: ignore[attr-defined]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="dmesg")
def test_only_what_the_kernel_said_since_the_run_began_counts(tmp_path: Path) -> None:
    program = tmp_path / "dmesg"
    program.write_text(
        "#!/bin/sh\n"
        "echo '[  100.000001] Out of memory: Killed process 1 (old)'\n"
        "echo '[  900.000001] usb 1-1: new device'\n"
        "echo '[  901.500000] Out of memory: Killed process 4711 (python) total-vm:8gB'\n"
    )
    program.chmod(0o755)
    found = aftermath.kernel_log(System({**os.environ, "PATH": str(tmp_path)}), began=500.0)
    assert found == "[  901.500000] Out of memory: Killed process 4711 (python) total-vm:8gB"
