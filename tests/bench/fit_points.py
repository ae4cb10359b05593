"""Predicted against measured on H200s: a table to read, DeepSpeed's and Accelerate's own estimates beside it.

python -m tests.bench.fit_points [FILE.jsonl ...]    (none: those that were in view, the held-out ones, and all together)
"""

import importlib
import statistics
import sys
from pathlib import Path

from dsdoctor.fit.memory import need
from dsdoctor.fit.rehearsal import reserved
from tests.fit.measured import FILE, HOLDOUTS, Row, asked, gpu_bytes, rows, shown_bytes

GIB = 1 << 30


def deepspeed_says(row: Row) -> tuple[float, float] | None:
    """estimate_zero{2,3}_model_states_mem_needs → GPU and RAM in bytes; nothing for ZeRO-0 and 1."""
    zero2 = importlib.import_module("deepspeed.runtime.zero.stage_1_and_2").estimate_zero2_model_states_mem_needs
    zero3 = importlib.import_module("deepspeed.runtime.zero.stage3").estimate_zero3_model_states_mem_needs
    shape, training, plan = asked(row)
    if plan.stage == 2:
        cpu, gpu = zero2(shape.parameters, training.gpus_per_node, 1, plan.optimizer != "gpu")
    elif plan.stage == 3:
        cpu, gpu, _ = zero3(
            shape.parameters, shape.largest_layer, training.gpus_per_node, 1,
            plan.optimizer != "gpu", plan.parameters != "gpu", training.zero_init,
        )  # fmt: skip
    else:
        return None
    return gpu, cpu


def accelerate_says(row: Row) -> float:
    """accelerate estimate-memory: four times the weights (accelerate/commands/estimate.py, estimate_training_usage)."""
    shape, training, _ = asked(row)
    return float(4 * shape.parameters * training.width)


Errors = dict[str, list[float]]


def table(found: list[Row], errors: Errors) -> None:
    for row in found:
        shape, training, plan = asked(row)
        said, name = need(shape, training, plan), row["point"]["name"]
        if not row["ok"]:
            print(
                f"{name:36} ran out of memory with {row['point']['cap']} GiB for torch; {said.gpu.bytes / GIB:.2f} GiB said"
            )
            continue
        real, host = gpu_bytes(row), row["host_peak"]
        peer, simple = deepspeed_says(row), accelerate_says(row)
        columns = {
            "gpu": said.gpu.bytes / real - 1,
            "gpu as nvidia-smi": (reserved(shape, training, plan) + said.gpu.of("runtime")) / shown_bytes(row) - 1,
            "host": said.host.bytes / training.gpus_per_node / host - 1,
            "deepspeed's gpu": peer[0] / real - 1 if peer else None,
            "deepspeed's host": peer[1] / training.gpus_per_node / host - 1 if peer else None,
            "accelerate's gpu": simple / real - 1,
        }
        for column, error in columns.items():
            if error is not None:
                errors.setdefault(column, []).append(abs(error))
        told = "  ".join("     -" if error is None else f"{error:+6.1%}" for error in columns.values())
        print(
            f"{name:36} {said.gpu.moment:10} {said.gpu.bytes / GIB:6.2f} of {real / GIB:6.2f}  {said.host.moment:5} {host / GIB:6.2f}  {told}"
        )


def summary(title: str, errors: Errors) -> None:
    print(title)
    for name, found in errors.items():
        print(f"  {name:18} median {statistics.median(found):7.1%}  worst {max(found):7.1%}  of {len(found)}")


def main() -> None:
    every: Errors = {}
    paths = [Path(name) for name in sys.argv[1:]] or [FILE, *HOLDOUTS]
    for path in paths:
        errors: Errors = {}
        table(rows(path), errors)
        summary(path.stem, errors)
        for name, found in errors.items():
            every.setdefault(name, []).extend(found)
    if len(paths) > 1:
        summary("all", every)


if __name__ == "__main__":
    main()
