"""Predicted against measured on H200s (fixtures/fit/h200.jsonl): a table to read.

python tests/bench/fit_points.py [FILE.jsonl]
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from dsdoctor.fit.memory import Need, need
from dsdoctor.fit.shapes import ModelShape, from_config
from dsdoctor.fit.strategies import STRATEGIES, Strategy
from dsdoctor.fit.training import Buckets, Optimizer, Training

POINTS = Path(__file__).parents[2] / "fixtures/fit/h200.jsonl"
GIB = 1 << 30
OPTIMIZERS: dict[str, Optimizer] = {"fused": "adamw-fused", "foreach": "adamw-torch", "ds": "adamw"}


def asked(row: dict[str, Any]) -> tuple[ModelShape, Training, Strategy]:
    point, zero = row["point"], row["ds_config"]["zero_optimization"]
    usual = Buckets()
    where = (point["off"] or "gpu", point["poff"] or "gpu")
    plan = next(s for s in STRATEGIES if (s.stage, s.optimizer, s.parameters) == (point["stage"], *where))
    training = Training(
        micro_batch=point["mb"], sequence=point["seq"], dtype=point["dtype"], optimizer=OPTIMIZERS[point["opt"]],
        checkpointing=point["ckpt"], attention=point["attn"], accumulation=point["gas"], gpus_per_node=point["world"],
        pin_memory=point["pin"] is not False, zero_init=point["init"],
        buckets=Buckets(reduce=zero.get("reduce_bucket_size", usual.reduce), allgather=zero.get("allgather_bucket_size", usual.allgather)),
    )  # fmt: skip
    return from_config(row["config"]), training, plan


def predicted(row: dict[str, Any]) -> Need:
    return need(*asked(row))


def measured_gpu(row: dict[str, Any]) -> int:
    """What torch had allocated at once, and what the process had beside torch's allocator."""
    beside = row["nvml_process"] - row["peak_reserved"]
    return int(row["peak_allocated"] + beside)


def main() -> None:
    rows = [json.loads(line) for line in Path(sys.argv[1] if len(sys.argv) > 1 else POINTS).read_text().splitlines()]
    gpu, smi, host = [], [], []
    for row in rows:
        if not row["ok"] or row["rank"]:
            continue
        said = predicted(row)
        real, rss = measured_gpu(row), row["host_peak"]
        errors = (
            said.gpu.bytes / real - 1,
            said.gpu.bytes / row["nvml_process"] - 1,
            said.host.bytes / row["point"]["world"] / rss - 1,
        )
        for errors_of, error in zip((gpu, smi, host), errors, strict=True):
            errors_of.append(abs(error))
        print(f"{row['point']['name']:38} {said.gpu.moment:9} gpu {said.gpu.bytes / GIB:6.2f} of {real / GIB:6.2f} {errors[0]:+6.1%}"
              f"  by NVML {row['nvml_process'] / GIB:6.2f} {errors[1]:+6.1%}  host {said.host.bytes / GIB:6.2f} of {rss / GIB:6.2f} {errors[2]:+6.1%}")  # fmt: skip
    for name, errors_of in (("gpu", gpu), ("by NVML", smi), ("host", host)):
        print(f"{name}: median {statistics.median(errors_of):.1%}, worst {max(errors_of):.1%} of {len(errors_of)}")


if __name__ == "__main__":
    main()
