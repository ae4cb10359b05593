"""What a fit says in sentences: the question, the answer, its price, and how sure it is."""

import shlex
from collections.abc import Iterator
from typing import Final

from dsdoctor.fit.fits import Answer, Fit
from dsdoctor.fit.report import FitReport
from dsdoctor.render.quantity import counted

GIB: Final = 1 << 30
_OPTIMIZERS: Final = {
    "adamw": "AdamW (DeepSpeed's)", "adamw-fused": "AdamW (torch's fused)", "adamw-torch": "AdamW (torch's)",
    "adamw-8bit": "AdamW in 8 bits", "lion": "Lion", "adafactor": "Adafactor", "sgd": "SGD",
}  # fmt: skip
_KEPT: Final = 3  # other strategies that are named in the answer


def gib(size: float) -> str:
    """12.3, always in GiB."""
    return f"{size / GIB:,.1f}"


def count(number: int) -> str:
    """ "70.6 billion"."""
    for unit, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= unit * 0.9995:
            return f"{number / unit:.3g} {word}"
    return str(number)


def asked(report: FitReport) -> Iterator[tuple[str, str]]:
    """Label and text of the model and of the training."""
    model, training = report.model, report.training
    sure = "exact" if model.exact else "estimated"
    parts = [f"{count(model.parameters)} parameters ({sure})", f"{model.layers} layers, hidden size {model.hidden:,}"]
    parts += [f"{model.vocab:,} words"] if model.vocab else []
    parts += [f"{model.experts} experts, {model.experts_per_token} for each token"] if model.experts else []
    family = "" if model.family == "size" else f" ({model.family})"
    yield "model", f"{model.source}{family}: {', '.join(parts)}"
    words = [
        f"micro batch {training.micro_batch} x {training.sequence:,} tokens",
        training.dtype,
        _OPTIMIZERS[training.optimizer],
        "activations computed again in backward" if training.checkpointing else "all activations kept",
        f"{training.attention} attention",
    ]
    words += ["made inside zero.Init"] if training.zero_init else []
    words += (
        [f"LoRA of rank {training.lora_rank}: {count(model.trained)} parameters are trained"]
        if training.lora_rank
        else []
    )
    words += [f"{training.accumulation} micro batches for a step"] if training.accumulation > 1 else []
    nodes = f" in each of {training.nodes} nodes" if training.nodes > 1 else ""
    yield "training", ", ".join([*words, counted(training.gpus_per_node, "GPU") + nodes])


def free(report: FitReport) -> str:
    """What the machine has free."""
    machine, room = report.machine, report.machine.room
    names = list(dict.fromkeys(machine.cards))
    cards = ", ".join(
        f"{machine.cards.count(name)} x {name}" if machine.cards.count(name) > 1 else name for name in names
    )
    told = []
    if room.gpu is None:
        told.append(f"{cards + ': ' if cards else ''}{machine.why or 'free GPU memory is not known'}")
    elif "gpu" in machine.asked:
        told.append(f"{gib(room.gpu)} GiB free on each GPU (--vram)")
    else:
        told.append(f"{cards}, {gib(room.gpu)} GiB free{' on each' if len(machine.cards) > 1 else ''}")
    told.append(f"RAM {_free(room.host, '--ram' if 'host' in machine.asked else '')}")
    path = f" in {room.nvme_path}" if room.nvme_path else ""
    unknown = "" if room.nvme is not None else ": name a folder with --nvme"
    told.append(f"NVMe {_free(room.nvme, '--nvme-free' if 'nvme' in machine.asked else '')}{path}{unknown}")
    return f"{machine.origin}: {'; '.join(told)}"


def _free(size: int | None, option: str) -> str:
    return "not known" if size is None else f"{gib(size)} GiB free" + (f" ({option})" if option else "")


def answer(report: FitReport) -> str:
    """One or two sentences."""
    fit = report.chosen
    if report.outcome == "yes" and fit is not None:
        return _yes(report, fit)
    if report.outcome == "unknown":
        return _unknown(report, fit or report.fits[0])
    if report.named and fit is not None:
        others = ", ".join(other.plan.name for other in report.fits if other.word == "fits")
        return f"{_name(fit)} does not fit here: {fit.reason}." + (f" These do: {others}." if others else "")
    near = next((one for one in report.fits if one.plan.name == report.nearest), report.fits[0])
    return f"Nothing fits here. {near.plan.title} ({near.plan.name}) comes nearest: {near.reason}."


