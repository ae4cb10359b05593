"""`dsdoctor ops --build` against DeepSpeed's own builders one after the other, with the same number of compilers.

``python tests/bench/op_builds.py [JOBS [OP...]]`` builds each op twice into fresh folders; minutes on two cores.
"""

import os
import subprocess
import sys
import tempfile
import time

OPS = ("cpu_adam", "pin_memory")
BY_HAND = """
import sys, torch, deepspeed
from deepspeed.ops.op_builder.all_ops import ALL_OPS
for name in sys.argv[1:]:
    ALL_OPS[name].load(verbose=False)
"""


def timed(command: list[str], **env: str) -> float:
    """Wall seconds of a command that must succeed."""
    started = time.monotonic()
    ran = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}")
    return time.monotonic() - started


def main() -> None:
    jobs = sys.argv[1] if len(sys.argv) > 1 else str(os.cpu_count() or 1)
    ops = sys.argv[2:] or list(OPS)
    with tempfile.TemporaryDirectory() as folder:
        by_hand = timed([sys.executable, "-c", BY_HAND, *ops], TORCH_EXTENSIONS_DIR=folder, MAX_JOBS=jobs)
    doctor = timed([sys.executable, "-m", "dsdoctor", "ops", *ops, "--build", "--jobs", jobs])
    print(f"{len(ops)} ops with {jobs} jobs: DeepSpeed's builders {by_hand:.1f} s, dsdoctor ops --build {doctor:.1f} s")
    print(f"ratio {doctor / by_hand:.2f} (wanted: at most 1.05)")


if __name__ == "__main__":
    main()
