"""How long does `dsdoctor fit` take for a 70B model? `python tests/bench/fit_speed.py [ROUNDS]` prints best and median, wall and CPU time,
and the ratio over bare Python. The promise is 0.4 s on a machine that does nothing else.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
LLAMA = {
    "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
FIT = [sys.executable, "-m", "dsdoctor", "fit", "--model", "config.json"]
MACHINE = ["--snapshot", str(ROOT / "fixtures/machines/h200-x2-arch-list-9.0a")]
CONTENDERS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "dsdoctor --version": [sys.executable, "-m", "dsdoctor", "--version"],
    "fit, nothing fits": [*FIT, *MACHINE],
    "fit, on 16 GPUs": [*FIT, *MACHINE, "--activation-checkpointing", "--zero-init", "--gpus", "8", "--nodes", "2"],
    "fit, this machine": FIT,
}


def one(command: list[str], folder: str) -> tuple[float, float]:
    """Wall and CPU seconds of one run; its output is thrown away."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int = 15) -> None:
    """Rounds alternate, so that all see the same load; a first one warms up."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(LLAMA))
        for number in range(rounds + 1):
            for name, command in CONTENDERS.items():
                taken = one(command, folder)
                times[name] += [taken] if number else []
    bare = statistics.median(cpu for _, cpu in times["python -c pass"])
    for name, runs in times.items():
        walls, cpus = [wall for wall, _ in runs], [cpu for _, cpu in runs]
        print(
            f"{name:20} wall best {min(walls):.3f} median {statistics.median(walls):.3f} s, CPU best {min(cpus):.3f} "
            f"median {statistics.median(cpus):.3f} s, {statistics.median(cpus) / bare:.1f} x bare Python"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
