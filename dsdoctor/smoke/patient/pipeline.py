"""Pipeline stages, tensor slices and data-parallel copies of one small model, held to what the unsplit model gives."""

import itertools
import math

import deepspeed
import deepspeed.comm as dist
import torch
from deepspeed.pipe import LayerSpec, PipelineModule
from deepspeed.runtime.pipe.topology import PipeDataParallelTopology, PipeModelDataParallelTopology
from dsdoctor_smoke import holdings, tiny, zero
from torch.nn.functional import mse_loss

MICRO_BATCH = 4
TOLERANCE = {"fp32": 1e-4, "fp16": 5e-3, "bf16": 2e-2}  # relative: a sum in another order rounds otherwise


def run(order, channel):
    tiny.rendezvous(channel)
    dtype = tiny.choose_dtype(torch, order["dtype"], order["cpu"])
    parts = split(order["recipe"], channel.world_size)
    engine = start(channel, order, own_config(dtype, parts), parts)
    words = "pipeline %d x data %d" % parts[:2] + (" x tensor %d" % parts[2] if order["recipe"] == "3d" else "")
    tiny.describe(channel, dtype, stage=engine.zero_optimization_stage(), parallel=words)
    batch = fixed_batch(order, engine, dtype, parts[1])
    first = train(channel, order, engine, batch, parts[1])
    if channel.rank == 0:
        compare(channel, order, first, batch, parts, dtype)
    tell_holdings(channel, order, engine, parts)
    tiny.leave()


def split(recipe, ranks):
    """How many stages, data-parallel copies and slices: their product is ``ranks``."""
    tensor = next((n for n in (2, 3) if ranks % n == 0), 1) if recipe == "3d" else 1
    rest = ranks // tensor
    pipe = next((n for n in ((2, 3) if recipe == "3d" else (4, 3, 2)) if rest % n == 0), rest)
    return pipe, rest // pipe, tensor


def own_config(dtype, parts):
    """ZeRO-1: the highest stage that DeepSpeed's pipelines allow."""
    settings = tiny.config(dtype, 1, MICRO_BATCH)
    settings["gradient_accumulation_steps"] = 2 * max(parts[0], 2)  # micro batches of a step: more than stages
    return settings


def start(channel, order, settings, parts):
    """Each rank makes the layers of its stage only, and of them its slice."""
    pipe, data, tensor = parts
    topology = PipeModelDataParallelTopology(pipe, tensor, data) if tensor > 1 else PipeDataParallelTopology(pipe, data)
    mine = topology.get_coord(channel.rank)
    seeds = layer_seeds(order, pipe)
    layers = [LayerSpec(Block, seed, getattr(mine, "model", 0), tensor) for seed in seeds]
    with channel.phase("initialize"):
        model = PipelineModule(layers, topology=topology, loss_fn=loss_of, partition_method="uniform")
        for layer in model.forward_funcs:
            layer.group = model.mpu().get_slice_parallel_group() if tensor > 1 else None
        engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config=settings)
    return engine


def layer_seeds(order, pipe):
    return [order["seed"] + number for number in range(2 * pipe)]


def loss_of(outputs, targets):
    return mse_loss(outputs.float(), targets.float())


def fixed_batch(order, engine, dtype, data):
    count = MICRO_BATCH * engine.gradient_accumulation_steps() * data
    kind = tiny.torch_dtype(torch, dtype)
    return tiny.batch(torch, order["seed"], count, (Block.WIDTH, Block.WIDTH), kind, engine.device)


def train(channel, order, engine, batch, data):
    """Steps on a fixed batch, then its loss. Returns (loss, grad norm) of the first step."""
    place = engine.grid.get_data_parallel_rank()
    mine = [tiny.share(tensor, place, data).split(MICRO_BATCH) for tensor in batch]
    batches = itertools.cycle(list(zip(*mine)))
    taken = []

    def step():
        loss = float(engine.train_batch(batches))  # the mean over all copies, on every rank
        taken.append((loss, engine.get_global_grad_norm()))
        return loss, taken[-1][1], zero.scale_of(engine)

    tiny.take_steps(channel, order["steps"], step)
    with channel.phase("evaluate"):
        channel.rank_facts(loss=float(engine.eval_batch(batches)))
    return taken[0]


