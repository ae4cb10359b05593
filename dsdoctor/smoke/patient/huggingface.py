"""Hugging Face's two ways to DeepSpeed: Accelerate with its DeepSpeedPlugin, and the Trainer of transformers.

On a CPU both need a process group that is made for them: neither Accelerate's ``cpu=True`` nor the Trainer's
``use_cpu=True`` may be given, for these turn DeepSpeed off (accelerate/state.py, AcceleratorState.__init__).
"""

import contextlib
import math
import os
import time
import types

import torch
from dsdoctor_smoke import holdings, tiny, zero

# a smoke run asks no server and tells none; read when the packages are imported
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "WANDB_MODE": "disabled"}
STAGE = 2


def run(order, channel):
    os.environ.update(QUIET)
    tiny.rendezvous(channel)
    {"accelerate": by_accelerate, "trainer": by_trainer}[order["recipe"]](order, channel)
    tiny.leave()


def as_users_write(stage):
    """What both need, in the form of Hugging Face's documentation: "auto" wherever they know the value."""
    return {
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto", "initial_scale_power": 8},
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000000, "allgather_bucket_size": 1000000},
    }


def precision(settings, dtype):
    """What Hugging Face is to be told: a type that the configuration switches on by itself must be the same."""
    for name in ("bf16", "fp16"):
        if (settings.get(name) or {}).get("enabled") is True:
            return name
    asks = any((settings.get(name) or {"enabled": "auto"}).get("enabled") == "auto" for name in ("bf16", "fp16"))
    return dtype if asks else "fp32"


def by_accelerate(order, channel):
    with channel.phase("import accelerate"):
        from accelerate import Accelerator
        from accelerate.utils import DeepSpeedPlugin, InitProcessGroupKwargs

    settings = order["config"] or as_users_write(order["stage"] or STAGE)
    dtype = precision(settings, tiny.choose_dtype(torch, order["dtype"], order["cpu"]))
    with channel.phase("initialize"):
        accelerator = Accelerator(
            mixed_precision="no" if dtype == "fp32" else dtype,
            deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=settings),
            kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")] if order["cpu"] else [],
        )
        engine, optimizer, loader = accelerator.prepare(*parts(order, settings, channel.world_size))
    insist(engine, accelerator.num_processes, channel.world_size)
    tiny.describe(channel, zero.dtype_of(engine), stage=engine.zero_optimization_stage(), offload=zero.offloading(settings))
    tiny.take_steps(channel, order["steps"], accelerated(accelerator, engine, optimizer, loader))
    inputs, targets = zero.global_batch(channel, order, engine, tiny.WIDTHS)
    channel.rank_facts(loss=zero.common_loss(engine, inputs, targets), **holdings.told(engine))


def parts(order, settings, ranks):
    """Model, optimizer and loader of the same fixed global batch as everywhere; placeholders for what the configuration makes."""
    from accelerate.utils import DummyOptim

    torch.manual_seed(order["seed"])
    model = tiny.perceptron(torch)
    model.config = types.SimpleNamespace(hidden_size=tiny.WIDTHS[0])  # Accelerate sizes buckets by it
    make = DummyOptim if "optimizer" in settings else torch.optim.AdamW
    micro = settings.get("train_micro_batch_size_per_gpu")
    micro = micro if isinstance(micro, int) else tiny.MICRO_BATCH
    pairs = torch.utils.data.TensorDataset(*tiny.batch(torch, order["seed"], micro * ranks, tiny.WIDTHS, torch.float32, "cpu"))
    return model, make(model.parameters(), lr=1e-3), torch.utils.data.DataLoader(pairs, batch_size=micro)
