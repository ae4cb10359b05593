"""The tiny model, its fixed batch, its DeepSpeed configuration, and the loop that every recipe shares."""

import math
import os
import time

WIDTHS = (64, 256, 64)
SWAPPED_WIDTHS = (1024, 4096, 1024)  # DeepSpeed keeps tensors under 1 MiB in memory, whatever it is told
MICRO_BATCH = 8


def choose_dtype(torch, wanted, cpu):
    """``wanted``, else bf16 where the hardware has it, else fp16 on a GPU; fp32 on a CPU."""
    if wanted:
        return wanted
    if cpu or not torch.cuda.is_available():
        return "fp32"
    return "bf16" if torch.cuda.get_device_capability(0)[0] >= 8 else "fp16"


def torch_dtype(torch, dtype):
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[dtype]


def config(dtype, stage, micro_batch=MICRO_BATCH):
    """A configuration whose optimizer needs no op to be compiled, with buckets that suit a tiny model."""
    settings = {
        "train_micro_batch_size_per_gpu": micro_batch,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000000, "allgather_bucket_size": 1000000},
        "steps_per_print": 1000000,
    }
    if stage == 3:
        # without these a tiny model is kept whole on every rank
        settings["zero_optimization"].update(stage3_param_persistence_threshold=0, stage3_model_persistence_threshold=0)
    if dtype == "bf16":
        settings["bf16"] = {"enabled": True}
    elif dtype == "fp16":
        settings["fp16"] = {"enabled": True, "initial_scale_power": 8}
    return settings


def perceptron(torch, widths=WIDTHS):
    nn = torch.nn
    return nn.Sequential(nn.Linear(widths[0], widths[1]), nn.ReLU(), nn.Linear(widths[1], widths[2]))


def batch(torch, seed, count, widths, dtype, device):
    """Inputs and targets that depend on the seed alone, in float32 first: the same for every dtype, device and rank."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, widths[0], generator=generator)
    targets = torch.randn(count, widths[-1], generator=generator)
    return inputs.to(device=device, dtype=dtype), targets.to(device=device, dtype=dtype)


def share(tensor, rank, ranks):
    """This rank's part of a global batch."""
    each = tensor.shape[0] // ranks
    return tensor[rank * each : (rank + 1) * each]


def mean_over_ranks(torch, value):
    """The mean of a number over all ranks; every rank must call it."""
    import deepspeed.comm as dist

    total = torch.tensor([float(value)], dtype=torch.float32, device=_device())
    dist.all_reduce(total)
    return float(total[0]) / dist.get_world_size()


def take_steps(channel, steps, step):
    """The first step as a phase, the others as another. ``step`` gives (loss, grad norm, loss scale), any but the loss None."""

    def timed(number):
        started = time.monotonic()
        loss, norm, scale = step()  # reading the loss waits for the device
        channel.step(number, loss, (time.monotonic() - started) * 1000, finite(norm), finite(scale))
        if not math.isfinite(loss):
            raise FloatingPointError("the loss of step %d became %s" % (number, loss))

    with channel.phase("first step"):
        timed(1)
    if steps > 1:
        with channel.phase("steps"):
            for number in range(2, steps + 1):
                timed(number)


def keep_busy(channel, step, seconds=2.0):
    """Goes on stepping for about so long, the same number of steps on every rank: long enough to see who waits for whom."""
    import torch

    started = time.monotonic()
    step()
    each = mean_over_ranks(torch, time.monotonic() - started)
    with channel.phase("steady load"):
        for _ in range(max(1, min(500, int(seconds / each)))):
            step()


def rendezvous(channel):
    """Every rank meets every other one, and one small sum is made: the first moment at which the network matters."""
    import deepspeed
    import torch

    with channel.phase("rendezvous"):
        if _device() != "cpu":
            deepspeed.accelerator.get_accelerator().set_device(channel.local_rank)  # an engine does it later
        deepspeed.init_distributed()
        total = torch.ones(1, device=_device())
        deepspeed.comm.all_reduce(total)
        if float(total[0]) != deepspeed.comm.get_world_size():
            raise ArithmeticError("the sum of one per rank is %s on %d ranks" % (float(total[0]), channel.world_size))


def leave():
    """Ends the process group: NCCL complains otherwise."""
    import torch

    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def describe(channel, dtype, **more):
    """Tells what runs, and on what."""
    import torch
    from deepspeed.accelerator import get_accelerator

    name = get_accelerator()._name
    device = torch.cuda.get_device_name(_device()) if name == "cuda" else name
    channel.setup(accelerator=name, device=device, dtype=dtype, world_size=channel.world_size, **more)
    channel.rank_facts(device=device)


def _device():
    from deepspeed.accelerator import get_accelerator

    accelerator = get_accelerator()
    return accelerator.device_name(int(os.environ.get("LOCAL_RANK", "0"))) if accelerator._name != "cpu" else "cpu"


def finite(value):
    """A plain number, or None for what is none (a norm that was not computed is -1 or None)."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
