"""The ways to split a training, from the cheapest in traffic to the one that needs the least GPU memory."""

from typing import Final, Literal

import msgspec

from dsdoctor.fit.training import Training

Where = Literal["gpu", "cpu", "nvme"]


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # a stable word: "zero2-cpu"
    title: str  # what a reader sees
    stage: Literal[0, 1, 2, 3]
    optimizer: Where = "gpu"  # where the optimizer's states live
    parameters: Where = "gpu"  # where the weights live when they are not needed

    @property
    def offloads(self) -> bool:
        return self.optimizer != "gpu" or self.parameters != "gpu"


STRATEGIES: Final = (
    Strategy(name="ddp", title="DDP (ZeRO-0)", stage=0),
    Strategy(name="zero1", title="ZeRO-1", stage=1),
    Strategy(name="zero2", title="ZeRO-2", stage=2),
    Strategy(name="zero3", title="ZeRO-3", stage=3),
    Strategy(name="zero1-cpu", title="ZeRO-1, optimizer on the CPU", stage=1, optimizer="cpu"),
    Strategy(name="zero2-cpu", title="ZeRO-2, optimizer on the CPU", stage=2, optimizer="cpu"),
    Strategy(name="zero3-cpu", title="ZeRO-3, optimizer on the CPU", stage=3, optimizer="cpu"),
    Strategy(name="zero3-cpu-params", title="ZeRO-3, optimizer and parameters on the CPU", stage=3, optimizer="cpu", parameters="cpu"),
    Strategy(name="zero3-nvme", title="ZeRO-3, optimizer on NVMe, parameters on the CPU", stage=3, optimizer="nvme", parameters="cpu"),
    Strategy(name="zero3-nvme-params", title="ZeRO-3, optimizer and parameters on NVMe", stage=3, optimizer="nvme", parameters="nvme"),
)  # fmt: skip


def strategy(name: str) -> Strategy:
    return next(s for s in STRATEGIES if s.name == name)


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that one GPU moves in a step."""

    between_gpus: int
    over_pcie: int
    on_nvme: int

    @property
    def cost(self) -> float:
        """Bytes weighed by how slow the way is: NVLink about 10 times PCIe, PCIe about 5 times a good NVMe drive."""
        return self.between_gpus + 10 * self.over_pcie + 50 * self.on_nvme


def traffic(plan: Strategy, parameters: int, trained: int, training: Training) -> Traffic:
    """Ring collectives: an all-reduce moves 2 (N-1)/N of the data through each GPU, an all-gather or reduce-scatter half of it."""
    ranks, width = training.world, training.width
    ring = (ranks - 1) / ranks
    gradients, weights = ring * width * trained, ring * width * parameters
    if plan.stage == 3:  # gathered for forward and for backward (again when activations are recomputed: the same fetch)
        between = training.accumulation * (2 * weights + gradients)
    elif plan.stage == 2:
        between = training.accumulation * gradients + ring * width * trained
    else:
        between = 2 * gradients
    own = trained / ranks
    pcie = 0.0
    if plan.optimizer != "gpu":  # gradients down, new weights up
        pcie += 2 * width * own
    if plan.parameters != "gpu":
        pcie += training.accumulation * 2 * width * parameters / ranks
    disk = 0.0
    if plan.optimizer == "nvme":  # master weights and two moments read and written, gradients written and read
        disk += 2 * (4 + training.state_bytes + 4) * own
    if plan.parameters == "nvme":
        disk += (training.accumulation * 2 + 1) * width * parameters / ranks
    return Traffic(between_gpus=int(between), over_pcie=int(pcie), on_nvme=int(disk))
