"""How much longer does a training take under dsdoctor's eyes? `python tests/bench/smoke.py [ROUNDS [RANKS]]`.

Each round runs the same worker twice: started by hand with its events into plain files, and by dsdoctor, which watches,
samples and judges. Prints both medians and their ratio; the order alternates. On a machine with a GPU that torch sees it
runs there. Ops must be compiled already (`dsdoctor smoke zero2` once).
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dsdoctor.events import nobody
from dsdoctor.facts import Python
from dsdoctor.probes import python
from dsdoctor.probes.system import System
from dsdoctor.smoke import folder, launch, runner
from dsdoctor.smoke.order import Job
from dsdoctor.smoke.recipes import BY_NAME

STEPS = 300


def watched(system: System, patient: Python, job: Job) -> float:
    started = time.monotonic()
    ran = runner.run(system, patient, job, nobody)
    assert ran.outcome == "ok", (ran.outcome, ran.output_tail)
    return time.monotonic() - started


def bare(system: System, patient: Python, job: Job) -> float:
    with tempfile.TemporaryDirectory() as path:
        for room in folder.ROOMS:
            os.mkdir(Path(path, room))
        places = launch.Places(folder=path, port=launch.free_port(), cache=folder.cache_folder(system, patient))
        ranks = launch.launches(system, patient, job, places)
        started = time.monotonic()
        processes = [
            subprocess.Popen(one.argv, env=one.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for one in ranks
        ]
        codes = [process.wait() for process in processes]
        assert codes == [0] * len(ranks), codes
        return time.monotonic() - started


def main(rounds: int = 5, ranks: int = 1) -> None:
    system = System()
    patient = python.probe(system, *python.choose(system, sys.executable))
    use_gpu = os.path.exists("/dev/nvidiactl")
    job = Job(recipe=BY_NAME["zero2"], ranks=ranks, use_gpu=use_gpu, steps=STEPS, visible=tuple(range(ranks)))
    watched(system, patient, job)  # warm: the op is loaded once
    times: dict[str, list[float]] = {"bare": [], "watched": []}
    for number in range(rounds):
        both = [("bare", bare), ("watched", watched)]
        for name, measure in both if number % 2 else reversed(both):
            times[name].append(measure(system, patient, job))
    for name, found in times.items():
        print(f"{name:8} {statistics.median(found):6.2f} s  ({min(found):.2f} to {max(found):.2f})")
    ratio = statistics.median(times["watched"]) / statistics.median(times["bare"])
    print(
        f"watched/bare {ratio:.3f}  ({rounds} rounds of {STEPS} ZeRO-2 steps, {ranks} ranks, {'GPU' if use_gpu else 'CPU'})"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
