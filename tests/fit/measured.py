"""Points measured on H200s (fixtures/fit/*.jsonl), as the words that fit takes."""

import json
from pathlib import Path
from typing import Any, Final

from dsdoctor.fit.shapes import ModelShape, from_config
from dsdoctor.fit.strategies import STRATEGIES, Strategy
from dsdoctor.fit.training import Buckets, Optimizer, Training

FOLDER: Final = Path(__file__).parents[2] / "fixtures/fit"
FILE: Final = FOLDER / "h200.jsonl"  # in view while the engine was made
# measured when the engine had said its numbers: holdout_predicted.json, and after it was mended holdout2_predicted.json
HOLDOUTS: Final = (FOLDER / "holdout.jsonl", FOLDER / "holdout2.jsonl")
OPTIMIZERS: Final[dict[str, Optimizer]] = {"fused": "adamw-fused", "foreach": "adamw-torch", "ds": "adamw"}
Row = dict[str, Any]


def rows(path: Path = FILE) -> list[Row]:
    """One line per rank of a point; those of rank 0 stand for all."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["rank"] == 0]


def asked(row: Row) -> tuple[ModelShape, Training, Strategy]:
    point, zero = row["point"], row["ds_config"]["zero_optimization"]
    usual = Buckets()
    where = (point["off"] or "gpu", point["poff"] or "gpu")
    plan = next(s for s in STRATEGIES if (s.stage, s.optimizer, s.parameters) == (point["stage"], *where))
    training = Training(
        micro_batch=point["mb"], sequence=point["seq"], dtype=point["dtype"], optimizer=OPTIMIZERS[point["opt"]],
        checkpointing=point["ckpt"], attention=point["attn"], accumulation=point["gas"], gpus_per_node=point["world"],
        pin_memory=point["pin"] is not False, zero_init=point["init"], lora_rank=point.get("lora", 0),
        buckets=Buckets(reduce=zero.get("reduce_bucket_size", usual.reduce), allgather=zero.get("allgather_bucket_size", usual.allgather)),
    )  # fmt: skip
    return from_config(row["config"]), training, plan


def beside(row: Row) -> int:
    """What the process had on the GPU beside torch's allocator, when the last step was over."""
    return int(row["nvml_process"] - row.get("reserved_end", row["peak_reserved"]))


def gpu_bytes(row: Row) -> int:
    """What torch had allocated at once, and what the process had beside torch's allocator."""
    return int(row["peak_allocated"]) + beside(row)


def shown_bytes(row: Row) -> int:
    """The most that nvidia-smi showed of the process."""
    return int(row["peak_reserved"]) + beside(row)
