"""How well and how fast triage reads logs: `python tests/bench/triage.py [FOLDER] [-v]`.

FOLDER holds ``index.json`` (``file``, ``accept``: right causes, empty for a healthy log, ``decidable``) and the logs;
without one only fixtures/logs (``expect.toml``) are scored. Prints top-1, top-3 and false alarms, then the speed on a
log of 100 MB beside ``grep -cE`` with the same patterns.
"""

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tomllib

from dsdoctor.examination import triage
from dsdoctor.render.story import likely
from dsdoctor.request import Request

FIXTURES = Path(__file__).parents[2] / "fixtures" / "logs"
STEPS = 100_000_000  # bytes of the long log


class Case(NamedTuple):
    name: str
    files: tuple[str, ...]
    accept: tuple[str, ...]  # () for a healthy log
    decidable: bool = True


def cases(folder: Path) -> Iterator[Case]:
    """Of an index.json, or of fixtures/logs."""
    if (folder / "index.json").exists():
        for row in json.loads((folder / "index.json").read_text()):
            yield Case(row["file"], (str(folder / row["file"]),), tuple(row["accept"]), row["decidable"])
        return
    for expect in sorted(folder.glob("*/expect.toml")):
        wanted = tomllib.loads(expect.read_text())
        files = tuple(str(f) for f in sorted(expect.parent.iterdir()) if f.name != "expect.toml")
        right = (wanted["cause"], *wanted.get("also", ()))
        accept = tuple(cause for cause in right if cause)
        yield Case(expect.parent.name, files, accept, decidable="" not in right)


def score(folder: Path, verbose: bool) -> None:
    """Print how often the first cause, and one of the first three, is a right one."""
    first = among = decidable = healthy = alarms = wrong = 0
    for case in cases(folder):
        named = [cause.cause for cause in likely(triage(Request(logs=case.files)))]
        if not case.accept:
            healthy += 1
            alarms += bool(named)
        elif not case.decidable:
            wrong += bool(named) and named[0] not in case.accept
        else:
            decidable += 1
            first += named[:1] != [] and named[0] in case.accept
            among += any(name in case.accept for name in named[:3])
        right = (
            not named
            if not case.accept
            else (not named and not case.decidable) or (named[:1] and named[0] in case.accept)
        )
        if verbose and not right:
            print(
                f"  {case.name}: {named[:3]} instead of {list(case.accept[:3])}{'' if case.decidable else ' (undecidable)'}"
            )
    print(
        f"{folder.name}: {decidable} decidable logs, top-1 {first / max(decidable, 1):.3f}, top-3 {among / max(decidable, 1):.3f};"
        f" {healthy} healthy, {alarms} false alarms; {wrong} wrong names where the log holds too little"
    )


def long_log(path: Path) -> None:
    """Steps of eight ranks with numbers that never repeat, and a death at the end."""
    dice, size, step = random.Random(1), 0, 0
    with path.open("w") as file:
        while size < STEPS:
            line = (
                f"[2026-11-30 10:{step % 60:02d}:{step % 59:02d},{step % 1000:03d}] [INFO] [logging.py:96:log_dist] [Rank 0] "
                f"step={step}, skipped=0, lr=[{1e-4 * dice.random():.6f}], mom=[[0.9, 0.999]]\n"
                f"[rank{step % 8}]: loss {dice.random():.4f} samples/sec={dice.random() * 100:.2f}\n"
            )
            size += file.write(line)
            step += 1
        file.write("csrc/includes/context.h:10:10: fatal error: curand_kernel.h: No such file or directory\n")


def speed() -> None:
    """Time and memory of the command on a long log and on its first megabyte, and of grep on the first."""
    with tempfile.TemporaryDirectory() as folder:
        long, short, rows = Path(folder, "long.log"), Path(folder, "short.log"), Path(folder, "patterns")
        long_log(long)
        with long.open("rb") as file:
            file.seek(-1_000_000, os.SEEK_END)
            short.write_bytes(file.read())
        for path in (short, long):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-m", "dsdoctor", "triage", str(path)], capture_output=True, check=False)
            seconds = time.perf_counter() - started
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"{path.stat().st_size / 1e6:.0f} MB: {seconds:.2f} s, peak of all so far {peak:.0f} MiB")
        patterns = extended_patterns()
        rows.write_text("\n".join(patterns) + "\n")
        started = time.perf_counter()
        subprocess.run(
            ["grep", "-cEf", str(rows), str(long)], capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
        grep = time.perf_counter() - started
        print(f"grep -cE with {len(patterns)} of the patterns: {grep:.2f} s; dsdoctor / grep = {seconds / grep:.2f}")


def extended_patterns() -> list[str]:
    """The signatures' patterns as grep -E reads them; those with a look-around are left out."""
    from dsdoctor.examination import load_knowledge

    known = load_knowledge().known_lines()
    plain = [s.pattern for s in known.all() if not re.search(r"\(\?[=!<]", s.pattern)]
    return [p.replace("(?:", "(").replace(r"\d", "[0-9]").replace(r"[^\n]", ".") for p in plain if "\n" not in p]


if __name__ == "__main__":
    folders = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    for where in (*folders, FIXTURES):
        if where.exists():
            score(where, "-v" in sys.argv)
    if "--no-speed" not in sys.argv:
        speed()
