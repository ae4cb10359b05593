"""What is to be trained how: the choices that memory depends on, apart from the model and the strategy."""

import math
from typing import Final, Literal

import msgspec

from dsdoctor.fit.shapes import ModelShape

Dtype = Literal["bf16", "fp16", "fp32"]
Optimizer = Literal["adamw", "adamw-fused", "adamw-torch", "adamw-8bit", "lion", "adafactor", "sgd"]
Attention = Literal["sdpa", "flash", "eager"]

OPTIMIZERS: Final[tuple[Optimizer, ...]] = (
    "adamw",
    "adamw-fused",
    "adamw-torch",
    "adamw-8bit",
    "lion",
    "adafactor",
    "sgd",
)
# bytes of states per trained parameter, where the optimizer sees one flat fp32 tensor (ZeRO)
STATE_BYTES: Final[dict[Optimizer, float]] = {
    "adamw": 8,  # DeepSpeed's fused one: two moments
    "adamw-fused": 8,  # torch's fused one, the default of transformers' Trainer
    "adamw-torch": 8,  # torch's plain one, which works through lists of tensors (foreach)
    "adamw-8bit": 2 + 2 * 4 / 256,  # two moments of a byte, and a scale for each block of 256
    "lion": 4,
    "adafactor": 4,  # it factors matrices only, and a flat partition is none
    "sgd": 0,
}
LORA_ATTENTION: Final = 4  # matrices of a layer that get an adapter: query, key, value, output
MIB: Final = 1 << 20


class Buckets(msgspec.Struct, frozen=True, kw_only=True):
    """zero_optimization's sizes in elements, with DeepSpeed's defaults."""

    reduce: int = 500_000_000
    allgather: int = 500_000_000
    prefetch: int = 50_000_000
    live: int = 1_000_000_000
    persistence: int = 100_000
    sub_group: int = 1_000_000_000
    overlap: bool | None = None  # None: on at stage 3, off below


class Training(msgspec.Struct, frozen=True, kw_only=True):
    micro_batch: int = 1
    sequence: int = 2048
    dtype: Dtype = "bf16"
    optimizer: Optimizer = "adamw"
    checkpointing: bool = False
    attention: Attention = "sdpa"
    lora_rank: int = 0  # 0: every parameter is trained
    accumulation: int = 1
    gpus_per_node: int = 1
    nodes: int = 1
    pin_memory: bool = True
    zero_init: bool = False  # the model is made inside deepspeed.zero.Init
    buckets: Buckets = Buckets()

    @property
    def world(self) -> int:
        return self.gpus_per_node * self.nodes

    @property
    def width(self) -> int:
        """Bytes of a weight on the GPU."""
        return 4 if self.dtype == "fp32" else 2

    @property
    def tokens(self) -> int:
        return self.micro_batch * self.sequence

    @property
    def state_bytes(self) -> float:
        return STATE_BYTES[self.optimizer]


def trained(shape: ModelShape, training: Training) -> int:
    """Parameters that get a gradient: all, or the adapters' two thin matrices beside each projection of attention."""
    if not training.lora_rank:
        return shape.parameters
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sides = 2 * (shape.hidden + queries) + 2 * (shape.hidden + keys)
    return training.lora_rank * sides * shape.layers


def share(count: int, ranks: int) -> int:
    """One rank's part, rounded up."""
    return math.ceil(count / ranks)
