"""How fast is dsdoctor beside ds_report on this machine? Prints medians and the ratios of one run: `python tests/bench/speed.py`.

Needs dsdoctor, torch and deepspeed in the environment that runs it. Rounds alternate so that both sides see the same load.
"""

import shutil
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

DS_REPORT = str(Path(sysconfig.get_path("scripts")) / "ds_report")
if not Path(DS_REPORT).exists():
    DS_REPORT = shutil.which("ds_report") or DS_REPORT
CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
DSDOCTOR = [sys.executable, "-m", "dsdoctor"]
CONTENDERS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "dsdoctor --version": [*DSDOCTOR, "--version"],
    "dsdoctor --help": [*DSDOCTOR, "--help"],
    "config": [*DSDOCTOR, "config", str(CONFIGS / "many_mistakes.json"), "--gpus", "8"],
    "ds_report": [DS_REPORT],
    "check --static": [*DSDOCTOR, "check", "--static", "--json", "--python", sys.executable],
    "check": [*DSDOCTOR, "check", "--json", "--python", sys.executable],
}
OVER_PYTHON = {"dsdoctor --version": 80, "dsdoctor --help": 80, "config": 200}  # ms
PROMISES = (("check --static", "ds_report", 0.2), ("check", "ds_report", 1.3))


def seconds(command: list[str]) -> float:
    """Wall time of one run; its output is thrown away."""
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started


def main(rounds: int = 5) -> None:
    """Run every contender ``rounds`` times after one warm-up and print medians, spread and ratios."""
    if not Path(DS_REPORT).exists():
        sys.exit("ds_report is not installed beside this Python: nothing to compare with")
    for command in CONTENDERS.values():
        seconds(command)
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name, command in CONTENDERS.items():
            times[name].append(seconds(command))
    middle = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:20} median {middle[name]:6.3f} s   ({min(values):.3f} to {max(values):.3f})")
    for name, most in OVER_PYTHON.items():
        print(f"{name} over bare Python: {1000 * (middle[name] - middle['python -c pass']):.0f} ms (promise: {most})")
    for name, base, promise in PROMISES:
        print(f"{name} / {base}: {middle[name] / middle[base]:.2f} (promise: {promise})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
