"""What the modules of the healthy machine share."""

from typing import Any, TypeVar

import msgspec

from dsdoctor.facts import Fact

F = TypeVar("F", bound=Fact)
GIB = 1 << 30
SITE = "/home/user/env/lib/python3.12/site-packages"
OPS = ("async_io", "fused_adam", "cpu_adam", "cpu_adagrad", "cpu_lion", "pin_memory", "fused_lamb", "fused_lion", "quantizer",
        "random_ltd", "spatial_inference", "transformer", "stochastic_transformer", "transformer_inference", "utils",
        "inference_core_ops", "ragged_ops", "dc", "gds")  # fmt: skip


def bent(fact: F, changes: dict[str, Any]) -> F:
    return msgspec.structs.replace(fact, **changes) if changes else fact
