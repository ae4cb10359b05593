"""What dsdoctor predicts about each op, against what building it really did on recorded machines (``fixtures/ops``).

``facts.op_builds`` is the truth: DeepSpeed's own builder compiled, linked and loaded the op, or failed. The prediction sees
the same snapshot without it: once with tiny programs tried, once from files alone.
"""

from pathlib import Path

import pytest

from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.facts import OpBuilds, Snapshot
from dsdoctor.model import OpVerdict, Proof
from dsdoctor.testing import load_machine

MACHINES = sorted(p.parent for p in (Path(__file__).parents[2] / "fixtures/ops").glob("*/facts.json"))
LIVE = ("op_builders", "trials", "ds_report", "torch_live", "deepspeed_live")
STATIC_SHARE = 0.93  # of all rows, from files alone
KNOWLEDGE = load_knowledge()


def truth(machine: Snapshot) -> dict[str, bool]:
    """Op -> it was built and loaded; those that the recording did not reach are left out."""
    assert isinstance(machine.op_builds, OpBuilds)
    return {b.name: b.outcome == "ok" for b in machine.op_builds.builds if b.outcome != "not-reached"}


def predicted(machine: Snapshot, *, live: bool) -> dict[str, OpVerdict]:
    gone = ("op_builds", "purpose", *(() if live else LIVE))  # the purpose is guessed, not recorded
    return {op.name: op for op in diagnose(machine.replace(**dict.fromkeys(gone)), KNOWLEDGE).ops}


def wrong(machine: Snapshot, *, live: bool) -> dict[str, str]:
    """Ops whose verdict is not what building them did, with what was said."""
    said = predicted(machine, live=live)
    states = {name: said[name].state if name in said else "absent" for name in truth(machine)}
    return {n: states[n] for n, ok in truth(machine).items() if states[n] != ("builds" if ok else "fails")}


def test_there_are_recordings_of_both_outcomes() -> None:
    outcomes = [ok for folder in MACHINES for ok in truth(load_machine(folder)).values()]
    assert len(MACHINES) >= 14
    assert outcomes.count(True) >= 40
    assert outcomes.count(False) >= 40


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_with_tiny_programs_every_op_is_foretold(folder: Path) -> None:
    assert wrong(load_machine(folder), live=True) == {}


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_nothing_that_failed_was_called_probed(folder: Path) -> None:
    machine = load_machine(folder)
    said = predicted(machine, live=True)
    lies = [n for n, ok in truth(machine).items() if not ok and said[n].state == "builds"]
    assert [n for n in lies if said[n].proof is not Proof.DECLARED] == []


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_a_failing_op_says_why_and_who_saw_it(folder: Path) -> None:
    failing = [op for op in predicted(load_machine(folder), live=True).values() if op.state == "fails"]
    assert [op.name for op in failing if not op.because] == []
    assert [op.name for op in failing if not op.blocked_by and op.said != "no"] == []


def test_files_alone_foretell_nearly_all() -> None:
    machines = [load_machine(folder) for folder in MACHINES]
    rows = sum(len(truth(machine)) for machine in machines)
    missed = {m.name: gone for m, s in zip(MACHINES, machines, strict=True) if (gone := wrong(s, live=False))}
    share = 1 - sum(len(gone) for gone in missed.values()) / rows
    assert share >= STATIC_SHARE, f"{share:.3f}: {missed}"


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_files_alone_are_never_more_than_declared(folder: Path) -> None:
    said = predicted(load_machine(folder), live=False)
    assert {op.proof for op in said.values()} == {Proof.DECLARED}


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_the_real_build_is_what_the_report_says(folder: Path) -> None:
    machine = load_machine(folder)
    said = {op.name: op for op in diagnose(machine, KNOWLEDGE).ops}
    for name, ok in truth(machine).items():
        assert (said[name].state, said[name].proof) == ("builds" if ok else "fails", Proof.RAN), name
    assert machine.ds_report is not None
    for name, op in said.items():
        row = machine.ds_report.op(name)
        believed = None if row is None else row.compatible or row.installed
        assert op.differs == (believed is not None and op.state != "unknown" and believed != (op.state == "builds"))
