"""What only ZeRO-3 has on a GPU: parts that become whole for a while, and its buffers."""

from typing import Final

from dsdoctor.fit.items import Item, item
from dsdoctor.fit.sizes import Sizes, gathers
from dsdoctor.fit.training import share

NORM: Final = 250_000_000  # elements that are widened at once to take a norm


def whole(s: Sizes) -> Item:
    why = "initialize() moves all of the model to every GPU before it shares it out, unless zero.Init made it"
    return item("parameters", "parameters", s.width * s.all, why)


def buffers(s: Sizes) -> list[Item]:
    items = [
        item(
            "buffers",
            "gradient bucket",
            s.width * s.training.buckets.reduce,
            "reduce_bucket_size elements, made by initialize()",
        )
    ]
    if s.plan.optimizer == "gpu":
        items.append(
            item("gradients", "gradients of its part", s.width * s.part, "one flat buffer, made by initialize()")
        )
    return items


def gathered(s: Sizes) -> list[Item]:
    """Parameters that are whole for a while: every module fetches ahead of it, until stage3_max_live_parameters are there."""
    if not gathers(s):
        return []
    count = min(s.all, max(s.training.buckets.live, s.shape.largest_layer))
    return [item("parameters", "gathered parameters", s.width * count, "up to stage3_max_live_parameters", exact=False)]


def norm_or_copy(s: Sizes) -> list[Item]:
    """What comes beside the head's gradient: offloaded, the fp64 copy that its norm is taken of; else the bucket's copy."""
    if s.plan.optimizer == "gpu":
        return sorted_bucket(s)
    count = min(share(s.largest, s.training.world), NORM)
    return [item("buffers", "gradient's norm", 8 * count, "the fp64 copy of the largest tensor's that it is taken of")]


def sorted_bucket(s: Sizes) -> list[Item]:
    content = min(s.trained, max(s.training.buckets.reduce, s.largest))
    return [item("buffers", "reduce-scatter", s.width * content, "the bucket's gradients, sorted by rank", exact=False)]