def compare(channel, order, first, batch, parts, dtype):
    """The first step against the same layers in one piece, on this rank alone, in plain torch."""
    inputs, targets = batch
    layers = [Block(seed).to(device=inputs.device, dtype=inputs.dtype) for seed in layer_seeds(order, parts[0])]
    whole = torch.nn.Sequential(*layers)
    loss = loss_of(whole(inputs), targets)
    loss.backward()
    norm = sum(float(p.grad.float().pow(2).sum()) for p in whole.parameters()) ** 0.5
    name = "tensor-parallel" if parts[2] > 1 else "pipeline"
    agree(channel, name + "-agrees", "loss", first[0], float(loss.detach()), dtype)
    if first[1] is not None and 0 < float(first[1]) < math.inf:  # fp16 may have skipped the step
        agree(channel, name + "-gradients-agree", "gradient norm", float(first[1]), norm, dtype)


def agree(channel, name, what, split_value, whole_value, dtype):
    near = abs(split_value - whole_value) <= TOLERANCE[dtype] * abs(whole_value)
    detail = "%s of the first step: %.7g split over the ranks, %.7g of the model in one piece"
    channel.proof(name, near, detail % (what, split_value, whole_value))


def tell_holdings(channel, order, engine, parts):
    """What each rank keeps, and that stages and slices together are the model: nothing twice, nothing missing."""
    pipe, _, tensor = parts
    whole = sum(p.numel() for seed in layer_seeds(order, pipe) for p in Block(seed).parameters())
    channel.rank_facts(**dict(holdings.told(engine), parameter_elements=whole))
    own = torch.zeros(channel.world_size, dtype=torch.long, device=engine.device)
    own[channel.rank] = sum(layer.own_elements() for layer in engine.module.forward_funcs)
    dist.all_reduce(own)
    if channel.rank != 0:
        return
    topology = engine.module.topology()
    for name, axis, count in (("stages", "pipe", pipe), ("slices", "model", tensor)):
        if count > 1:
            places = [{axis: number, "data": 0} for number in range(count)]
            sums = [sum(int(own[rank]) for rank in topology.filter_match(**place)) for place in places]
            kept = " + ".join(str(number) for number in sums)
            channel.proof(
                name + "-apart",
                sum(sums) == whole and min(sums) > 0,
                "the %s keep %s of %d parameters" % (name, kept, whole),
            )


class Block(torch.nn.Module):
    """x + relu(x A) B + c, with weights that depend on the seed alone.

    A is split by columns and B by rows, over ``slices`` ranks of which this one is ``place``; c is on all of them.
    """

    WIDTH = 64
    INNER = 240  # can be cut in 2, 3, 4, 5, 6 or 8

    def __init__(self, seed, place=0, slices=1):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        into = torch.randn(self.INNER, self.WIDTH, generator=generator) / self.WIDTH**0.5
        back = torch.randn(self.WIDTH, self.INNER, generator=generator) / (4 * self.INNER) ** 0.5
        self.into = torch.nn.Parameter(into.chunk(slices, dim=0)[place].clone())
        self.back = torch.nn.Parameter(back.chunk(slices, dim=1)[place].clone())
        self.bias = torch.nn.Parameter(torch.zeros(self.WIDTH))
        self.place, self.slices = place, slices
        self.group = None  # of the ranks with the other slices
        if slices > 1:
            self.into.model_parallel = self.back.model_parallel = True  # for DeepSpeed's gradient norm

    def forward(self, x):
        y = x if self.slices == 1 else Spread.apply(x, self.group)
        y = torch.nn.functional.linear(torch.relu(torch.nn.functional.linear(y, self.into)), self.back)
        y = y if self.slices == 1 else Summed.apply(y, self.group)
        return x + y + self.bias

    def own_elements(self):
        """Of the parameters that this slice keeps, those that no slice before it keeps."""
        return self.into.numel() + self.back.numel() + (self.bias.numel() if self.place == 0 else 0)


class Spread(torch.autograd.Function):
    """Every slice gets x; the gradient of x is the sum of theirs."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        total = gradient.clone().contiguous()
        dist.all_reduce(total, group=ctx.group)
        return total, None


class Summed(torch.autograd.Function):
    """The sum over the slices; each of them gets its gradient."""

    @staticmethod
    def forward(ctx, x, group):
        total = x.clone().contiguous()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None
