"""One GPU's memory through a step: what is always there, and what the loss, the end of backward and the optimizer's step add.

Read in DeepSpeed 0.19.8: runtime/zero/stage_1_and_2.py, stage3.py, partition_parameters.py, runtime/fp16/*_optimizer.py.
"""

from typing import Final

from dsdoctor.fit import sharded
from dsdoctor.fit.items import Account, Item, item, worst
from dsdoctor.fit.runtime import gpu_runtime
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.sizes import Sizes, sizes, sub_groups
from dsdoctor.fit.strategies import Strategy
from dsdoctor.fit.training import MIB, Training, share

WORKSPACE: Final = 32 * MIB


def gpu_account(shape: ModelShape, training: Training, plan: Strategy) -> Account:
    s = sizes(shape, training, plan)
    runtime = gpu_runtime(plan.stage, training)
    always = [*steady(s), *runtime]
    moments = {name: [*always, *extra] for name, extra in _moments(s).items()}
    if plan.stage == 3 and not training.zero_init:
        moments["initialize"] = [*runtime, sharded.whole(s)]
    return worst(moments)


def _moments(s: Sizes) -> dict[str, list[Item]]:
    match s.plan.stage:
        case 0:
            return {
                "loss": loss(s),
                "backward": [*first_layer(s), _whole_gradients(s), *_all_reduce(s)],
                "step": [_whole_gradients(s), *step_ddp(s)],
            }
        case 3:
            return {
                "loss": [*loss(s), *sharded.gathered(s)],
                "head": [*head(s), *sharded.gathered(s), *sharded.norm_or_copy(s)],
                "backward": backward_sharded(s),
                "step": step_sub_group(s),
            }
        case _:
            return {
                "loss": loss(s),
                "head": [*head(s), *reduce_buckets(s)],
                "backward": backward_partitioned(s),
                "step": step_partitioned(s),
            }


def steady(s: Sizes) -> list[Item]:
    """There from initialize() on, and the optimizer's states from the first step on."""
    workspace = item("buffers", "cuBLAS's workspace", WORKSPACE, "that of a Hopper GPU, others take 8 MiB", exact=False)
    return [*_weights(s), *_optimizer(s), *(sharded.buffers(s) if s.plan.stage == 3 else _way_out(s)), workspace]


def _way_out(s: Sizes) -> list[Item]:
    """ZeRO-1 and 2 make a buffer for offloaded gradients in initialize()."""
    if s.plan.optimizer == "gpu":
        return []
    return [item("buffers", "gradient on its way", s.width * s.largest, "a buffer of the largest tensor's size")]


def accumulated(s: Sizes) -> list[Item]:
    """Gradients of the micro steps before: there while the next one runs."""
    if s.training.accumulation == 1 or s.plan.stage == 3 or (s.plan.stage == 2 and s.plan.optimizer != "gpu"):
        return []  # a buffer made by initialize() holds them, or RAM does
    count = s.part if s.plan.stage == 2 else s.trained
    return [item("gradients", "accumulated gradients", s.width * count, "those of the micro steps before")]


def _weights(s: Sizes) -> list[Item]:
    if s.plan.stage < 3:
        return [item("parameters", "parameters", s.width * s.all, f"{s.width} bytes for each, whole on every GPU")]
    small = s.shape.small(s.training.buckets.persistence)
    if s.plan.parameters == "gpu":
        why = f"{s.width} bytes for each, a part on every GPU"
        whole = small if s.training.world > 1 else 0
        return [
            item("parameters", "parameters", s.width * share(s.all, s.training.world), why),
            item(
                "parameters",
                "small parameters",
                s.width * whole,
                "those below the persistence threshold stay whole everywhere",
            ),
        ]
    return [
        item("parameters", "small parameters", s.width * small, "those below the persistence threshold stay on the GPU")
    ]


def _optimizer(s: Sizes) -> list[Item]:
    if s.plan.optimizer != "gpu":
        return []
    states = item(
        "optimizer",
        "optimizer states",
        s.training.state_bytes * s.part,
        f"{s.training.state_bytes:g} bytes for each parameter of its part",
    )
    if s.mixed:
        return [item("master", "fp32 parameters", 4 * s.part, "the copy that the optimizer works on"), states]
    copies = 1 if s.plan.stage else 0
    return [
        item(
            "master",
            "fp32 parameters",
            4 * s.part * copies,
            "ZeRO copies its part even where it is fp32 already",
        ),
        states,
    ]


def loss(s: Sizes) -> list[Item]:
    """All layers' activations are there, and the logits with their gradients on top."""
    return [
        *kept(s),
        *accumulated(s),
        item(
            "loss",
            "logits",
            s.act.loss,
            "tokens x vocabulary, three times: log-softmax and two gradients, in fp32 mostly",
        ),
    ]


