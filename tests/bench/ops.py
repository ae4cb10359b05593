"""How well are ops foretold? `python tests/bench/ops.py [FOLDER]` judges recorded machines without their builds.

Three voices against what building each op really did (``facts.op_builds`` of fixtures/ops): files alone (`predict`), files and
tiny programs (`predict+probe`), and ds_report's own [OKAY] and [NO]. A row is right when the voice said what happened; an op
that a voice calls unknown, or does not know, is wrong.
"""

import sys
from pathlib import Path

from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.facts import Snapshot
from dsdoctor.facts.snapshot import LIVE_SECTIONS
from dsdoctor.testing import load_machine

FOLDER = Path(__file__).parents[2] / "fixtures/ops"
KNOWLEDGE = load_knowledge()
VOICES = ("predict", "predict+probe", "ds_report")


def truth(machine: Snapshot) -> dict[str, bool]:
    """Op -> it was built and loaded."""
    builds = machine.op_builds.builds if machine.op_builds else ()
    return {b.name: b.outcome == "ok" for b in builds if b.outcome != "not-reached"}


def foretold(machine: Snapshot, *gone: str) -> dict[str, bool]:
    """What dsdoctor says without the sections ``gone``; unknown ops are left out."""
    ops = diagnose(machine.replace(**dict.fromkeys({"op_builds", "purpose", *gone})), KNOWLEDGE).ops
    return {op.name: op.state == "builds" for op in ops if op.state != "unknown"}


def said(machine: Snapshot) -> dict[str, bool]:
    """ds_report's word."""
    rows = machine.ds_report.ops if machine.ds_report else ()
    return {op.name: bool(op.compatible or op.installed) for op in rows}


def voices(machine: Snapshot) -> dict[str, dict[str, bool]]:
    """Voice -> op -> "it builds"."""
    return dict(zip(VOICES, (foretold(machine, *LIVE_SECTIONS), foretold(machine), said(machine)), strict=True))


def main(folder: Path = FOLDER) -> None:
    """Print a row per machine, what each voice got wrong, and the totals."""
    machines = {p.parent.name: load_machine(p.parent) for p in sorted(folder.glob("*/facts.json"))}
    built = {name: truth(machine) for name, machine in machines.items()}
    if not any(built.values()):
        sys.exit(f"no recorded builds in {folder}")
    width = max(map(len, machines))
    total, wrong = dict.fromkeys(VOICES, 0), dict.fromkeys(VOICES, "")
    print(f"{'machine':{width}}  rows  builds  " + "  ".join(f"{voice:>13}" for voice in VOICES))
    for name, rows in built.items():
        spoken = voices(machines[name])
        right = {voice: sum(spoken[voice].get(op) is ok for op, ok in rows.items()) for voice in VOICES}
        cells = "  ".join(f"{right[voice]:>7} {right[voice] / max(len(rows), 1):5.2f}" for voice in VOICES)
        print(f"{name:{width}}  {len(rows):4}  {sum(rows.values()):6}  {cells}")
        for voice in VOICES:
            total[voice] += right[voice]
            missed = [
                f"{op} {'builds' if ok else 'fails'}" for op, ok in rows.items() if spoken[voice].get(op) is not ok
            ]
            wrong[voice] += f"\n  {name}: {', '.join(missed)}" if missed else ""
    count = sum(map(len, built.values()))
    cells = "  ".join(f"{total[voice]:>7} {total[voice] / count:5.3f}" for voice in VOICES)
    print(f"{'all':{width}}  {count:4}  {sum(sum(r.values()) for r in built.values()):6}  {cells}")
    for voice in VOICES:
        print(f"\n{voice} did not foretell:{wrong[voice] or ' nothing'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
