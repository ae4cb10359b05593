"""What no model asks for and every process takes: CUDA's context, NCCL, the allocator's pieces; Python and its libraries in RAM."""

from typing import Final

from dsdoctor.fit.items import Item, item
from dsdoctor.fit.training import MIB, Training

CONTEXT: Final = 560 * MIB  # measured on an H200 with torch 2.11
NCCL: Final = 500 * MIB
FRAGMENTS: Final = 0.03
PROCESS: Final = 2200 * MIB  # interpreter, torch, CUDA's libraries and DeepSpeed in RAM


def runtime_items(items: list[Item], training: Training) -> list[Item]:
    held = sum(one.bytes for one in items)
    found = [item("runtime", "CUDA context", CONTEXT, "kernels and the driver's own, per process", exact=False)]
    if training.world > 1:
        found.append(item("runtime", "NCCL", NCCL, "channels to the other GPUs", exact=False))
    found.append(
        item(
            "runtime",
            "allocator",
            FRAGMENTS * held,
            "blocks that are cached and do not fit the next tensor",
            exact=False,
        )
    )
    return found