def head(s: Sizes) -> list[Item]:
    """Right after the loss: the logits' gradients are narrow again, the head's own gradient is made, the bucket too."""
    tokens = s.training.tokens
    return [
        *kept(s),
        *accumulated(s),
        item("loss", "logits", s.width * tokens * s.shape.vocab, "their gradients"),
        item(
            "gradients",
            "gradient of the head",
            s.width * min(s.shape.vocab * s.shape.hidden, s.trained),
            "before it goes into the bucket",
        ),
    ]


def kept(s: Sizes) -> list[Item]:
    how = "each layer's input" if s.training.checkpointing else "what each layer's backward needs"
    return [item("activations", "activations", s.act.kept + s.act.ends, f"tokens x layers x {how}", exact=False)]


def first_layer(s: Sizes) -> list[Item]:
    """Backward has come to the first layer: its activations, and their gradients."""
    bytes_ = 2 * s.act.layer if s.training.checkpointing else s.act.layer
    return [item("activations", "activations", bytes_, "one layer's, and their gradients", exact=False)]


def _whole_gradients(s: Sizes) -> Item:
    return item("gradients", "gradients", s.width * s.trained, f"{s.width} bytes for each trained parameter")


def _all_reduce(s: Sizes) -> list[Item]:
    if s.training.world == 1:
        return []
    bucket = min(s.trained, 500_000_000 + s.largest)
    return [
        item(
            "buffers",
            "all-reduce bucket",
            s.width * bucket,
            "gradients are flattened by half a billion before they are reduced",
        )
    ]


def step_ddp(s: Sizes) -> list[Item]:
    copies = 0
    if s.mixed:
        copies = 8 if s.training.optimizer == "adamw" else 4
    why = "their fp32 copies; the fused optimizer flattens these once more" if copies == 8 else "their fp32 copies"
    return [item("gradients", "fp32 gradients", copies * s.trained, why), *_foreach(s, s.trained)]


def _foreach(s: Sizes, count: int) -> list[Item]:
    if s.training.optimizer not in ("adamw-torch", "adafactor"):
        return []
    return [
        item(
            "buffers",
            "optimizer's temporaries",
            4 * count,
            "torch's optimizer makes a list of denominators at once",
            exact=False,
        )
    ]


def reduce_buckets(s: Sizes) -> list[Item]:
    count = 2 if s.overlap else 1
    why = "reduce_bucket_size elements" + (", twice because of overlap_comm" if s.overlap else "")
    return [item("buffers", "gradient bucket", count * s.width * s.training.buckets.reduce, why)]


def backward_partitioned(s: Sizes) -> list[Item]:
    """ZeRO-1 and 2: gradients go through the bucket into this rank's part."""
    items = [*first_layer(s), *reduce_buckets(s), *(accumulated(s) if s.plan.stage == 2 else ())]
    if s.plan.optimizer == "gpu":
        items.append(
            item("gradients", "gradients of its part", s.width * (s.part + s.largest), "copied out of the bucket")
        )
    else:
        items.append(
            item(
                "buffers",
                "gradient on its way",
                (s.width + 8) * s.largest,
                "the largest tensor's own, and the fp64 copy that its norm is taken of",
            )
        )
    if s.plan.stage == 1 and not s.overlap:
        moved = min(s.trained, s.training.buckets.reduce)
        items.append(
            item(
                "gradients",
                "gradients",
                s.width * (s.trained - moved),
                "whole until backward is over: ZeRO-1 reduces them then",
            )
        )
    return items


def step_partitioned(s: Sizes) -> list[Item]:
    if s.plan.optimizer != "gpu":
        return []
    items = [item("gradients", "gradients of its part", s.width * s.part, "as backward left them")]
    if s.mixed:
        items.append(
            item(
                "gradients",
                "flat and fp32 gradients",
                (s.width + 4) * s.part,
                "flattened, then copied to fp32, before the old ones go",
            )
        )
    else:
        items.append(item("gradients", "flat gradients", 4 * s.part, "flattened before the old ones go"))
    return items


def backward_sharded(s: Sizes) -> list[Item]:
    return [*first_layer(s), *sharded.gathered(s), *sharded.sorted_bucket(s)]


def step_sub_group(s: Sizes) -> list[Item]:
    group = max(sub_groups(s))
    if s.plan.optimizer != "gpu":
        return []
    if not s.mixed:
        return [item("gradients", "flat gradients", 4 * group, "of one sub-group at a time"), *_foreach(s, group)]
    return [
        item("gradients", "flat and fp32 gradients", (s.width + 4) * group, "of one sub-group at a time"),
        *_foreach(s, group),
    ]
