"""What no model asks for and every process takes: CUDA's context, NCCL, the allocator's pieces; Python and its libraries in RAM.

Measured on H200s with torch 2.11 (fixtures/fit/h200.jsonl): memory of the process by NVML less what torch's allocator reserved.
"""

from typing import Final

from dsdoctor.fit.items import Item, item
from dsdoctor.fit.training import MIB, Training

CONTEXT: Final = 535 * MIB
KERNELS: Final = 230 * MIB  # loaded one by one while the first step runs
NCCL: Final = 550 * MIB  # a communicator, even for one rank: initialize() broadcasts the parameters
NCCL_STAGE3: Final = 390 * MIB
NCCL_PEERS: Final = 490 * MIB  # more with two ranks than with one; more ranks were never measured
NCCL_PEERS_STAGE3: Final = 390 * MIB
IMPORTS: Final = 970 * MIB  # RAM of Python, torch, DeepSpeed and CUDA's libraries before initialize()
COMMUNICATING: Final = 1540 * MIB  # with NCCL loaded
SEVERAL: Final = 1320 * MIB  # where several ranks met before the model was made
TRAINING: Final = 2150 * MIB  # after the first step: kernels, autograd's and NCCL's threads


def gpu_runtime(stage: int, training: Training) -> list[Item]:
    more = NCCL_STAGE3 if stage == 3 else 0
    if training.world > 1:
        more += NCCL_PEERS_STAGE3 if stage == 3 else NCCL_PEERS
    return [
        item(
            "runtime",
            "CUDA context",
            CONTEXT + KERNELS,
            "the driver's own memory and the loaded kernels, per process",
            exact=False,
        ),
        item("runtime", "NCCL", NCCL + more, "buffers of its communicators, even on one GPU", exact=False),
    ]