def _yes(report: FitReport, fit: Fit) -> str:
    spare = gib(fit.answers[0].spare or 0)
    if fit.word == "tight":
        return f"{_name(fit)} is tight: {_tight(fit)}."
    if report.named:
        return f"{_name(fit)} fits: {spare} GiB of each GPU stay free."
    others = [other.plan.name for other in report.fits if other.word == "fits" and other is not fit]
    next_ones = f" Next: {', '.join(others[:_KEPT])}." if others else ""
    free_of_charge = "nothing has to be moved" if not fit.traffic.cost else "of all that fit it moves the least data"
    why = free_of_charge if others else "the only one that fits"
    return f"Use {_name(fit)}: {why}; {spare} GiB of each GPU stay free.{next_ones}"


def _tight(fit: Fit) -> str:
    """Which memory, and what may go wrong."""
    short: Answer = next(answer for answer in fit.answers if answer.word == "tight")
    if short.place == "gpu":
        easy = f", and torch's allocator would like {gib(short.easy)}" if short.easy else ""
        return f"{gib(short.need)} of {gib(short.room or 0)} GiB of each GPU are needed{easy}"
    return f"{gib(short.need)} of {gib(short.room or 0)} GiB of RAM are needed, an estimate that may be 10 % too low"


def _unknown(report: FitReport, fit: Fit) -> str:
    if report.machine.room.gpu is None:
        least = min(report.fits, key=lambda one: one.need.gpu.bytes)
        most = max(report.fits, key=lambda one: one.need.gpu.bytes)
        return (
            f"Whether it fits is not known: {report.machine.why or 'free GPU memory is not known'}. A GPU would need "
            f"{gib(least.need.gpu.bytes)} GiB ({least.plan.name}) to {gib(most.need.gpu.bytes)} GiB ({most.plan.name}); "
            "ask about a card with --vram 24G."
        )
    return f"Only {_name(fit)} may fit: {fit.reason}."


def _name(fit: Fit) -> str:
    return f"{fit.plan.title} ({fit.plan.name})" if fit.plan.offloads else fit.plan.title


def moved(report: FitReport) -> str:
    """The price: traffic of a step."""
    fit = report.chosen
    if fit is None or report.outcome != "yes":
        return ""
    ways = (
        ("between GPUs", fit.traffic.between_gpus),
        ("over PCIe", fit.traffic.over_pcie),
        ("to and from NVMe", fit.traffic.on_nvme),
    )
    told = [f"{gib(size)} GiB {where}" for where, size in ways if size]
    return f"It costs, for each GPU and step: {', '.join(told)}." if told else ""


def inside(report: FitReport, fit: Fit) -> bool:
    """Is it so only when the model is made inside zero.Init, which was not said?"""
    return fit.zero_init and not report.training.zero_init


def condition(report: FitReport) -> str:
    """What the script has to do for it. transformers' from_pretrained and from_config do it by themselves (5.24, modeling_utils.py)."""
    fit = report.chosen
    if fit is None or report.outcome != "yes" or not inside(report, fit):
        return ""
    return (
        "For this the model has to be made inside deepspeed.zero.Init, as transformers does by itself when its "
        "DeepSpeed config is there first; else every rank makes it whole."
    )


def largest_words(report: FitReport) -> str:
    most = report.largest
    if most is None or not most.micro_batch:
        return ""
    sequence = f", or one sequence of {most.sequence:,} tokens" if most.sequence else ""
    beyond = report.model.positions is not None and most.sequence > report.model.positions
    limit = f" (the model has {report.model.positions:,} positions)" if beyond else ""
    return f"The largest that still fits with it: a micro batch of {most.micro_batch:,}{sequence}{limit}."


def proof(report: FitReport) -> str:
    """What is exact, what is estimated."""
    fit = report.chosen
    if fit is None:
        return ""
    account, exact = fit.need.gpu, fit.need.gpu.exact_bytes
    guessed = list(dict.fromkeys(item.kind for item in account.items if not item.exact))
    base = "are exact" if report.model.exact else "follow from the estimated number of parameters"
    return f"{gib(exact)} of {gib(account.bytes)} GiB {base}; estimated: {', '.join(guessed)}."


def again(command: str, options: tuple[str, ...]) -> str:
    """The command with these options in the place of those that it has."""
    words = shlex.split(command)
    for option in options:
        name, _, value = option.partition(" ")
        if name in words and value:
            words[words.index(name) + 1] = value
        else:
            words += [name, value] if value else [name]
    return shlex.join(words)
