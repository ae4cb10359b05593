"""Parameter tensors by their sizes: what a layer is made of, so that counts, small tensors and largest ones come out exact."""

from typing import TypeAlias

import msgspec

Sizes: TypeAlias = tuple[int, ...]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One module, or ``times`` equal ones; ``tensors`` are the elements of each parameter of one of them."""

    name: str  # "embedding", "layer", "encoder layer", "head", ...
    tensors: Sizes
    times: int = 1

    @property
    def elements(self) -> int:
        """Of one of them."""
        return sum(self.tensors)


def linear(inputs: int, outputs: int, bias: bool = False) -> Sizes:
    return (inputs * outputs, outputs) if bias else (inputs * outputs,)


def norm(size: int, bias: bool = False) -> Sizes:
    return (size, size) if bias else (size,)


def gated_ffn(hidden: int, ffn: int, bias: bool = False) -> Sizes:
    return linear(hidden, ffn, bias) * 2 + linear(ffn, hidden, bias)


def plain_ffn(hidden: int, ffn: int, bias: bool = True) -> Sizes:
    return linear(hidden, ffn, bias) + linear(ffn, hidden, bias)


def attention(hidden: int, queries: int, keys: int, *, qkv_bias: bool = False, out_bias: bool = False) -> Sizes:
    """Query, key, value and output as matrices of their own; queries and keys are heads times the size of a head."""
    return linear(hidden, queries, qkv_bias) + linear(hidden, keys, qkv_bias) * 2 + linear(queries, hidden, out_bias)
