"""A mixture of experts whose experts are spread over all ranks: tokens travel to them and back by all-to-all."""

import deepspeed
import deepspeed.comm as dist
import torch
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import is_moe_param, split_params_into_different_moe_groups_for_optimizer
from dsdoctor_smoke import holdings, tiny, zero
from dsdoctor_smoke.pipeline import TOLERANCE, loss_of
from torch.nn.utils import parameters_to_vector, vector_to_parameters

WIDTH = 64
INNER = 128
EXPERTS_EACH = 2  # of a rank
MICRO_BATCH = 32
LOSS_SHARE = 0.01  # of the loss that wants the gate to use all experts alike


def expert():
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, INNER), torch.nn.ReLU(), torch.nn.Linear(INNER, WIDTH))


class Mixture(torch.nn.Module):
    """Two linear maps with experts between them. The gate is deterministic and no token is dropped."""

    def __init__(self, ranks):
        super().__init__()
        count = EXPERTS_EACH * ranks
        self.first, self.last = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.experts = MoE(
            WIDTH, expert(), num_experts=count, ep_size=ranks, k=1,
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

    whole = tiny.share(outputs_in_one_piece(engine, inputs), channel.rank, ranks)
    seen = []

    def step():
        outputs, uneven, tokens = engine(mine)
        seen.append((outputs.detach(), tokens))
        loss = loss_of(outputs, wanted)
        engine.backward(loss + LOSS_SHARE * uneven)
        engine.step()
        return tiny.mean_over_ranks(torch, loss.detach()), engine.get_global_grad_norm(), zero.scale_of(engine)

    tiny.take_steps(channel, order["steps"], step)
    engine.eval()
    with torch.no_grad():
        outputs, _, _ = engine(inputs[:MICRO_BATCH])
    engine.train()
    channel.rank_facts(loss=float(loss_of(outputs, targets[:MICRO_BATCH])))
    compare(channel, seen[0][0], whole, dtype)
    if channel.rank == 0 and ranks > 1:
        tell_travel(channel, [int(count) for count in seen[0][1]])


def compare(channel, found, whole, dtype):
    """This rank's outputs of the first step against those of the experts on one rank."""
    away = float((found.float() - whole.float()).norm() / whole.float().norm())
    words = (channel.rank, float(found.float().norm()), float(whole.float().norm()), away)
    detail = "outputs of rank %d in the first step: norm %.6g through the ranks, %.6g in one piece, %.2g apart" % words
    channel.proof("experts-agree", away <= TOLERANCE[dtype], detail)


def outputs_in_one_piece(engine, inputs):
    """What the model makes of the whole batch when every token finds its expert on this rank, in plain torch."""
    model = engine.module
    mine = torch.stack([parameters_to_vector(e.parameters()).detach() for e in local_experts(engine)])
    every = torch.empty(model.experts.num_experts, mine.shape[1], dtype=mine.dtype, device=mine.device)
    dist.all_gather_into_tensor(every, mine)
    with torch.no_grad():
        x = torch.relu(model.first(inputs))
        gates = torch.softmax(
            torch.nn.functional.linear(x.float(), model.experts.deepspeed_moe.gate.wg.weight.float()), 1
        )
        weights, chosen = gates.max(dim=1)
        mixed = torch.zeros_like(x)
        for number, vector in enumerate(every):
            one = expert().to(dtype=x.dtype, device=x.device)
            vector_to_parameters(vector, one.parameters())
            mixed[chosen == number] = one(x[chosen == number])
        return model.last(x + mixed * weights.to(x.dtype).unsqueeze(1))


def local_experts(engine):
    return engine.module.experts.deepspeed_moe.experts.deepspeed_experts


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
    own = local_experts(engine)
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
