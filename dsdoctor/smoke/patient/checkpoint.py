"""Save, resume, consolidate: does a run that was saved go on as if it had not stopped, and are its weights what they were."""

import math
import os

import torch
from dsdoctor_smoke import holdings, tiny, zero

STEPS_AFTER = 2
TAG = "smoke"
TOLERANCE = 1e-3  # of a loss: both sides make the same sums in the same type; lost moments of Adam make 1e-2 (tried)


def run(order, channel):
    tiny.rendezvous(channel)
    dtype = tiny.choose_dtype(torch, order["dtype"], order["cpu"])
    settings = order["config"] or tiny.config(dtype, order["stage"] or 2)
    folder = os.path.join(order["folder"], "checkpoint")
    engine = zero.start(channel, order, settings, tiny.WIDTHS)
    tiny.describe(
        channel, zero.dtype_of(engine), stage=engine.zero_optimization_stage(), offload=zero.offloading(settings)
    )
    inputs, targets = zero.global_batch(channel, order, engine, tiny.WIDTHS)
    tiny.take_steps(channel, order["steps"], zero.stepping(channel, engine, inputs, targets))
    saved_loss = zero.common_loss(engine, inputs, targets)
    channel.rank_facts(loss=saved_loss, **holdings.told(engine))
    with channel.phase("save"):
        engine.save_checkpoint(folder, tag=TAG, client_state={"steps": order["steps"]})
    went_on = further(channel, engine, inputs, targets)
    resume(order, channel, settings, folder, inputs, targets, went_on)
    if engine.zero_optimization_stage():
        consolidate(channel, folder, engine, inputs, targets, saved_loss)
    tiny.leave()


def further(channel, engine, inputs, targets):
    step = zero.stepping(channel, engine, inputs, targets)
    return [step()[0] for _ in range(STEPS_AFTER)]


def resume(order, channel, settings, folder, inputs, targets, went_on):
    """A fresh engine with other weights takes the steps that the saved one took after saving."""
    engine = zero.start(channel, dict(order, seed=order["seed"] + 1), settings, tiny.WIDTHS, "initialize again")
    with channel.phase("load"):
        path, state = engine.load_checkpoint(folder, tag=TAG)
    resumed = further(channel, engine, inputs, targets) if path else []
    same = bool(resumed) and all(math.isclose(went_on[i], resumed[i], rel_tol=TOLERANCE) for i in range(STEPS_AFTER))
    counted = bool(state) and state.get("steps") == order["steps"]
    channel.proof(
        "resumes",
        same and counted,
        "losses of the %d steps after saving: %s; after loading into a fresh engine: %s"
        % (STEPS_AFTER, in_words(went_on), in_words(resumed) if path else "nothing was loaded"),
    )


def consolidate(channel, folder, engine, inputs, targets, saved_loss):
    """zero_to_fp32 on one rank, as a user does it, and the loss of a plain model with its result."""
    if channel.rank == 0:
        from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

        with channel.phase("consolidate"):
            weights = get_fp32_state_dict_from_zero_checkpoint(folder, tag=TAG)
        model = tiny.perceptron(torch)
        model.load_state_dict(weights)
        model.to(device=inputs.device, dtype=inputs.dtype)
        each = engine.train_micro_batch_size_per_gpu()
        with torch.no_grad():
            loss = float(torch.nn.functional.mse_loss(model(inputs[:each]).float(), targets[:each].float()))
        channel.proof(
            "zero-to-fp32",
            math.isclose(saved_loss, loss, rel_tol=TOLERANCE),
            "loss %.6f when saved, %.6f of a plain model with the consolidated weights; the checkpoint has %d bytes in %d files"
            % (saved_loss, loss, *measured(folder)),
        )
    torch.distributed.barrier()


def measured(folder):
    sizes = [os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(folder) for name in names]
    return sum(sizes), len(sizes)


def in_words(losses):
    return " ".join("%.6f" % loss for loss in losses)
