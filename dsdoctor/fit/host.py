"""RAM of one node, and the files on its NVMe drive."""

from dsdoctor.fit.items import Account, Item, item, worst
from dsdoctor.fit.runtime import COMMUNICATING, IMPORTS, SEVERAL, TRAINING
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.sizes import Sizes, sizes, sub_groups
from dsdoctor.fit.strategies import Strategy
from dsdoctor.fit.training import Training, share


def pinned(count: float, training: Training) -> int:
    """torch's allocator for pinned memory takes the next power of two."""
    size = int(count)
    return 1 << (size - 1).bit_length() if training.pin_memory and size > 0 else size


def host_account(shape: ModelShape, training: Training, plan: Strategy) -> Account:
    s, ranks = sizes(shape, training, plan), training.gpus_per_node
    begun = COMMUNICATING if plan.stage == 3 else IMPORTS  # below stage 3 the model leaves RAM before NCCL comes
    if training.world > 1:  # NCCL is there before the model is made
        begun = SEVERAL
    return worst({"start": [_processes(ranks, begun), *_model(s)], "step": [_processes(ranks, TRAINING), *_held(s)]})


def _processes(ranks: int, each: int) -> Item:
    return item(
        "runtime", "processes", ranks * each, "Python, torch, CUDA's libraries and DeepSpeed, per rank", exact=False
    )


def _model(s: Sizes) -> list[Item]:
    if s.training.zero_init and s.plan.stage == 3:
        return []
    ranks = s.training.gpus_per_node
    return [
        item(
            "model",
            "the model itself",
            ranks * s.width * s.all,
            "every rank makes it in RAM before it moves to the GPU",
        )
    ]


def _held(s: Sizes) -> list[Item]:
    items: list[Item] = []
    if s.plan.optimizer == "cpu":
        items += _optimizer_stage3(s) if s.plan.stage == 3 else _optimizer_below(s)
    if s.plan.parameters == "cpu":
        items += _parameters(s)
    if s.plan.optimizer == "nvme" or s.plan.parameters == "nvme":
        items += _swap_buffers(s)
    return items


def _states(s: Sizes) -> Item:
    ranks = s.training.gpus_per_node
    return item(
        "optimizer",
        "optimizer states",
        ranks * s.training.state_bytes * s.part,
        f"{s.training.state_bytes:g} bytes for each parameter",
    )


def _optimizer_below(s: Sizes) -> list[Item]:
    """ZeRO-1 and 2."""
    ranks, one = s.training.gpus_per_node, 4 * s.part
    rounded = ", rounded up to a power of two because it is pinned" if s.training.pin_memory else ""
    return [
        item("master", "fp32 parameters", ranks * pinned(one, s.training), f"4 bytes for each parameter{rounded}"),
        item("gradients", "fp32 gradients", ranks * pinned(one, s.training), f"4 bytes for each parameter{rounded}"),
        _states(s),
        item(
            "buffers",
            "16-bit parameters",
            ranks * pinned(s.width * s.part, s.training),
            f"on their way back to the GPU{rounded}",
        ),
        item(
            "buffers", "gradient on its way", ranks * pinned(s.width * s.largest, s.training), "of the largest tensor"
        ),
        *_accumulated(s),
    ]


def _accumulated(s: Sizes) -> list[Item]:
    """ZeRO-2 adds up the gradients of the micro steps in RAM, each tensor in a buffer of its own."""
    if s.training.accumulation == 1 or s.plan.stage != 2:
        return []
    each = sum(part.times * pinned(s.width * size, s.training) for part in s.shape.parts for size in part.tensors)
    own = min(each, s.trained * s.width * 2) // s.training.world
    return [
        item(
            "gradients",
            "accumulated gradients",
            s.training.gpus_per_node * own,
            "of the micro steps before",
            exact=False,
        )
    ]


def _optimizer_stage3(s: Sizes) -> list[Item]:
    ranks = s.training.gpus_per_node
    rounded = ", rounded up to a power of two because it is pinned" if s.training.pin_memory else ""
    return [
        item("master", "fp32 parameters", ranks * 4 * s.part, "4 bytes for each parameter"),
        item(
            "gradients",
            "fp32 gradients",
            ranks * sum(pinned(4 * group, s.training) for group in sub_groups(s)),
            f"4 bytes for each parameter, by sub-groups{rounded}",
        ),
        item(
            "gradients", "gradients", ranks * pinned(s.width * s.part, s.training), f"as backward leaves them{rounded}"
        ),
        _states(s),
        *_narrowed(s),
    ]


def _narrowed(s: Sizes) -> list[Item]:
    """New weights become narrow in RAM before they go up to the GPU; where weights stay in RAM they are copied in place."""
    if not s.mixed or s.plan.parameters != "gpu":
        return []
    count = s.training.gpus_per_node * s.width * max(sub_groups(s))
    return [item("buffers", "16-bit parameters", count, "on their way back to the GPU, of one sub-group at a time")]


def _parameters(s: Sizes) -> list[Item]:
    ranks, world = s.training.gpus_per_node, s.training.world
    flat = pinned(s.width * share(s.all, world), s.training)
    each = sum(part.times * pinned(s.width * share(size, world), s.training) for part in s.shape.parts for size in part.tensors
               if size >= s.training.buckets.persistence)  # fmt: skip
    return [
        item("parameters", "parameters", ranks * flat, f"{s.width} bytes for each, one pinned buffer"),
        item("buffers", "parameters one by one", ranks * (each if s.training.pin_memory else 0), "pinned before the one buffer was made, and never given back"),
    ]  # fmt: skip


def _swap_buffers(s: Sizes) -> list[Item]:
    ranks, items = s.training.gpus_per_node, []
    if s.plan.parameters == "nvme":
        items.append(
            item(
                "buffers",
                "swap buffers",
                ranks * pinned(5 * 100_000_000 * s.width, s.training),
                "buffer_count 5 x buffer_size 1e8 elements",
            )
        )
        live = min(s.all, 1_000_000_000)
        items.append(
            item(
                "parameters",
                "parameters kept in RAM",
                ranks * pinned(s.width * share(live, s.training.world), s.training),
                "max_in_cpu, 1e9 elements",
            )
        )
    if s.plan.optimizer == "nvme":
        group = max(sub_groups(s))
        items.append(
            item(
                "buffers",
                "swap buffers of the optimizer",
                ranks * 4 * 4 * group,
                "buffer_count 4 x the largest sub-group in fp32",
            )
        )
        items.append(
            item(
                "optimizer",
                "optimizer states",
                ranks * s.training.state_bytes * group,
                "of the largest sub-group, before they go to the files",
            )
        )
        items.append(
            item("gradients", "gradients", ranks * pinned(s.width * s.part, s.training), "as backward leaves them")
        )
    return items


def nvme_account(shape: ModelShape, training: Training, plan: Strategy) -> Account:
    """Files under zero_stage_3; they stay after the run."""
    s, ranks = sizes(shape, training, plan), training.gpus_per_node
    items = []
    if plan.optimizer == "nvme":
        items.append(
            item(
                "optimizer",
                "optimizer files",
                ranks * (4 + s.training.state_bytes + 4) * s.part,
                "fp32 parameters, states and gradients",
            )
        )
    if plan.parameters == "nvme":
        items.append(
            item(
                "parameters",
                "parameter files",
                ranks * s.width * share(s.all, training.world),
                f"{s.width} bytes for each parameter",
            )
        )
    return worst({"run": items})
