"""ZeRO-1, 2 and 3, with states in memory, on the CPU, or on a disk; and a user's own configuration."""

import deepspeed
import torch
from dsdoctor_smoke import holdings, swapping, tiny


def run(order, channel):
    recipe = order["recipe"]
    tiny.rendezvous(channel)
    dtype = tiny.choose_dtype(torch, order["dtype"], order["cpu"])
    widths = tiny.SWAPPED_WIDTHS if order["nvme"] else tiny.WIDTHS
    settings = order["config"] or own_config(recipe, dtype, order["stage"], order["nvme"])
    if order["nvme"]:
        swapping.try_plain(order["nvme"], channel)
    engine = start(channel, order, settings, widths)
    stage = engine.zero_optimization_stage()
    tiny.describe(channel, dtype_of(engine), stage=stage, offload=offloading(settings))
    moved = swapping.Counter(channel)
    train(channel, order, engine, widths, busy=offloading(settings) is not None)
    channel.rank_facts(**holdings.told(engine))
    if order["nvme"]:
        moved.told(order["nvme"])
    tiny.leave()


def own_config(recipe, dtype, stage, nvme):
    settings = tiny.config(dtype, stage)
    zero = settings["zero_optimization"]
    device = "nvme" if nvme else "cpu" if recipe.endswith("-offload") else None
    if device is None:
        return settings
    settings["optimizer"] = {"type": "AdamW", "params": {"lr": 1e-3}}  # DeepSpeedCPUAdam
    zero["offload_optimizer"] = {"device": device, "pin_memory": True}
    if stage == 3:
        zero["offload_param"] = {"device": device, "pin_memory": True}
    if nvme:
        zero["sub_group_size"] = 3000000  # some groups, so that swapping in and out happens
        zero["offload_optimizer"].update(nvme_path=nvme, buffer_count=4)
        zero["offload_param"].update(nvme_path=nvme, buffer_count=5, buffer_size=8000000)
        settings["aio"] = {"block_size": 1048576, "queue_depth": 8}
    return settings


def start(channel, order, settings, widths, phase="initialize"):
    torch.manual_seed(order["seed"])
    model = tiny.perceptron(torch, widths)
    optimizer = None
    if "optimizer" not in settings:
        optimizer = client_optimizer(model, settings)
    with channel.phase(phase):
        engine, _, _, _ = deepspeed.initialize(
            model=model, model_parameters=model.parameters(), optimizer=optimizer, config=settings
        )
    return engine


def client_optimizer(model, settings):
    """As Hugging Face does for a configuration without optimizer."""
    if stated(settings, "zero_optimization.offload_optimizer.device") in ("cpu", "nvme"):
        from deepspeed.ops.adam import DeepSpeedCPUAdam

        return DeepSpeedCPUAdam(model.parameters(), lr=1e-3)
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(channel, order, engine, widths, busy):
    """Steps on a fixed batch, of which each rank has its share, then the loss of a batch that all ranks have."""
    inputs, targets = global_batch(channel, order, engine, widths)
    step = stepping(channel, engine, inputs, targets)
    tiny.take_steps(channel, order["steps"], step)
    channel.rank_facts(loss=common_loss(engine, inputs, targets))
    if busy:
        tiny.keep_busy(channel, step)


def global_batch(channel, order, engine, widths):
    count = engine.train_micro_batch_size_per_gpu() * channel.world_size
    return tiny.batch(torch, order["seed"], count, widths, tiny.torch_dtype(torch, dtype_of(engine)), engine.device)


def stepping(channel, engine, inputs, targets):
    """One optimizer step on this rank's share, for ``tiny.take_steps``."""
    mine, wanted = (tiny.share(tensor, channel.rank, channel.world_size) for tensor in (inputs, targets))

    def step():
        total = 0.0
        for _ in range(engine.gradient_accumulation_steps()):
            loss = torch.nn.functional.mse_loss(engine(mine).float(), wanted.float())
            engine.backward(loss)
            engine.step()
            total += float(loss.detach())
        mean = tiny.mean_over_ranks(torch, total / engine.gradient_accumulation_steps())
        return mean, engine.get_global_grad_norm(), scale_of(engine)

    return step


def common_loss(engine, inputs, targets):
    """The loss of the batch's first part, the same for all ranks."""
    each = engine.train_micro_batch_size_per_gpu()
    engine.eval()
    with torch.no_grad():
        loss = torch.nn.functional.mse_loss(engine(inputs[:each]).float(), targets[:each].float())
    engine.train()
    return float(loss)


def dtype_of(engine):
    return "bf16" if engine.bfloat16_enabled() else "fp16" if engine.fp16_enabled() else "fp32"


def scale_of(engine):
    """The loss scale, of fp16 only."""
    return (
        getattr(engine.optimizer, "cur_scale", None) or getattr(engine.optimizer, "loss_scale", None)
        if engine.fp16_enabled()
        else None
    )


def offloading(settings):
    """ "optimizer to cpu", "optimizer and parameters to nvme"; None without offload."""
    places = [
        (word, stated(settings, "zero_optimization.%s.device" % key))
        for word, key in (("optimizer", "offload_optimizer"), ("parameters", "offload_param"))
    ]
    there = [(word, device) for word, device in places if device not in (None, "none")]
    if not there:
        return None
    devices = [device for _, device in there]
    if len(set(devices)) == 1:
        return " and ".join(word for word, _ in there) + " to " + devices[0]
    return ", ".join("%s to %s" % pair for pair in there)


def stated(settings, path, default=None):
    """What a configuration says; ``default`` where it says nothing, "auto", or nonsense on the way, which is DeepSpeed's to refuse."""
    value = settings
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return default if value in (None, "auto") else value
