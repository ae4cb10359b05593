"""Collectives by themselves, through DeepSpeed's own layer: every element of every result compared, then timed."""

import time

import deepspeed.comm as dist
import torch
from deepspeed.accelerator import get_accelerator
from dsdoctor_smoke import tiny

KIB, MIB = 1024, 1024 * 1024
FLOAT = 4  # bytes
TIMED = 5
FAR = 1021  # a prime: data that is out of place by a power of two is noticed


def run(order, channel):
    tiny.rendezvous(channel)
    tiny.describe(channel, "fp32")
    largest = 16 * MIB if get_accelerator()._name == "cpu" else 64 * MIB
    for name, collective in COLLECTIVES.items():
        for size in (4 * KIB, MIB, largest):
            words = "%d MiB" % (size // MIB) if size >= MIB else "%d KiB" % (size // KIB)
            with channel.phase("%s %s" % (name, words)):
                seconds, wrong = measure(collective, size)
            tell(channel, name, size, seconds, wrong, size == largest)
    tiny.leave()


def tell(channel, name, size, seconds, wrong, always):
    """Rank 0 tells the largest message and any that came out wrong; a rank that saw something wrong tells it too."""
    fine = torch.tensor([0.0 if wrong else 1.0], device=tiny._device())
    dist.all_reduce(fine, op=dist.ReduceOp.MIN)
    correct = bool(fine[0]) and not wrong
    if wrong:
        channel.proof("collective " + name, False, "%d bytes: %s on rank %d" % (size, wrong, channel.rank))
    if channel.rank == 0 and (always or not correct):
        rates = [TURNS.get(name, 1) * size / second for second in seconds]
        channel.say("collective", name=name, message_bytes=size, bytes_per_s=rates, correct=correct)


def measure(collective, size):
    """Seconds of each timed repetition, and what was wrong with a result: None when every element is as it must be."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    prepare, call, result, pieces = collective(size // FLOAT // ranks * ranks, rank, ranks)
    seconds, wrong = [], None
    for _ in range(1 + TIMED):
        result.fill_(-1.0)  # nothing that was there before may pass for a result
        prepare()
        dist.barrier()
        synchronize()
        started = time.perf_counter()
        call()
        synchronize()
        seconds.append(max(time.perf_counter() - started, 1e-9))
        wrong = wrong or difference(result, pieces)
    return seconds[1:], wrong


def synchronize():
    if get_accelerator()._name != "cpu":
        get_accelerator().synchronize()


def difference(result, pieces):
    """How many elements are not as they must be, and the first of them, in words; None when all are.

    Piece by piece: what all ranks sent would double the memory that all_gather takes.
    """
    begin = 0
    for piece in pieces():
        got = result[begin : begin + piece.numel()]
        off = torch.nonzero(got != piece).flatten()
        if off.numel():
            at = int(off[0])
            values = (off.numel(), piece.numel(), begin + at, float(got[at]), float(piece[at]))
            return "%d of %d elements differ, the first at %d: %s instead of %s" % values
        begin += piece.numel()
    return None


def message(count, rank):
    """What a rank sends: small whole numbers that tell place and sender, exact in float32 even summed over ranks."""
    places = torch.arange(count, dtype=torch.float32, device=tiny._device())
    return torch.remainder(places, FAR) + rank


def total(count, ranks):
    return message(count, 0) * ranks + ranks * (ranks - 1) / 2


def room(count):
    return torch.empty(count, device=tiny._device())


def nothing():
    pass


# Each gives what to do before a call, the call, where its result will lie, and the pieces that must lie there.


def all_reduce(count, rank, ranks):
    mine, summed = message(count, rank), room(count)
    return lambda: summed.copy_(mine), lambda: dist.all_reduce(summed), summed, lambda: [total(count, ranks)]


def all_gather(count, rank, ranks):
    mine, whole = message(count, rank), room(count * ranks)
    return nothing, lambda: dist.all_gather_into_tensor(whole, mine), whole, lambda: every_message(count, ranks)


def every_message(count, ranks):
    for rank in range(ranks):
        yield message(count, rank)


def reduce_scatter(count, rank, ranks):
    mine, part = message(count, rank), room(count // ranks)
    return (
        nothing,
        lambda: dist.reduce_scatter_tensor(part, mine),
        part,
        lambda: [total(count, ranks).chunk(ranks)[rank]],
    )


def broadcast(count, rank, ranks):
    """From the last rank: not the one that everything else begins at."""
    mine, got = message(count, rank), room(count)
    prepare = (lambda: got.copy_(mine)) if rank == ranks - 1 else nothing
    return prepare, lambda: dist.broadcast(got, ranks - 1), got, lambda: [message(count, ranks - 1)]


def point_to_point(count, rank, ranks):
    """Around the ring with the calls of DeepSpeed's pipelines: even ranks send first, odd ones receive first."""
    mine, got = message(count, rank), room(count)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks

    def call():
        if ranks == 1:
            got.copy_(mine)
        elif rank % 2 == 0:
            dist.send(mine, after)
            dist.recv(got, before)
        else:
            dist.recv(got, before)
            dist.send(mine, after)

    return nothing, call, got, lambda: [message(count, before)]


COLLECTIVES = {
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "broadcast": broadcast,
    "point_to_point": point_to_point,
}
TURNS = {"point_to_point": 2}  # messages of one rank that pass one after the other in a call
