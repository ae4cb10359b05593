"""A mixture of experts whose experts are spread over all ranks: tokens travel to them and back by all-to-all."""

import deepspeed
import deepspeed.comm as dist
import torch
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import is_moe_param, split_params_into_different_moe_groups_for_optimizer
from dsdoctor_smoke import holdings, tiny, zero

WIDTH = 64
INNER = 128
EXPERTS_EACH = 2  # of a rank
MICRO_BATCH = 32
LOSS_SHARE = 0.01  # of the loss that wants the gate to use all experts alike


class Mixture(torch.nn.Module):
    """Two linear maps with experts between them. The gate is deterministic and no token is dropped."""

    def __init__(self, ranks):
        super().__init__()
        nn = torch.nn
        expert = nn.Sequential(nn.Linear(WIDTH, INNER), nn.ReLU(), nn.Linear(INNER, WIDTH))
        count = EXPERTS_EACH * ranks
        self.first, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.experts = MoE(
            WIDTH, expert, num_experts=count, ep_size=ranks, k=1,
            capacity_factor=count, eval_capacity_factor=count, use_rts=False,
        )  # fmt: skip

    def forward(self, x):
        x = torch.relu(self.first(x))
        mixed, uneven, tokens = self.experts(x)
        return self.last(x + mixed), uneven, tokens


def run(order, channel):
    tiny.rendezvous(channel)
    dtype, ranks = tiny.choose_dtype(torch, order["dtype"], order["cpu"]), channel.world_size
    engine = start(channel, order, tiny.config(dtype, 1, MICRO_BATCH))
    words = "%d experts over %d rank%s" % (EXPERTS_EACH * ranks, ranks, "s" if ranks > 1 else "")
    tiny.describe(channel, dtype, stage=engine.zero_optimization_stage(), parallel=words)
    train(channel, order, engine, dtype)
    tell_holdings(channel, engine)
    tiny.leave()


def start(channel, order, settings):
    """Every rank begins with the same weights, but for its experts."""
    with channel.phase("initialize"):
        torch.manual_seed(order["seed"])
        model = Mixture(channel.world_size)
        torch.manual_seed(order["seed"] + 1 + channel.rank)  # else all experts are copies of one
        for module in model.experts.deepspeed_moe.experts.modules():
            if isinstance(module, torch.nn.Linear):
                module.reset_parameters()
        every = {"params": list(model.parameters()), "name": "all"}
        groups = split_params_into_different_moe_groups_for_optimizer(every)
        engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=groups, config=settings)
    return engine


def train(channel, order, engine, dtype):
    """Steps on a fixed batch, of which each rank has its share; then the loss of a batch that all ranks have."""
    ranks, kind = channel.world_size, tiny.torch_dtype(torch, dtype)
    inputs, targets = tiny.batch(torch, order["seed"], MICRO_BATCH * ranks, (WIDTH, WIDTH), kind, engine.device)
    mine, wanted = tiny.share(inputs, channel.rank, ranks), tiny.share(targets, channel.rank, ranks)

    counts = []

    def step():
        outputs, uneven, tokens = engine(mine)
        counts.append(tokens)
        loss = torch.nn.functional.mse_loss(outputs.float(), wanted.float())
        engine.backward(loss + LOSS_SHARE * uneven)
        engine.step()
        return tiny.mean_over_ranks(torch, loss.detach()), engine.get_global_grad_norm(), zero.scale_of(engine)

    tiny.take_steps(channel, order["steps"], step)
    engine.eval()
    with torch.no_grad():
        outputs, _, _ = engine(inputs[:MICRO_BATCH])
    engine.train()
    common = torch.nn.functional.mse_loss(outputs.float(), targets[:MICRO_BATCH].float())
    channel.rank_facts(loss=float(common))
    if channel.rank == 0 and ranks > 1:
        tell_travel(channel, [int(count) for count in counts[0]])


def tell_travel(channel, sent):
    """Of the tokens of rank 0, how many each expert got in the first step: all are there, some went to other ranks."""
    away = sum(sent[EXPERTS_EACH:])
    words = (away, MICRO_BATCH, " ".join(str(count) for count in sent))
    channel.proof(
        "tokens-travel",
        sum(sent) == MICRO_BATCH and away > 0,
        "%d of rank 0's %d tokens went to other ranks; by expert: %s" % words,
    )


def tell_holdings(channel, engine):
    """Each rank keeps its experts and a copy of the rest. Experts are told apart by the sum of their weights."""
    parameters = list(engine.module.parameters())
    local = sum(p.numel() for p in parameters if is_moe_param(p))
    dense = sum(p.numel() for p in parameters) - local
    channel.rank_facts(**dict(holdings.told(engine), parameter_elements=dense + local * channel.world_size))
    own = engine.module.experts.deepspeed_moe.experts.deepspeed_experts
    sums = torch.zeros(channel.world_size, len(own), dtype=torch.float32, device=engine.device)
    for number, expert in enumerate(own):
        sums[channel.rank, number] = sum(p.detach().float().sum() for p in expert.parameters())
    dist.all_reduce(sums)
    if channel.rank == 0:
        count = engine.module.experts.num_experts
        found = ["%.6g" % float(value) for value in sums.flatten()]
        words = (count, len(own), channel.world_size, ", ".join(found))
        detail = "%d experts in all, %d on each rank of %d; sums of their weights: %s" % words
        channel.proof("experts-apart", len(set(found)) == len(found) == count, detail)
