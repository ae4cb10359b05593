"""What one strategy needs of a GPU, of a node's RAM and of its NVMe drive."""

import msgspec

from dsdoctor.fit.gpu import gpu_account
from dsdoctor.fit.host import host_account, nvme_account
from dsdoctor.fit.items import Account
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.strategies import STRATEGIES, Strategy
from dsdoctor.fit.training import Training


class Need(msgspec.Struct, frozen=True, kw_only=True):
    plan: Strategy
    gpu: Account  # each GPU
    host: Account  # each node
    nvme: Account  # each node


def need(shape: ModelShape, training: Training, plan: Strategy) -> Need:
    return Need(
        plan=plan,
        gpu=gpu_account(shape, training, plan),
        host=host_account(shape, training, plan),
        nvme=nvme_account(shape, training, plan),
    )


def needs(shape: ModelShape, training: Training) -> tuple[Need, ...]:
    """Of every strategy, in the order of the table."""
    return tuple(need(shape, training, plan) for plan in STRATEGIES)
