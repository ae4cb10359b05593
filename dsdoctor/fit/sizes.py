"""The numbers that every account is made of: a shape, a training and a strategy brought together."""

import msgspec

from dsdoctor.fit.activations import Activations, activations
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.strategies import Strategy
from dsdoctor.fit.training import Training, share, trained


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that every item is made of."""

    shape: ModelShape
    training: Training
    plan: Strategy
    all: int  # parameters
    trained: int
    part: int  # of the trained ones, on this rank
    act: Activations

    @property
    def width(self) -> int:
        return self.training.width

    @property
    def mixed(self) -> bool:
        """Weights of 16 bits beside a master copy of 32."""
        return self.training.dtype != "fp32"

    @property
    def largest(self) -> int:
        return min(self.shape.largest_tensor, self.trained)

    @property
    def overlap(self) -> bool:
        said = self.training.buckets.overlap
        return self.plan.stage == 3 if said is None else said


def sizes(shape: ModelShape, training: Training, plan: Strategy) -> Sizes:
    count = trained(shape, training)
    return Sizes(
        shape=shape, training=training, plan=plan, all=shape.parameters + (count if training.lora_rank else 0), trained=count,
        part=share(count, training.world if plan.stage else 1), act=activations(shape, training, plan.stage == 3),
    )  # fmt: skip


def gathers(s: Sizes) -> bool:
    """Does ZeRO-3 make whole parameters out of parts? On one GPU the part is the whole."""
    return s.plan.stage == 3 and (s.training.world > 1 or s.plan.parameters != "gpu")


def sub_groups(s: Sizes) -> list[int]:
    """ZeRO-3's optimizer works through its part in groups: tensors are added until there are sub_group_size elements."""
    if s.training.lora_rank or s.part <= s.training.buckets.sub_group:
        return [s.part]
    groups, now, most, ranks = [], 0, s.training.buckets.sub_group, s.training.world
    for part in s.shape.parts:
        for size in tuple(-(-size // ranks) for size in part.tensors) * part.times:
            now += size
            if now >= most:
                groups.append(now)
                now = 0
    return [*groups, now] if now else groups
