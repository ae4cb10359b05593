"""Will this model train here? The model's file, the training and the machine brought together: the arrows of `dsdoctor fit`."""

import math
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from dsdoctor import __version__
from dsdoctor.facts import Fact, Gpu, Snapshot, Unavailable
from dsdoctor.fit.caveats import caveats
from dsdoctor.fit.config import BadConfig, Config
from dsdoctor.fit.fits import Fit, best, fits, largest
from dsdoctor.fit.report import FitReport, Machine, Model
from dsdoctor.fit.room import room_of
from dsdoctor.fit.shapes import ModelShape, from_config, from_size
from dsdoctor.fit.training import Dtype, Training, trained
from dsdoctor.fit.ways import easier, nearest, ways
from dsdoctor.readers import model_config
from dsdoctor.recorded import read_snapshot
from dsdoctor.request import ExaminationError

SEQUENCE: Final = 2048  # when nobody says; a model with fewer positions gets those
_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([kmgtp]?)(i?b)?\s*", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked. ``model`` or ``params`` is given; of the training ``sequence`` 0 means the usual."""

    model: str | None = None
    params: str | None = None
    layers: int | None = None
    hidden: int | None = None
    vocab: int | None = None
    training: Training = Training()
    dtype: Dtype | None = None  # None: bf16 where the GPUs have it
    gpus: int | None = None  # None: all of the machine
    snapshot: str | None = None
    nvme: str | None = None  # a folder
    vram: str | None = None  # sizes of a machine that is not here
    ram: str | None = None
    nvme_free: str | None = None
    strategy: str | None = None
    command: str = "dsdoctor fit"


def judge_fit(question: Question, snapshot: Snapshot | None = None) -> FitReport:
    """The report. Raises ExaminationError. ``snapshot``: judge by this machine, whatever the question names."""
    shape, model = _model(question)
    machine = _machine(question, snapshot)
    training = _training(question, model, machine)
    notes = (*model.notes, *_warnings(model, training, machine))
    model = msgspec.structs.replace(model, trained=trained(shape, training), notes=notes)
    found = fits(shape, training, machine.room)
    chosen = _chosen(found, question.strategy)
    none_fits = found[0].word not in ("fits", "tight") and machine.room.gpu is not None
    tight = chosen is not None and chosen.word == "tight" and found[0].word != "fits"
    closest = nearest(found) if none_fits else None
    return FitReport(
        tool_version=__version__,
        model=model,
        training=training,
        machine=machine,
        word=chosen.word if chosen else found[0].word,
        fits=found,
        choice=chosen.plan.name if chosen else None,
        named=question.strategy is not None,
        largest=largest(shape, training, chosen.plan, machine.room) if chosen and chosen.word in ("fits", "tight") else None,
        nearest=closest.plan.name if closest else None,
        ways=ways(shape, training, machine.room) if none_fits else easier(shape, training, machine.room) if tight else (),
        caveats=caveats(msgspec.structs.replace(shape, family="llama") if question.params else shape, training),
        command=question.command,
    )  # fmt: skip


def _chosen(found: tuple[Fit, ...], name: str | None) -> Fit | None:
    return best(found) if name is None else next(fit for fit in found if fit.plan.name == name)


def _model(question: Question) -> tuple[ModelShape, Model]:
    """From a config.json or from a size; whatever is wrong with it is one sentence."""
    sizes = {name: getattr(question, name) for name in ("layers", "hidden", "vocab")}
    if (question.model is None) == (question.params is None):
        raise ExaminationError("name the model: --model config.json (or its folder), or --params 7B")
    if question.model is not None and (extra := [f"--{name}" for name, value in sizes.items() if value is not None]):
        raise ExaminationError(f"{', '.join(extra)}: only with --params; config.json says it already")
    positions = None
    try:
        if question.params is not None:
            source, shape = f"--params {question.params.strip()}", from_size(question.params, **sizes)
        else:
            raw, source = model_config.read(question.model or "")
            shape, positions = from_config(raw), Config(raw).find("positions")
    except model_config.Unreadable as error:
        raise ExaminationError(str(error)) from None
    except BadConfig as error:
        instead = "; its size can be told instead, with --params 7B" if question.model else ""
        raise ExaminationError(f"{question.model or '--params'}: {error}{instead}") from None
    return shape, Model(
        source=source, family=shape.family, parameters=shape.parameters, trained=shape.parameters, exact=shape.exact,
        layers=shape.layers, hidden=shape.hidden, vocab=shape.vocab, experts=shape.experts,
        experts_per_token=shape.experts_per_token, positions=positions or None, notes=shape.notes,
    )  # fmt: skip


def _warnings(model: Model, training: Training, machine: Machine) -> Iterator[str]:
    if model.positions is not None and training.sequence > model.positions:
        yield f"config.json speaks of {model.positions:,} positions; sequences of {training.sequence:,} are asked for"
    if training.dtype == "bf16" and not machine.bf16:
        yield "bf16 needs compute capability 8.0, which these GPUs do not have: use --dtype fp16"


def _training(question: Question, model: Model, machine: Machine) -> Training:
    given = question.training
    return msgspec.structs.replace(
        given,
        dtype=question.dtype or ("bf16" if machine.bf16 else "fp16"),
        sequence=given.sequence or min(SEQUENCE, model.positions or SEQUENCE),
        gpus_per_node=question.gpus or machine.room.gpus or 1,
    )


def _machine(question: Question, snapshot: Snapshot | None) -> Machine:
    """A recorded machine or this one, and over it the sizes that were given."""
    given = {
        "gpu": size(question.vram, "--vram"),
        "host": size(question.ram, "--ram"),
        "nvme": size(question.nvme_free, "--nvme-free"),
    }
    asked: dict[str, int] = {name: value for name, value in given.items() if value is not None}
    if snapshot is None:
        snapshot = read_snapshot(question.snapshot) if question.snapshot else _here(question, asked)
    room, gpus = room_of(snapshot, question.gpus), snapshot.gpus
    notes = room.notes
    if room.gpus == 0:  # ``why`` says it
        notes = tuple(note for note in notes if "GPU" not in note)
    if "gpu" in asked:  # cards that are not here: what the machine's own hold does not matter
        notes = tuple(note for note in notes if "GPU" not in note)
        asked |= {"gpus": question.gpus or 1, "gpu_total": asked["gpu"]}
    if "host" in asked:
        notes = tuple(note for note in notes if "cgroup" not in note)
    used = (
        sorted((gpu for gpu in gpus.devices if gpu.error is None), key=lambda gpu: -(gpu.free_bytes or 0))
        if gpus
        else []
    )
    cards = [] if "gpu" in asked else used[: question.gpus or room.gpus]
    return Machine(
        origin=snapshot.origin,
        cards=tuple(gpu.name for gpu in cards),
        bf16=not any(_before_ampere(gpu) for gpu in cards),
        room=msgspec.structs.replace(room, notes=notes, nvme_path=question.nvme or room.nvme_path, **asked),
        asked=tuple(name for name in ("gpu", "host", "nvme") if name in asked),
        why=None if room.gpu is not None or "gpu" in asked else _why(snapshot),
    )  # fmt: skip


def _before_ampere(gpu: Gpu) -> bool:
    major = (gpu.compute_capability or "").partition(".")[0]
    return major.isdigit() and int(major) < 8


def _why(snapshot: Snapshot) -> str:
    gpus = snapshot.gpus
    if gpus is None:
        missing = snapshot.unavailable.get("gpus")
        return missing.detail if missing else "nothing is recorded of its GPUs"
    if gpus.devices:
        said = [
            f"GPU {gpu.index}: {gpu.error or ('it is split by MIG' if gpu.mig_enabled else 'its memory is not known')}"
            for gpu in gpus.devices
        ]
        return "; ".join(said)
    return gpus.nvml_detail or "no NVIDIA GPU" if gpus.expected else "no NVIDIA GPU"


def _here(question: Question, asked: dict[str, int]) -> Snapshot:
    """Only what fit needs of this machine: no interpreter is started, nothing is imported."""
    from dsdoctor.facts.snapshot import now
    from dsdoctor.probes import gpu, memory, storage
    from dsdoctor.probes.examiner import Examiner, Task
    from dsdoctor.probes.system import System

    system = System()
    wanted = [Task("memory", lambda facts: memory.probe(system))]
    if "gpu" not in asked:
        wanted.insert(0, Task("gpus", lambda facts: gpu.probe(system)))
    if question.nvme:
        wanted.append(Task("storage", lambda facts: storage.probe(system, question.nvme, None)))
    found, missing = Examiner(wanted, 30.0, lambda event: None).examine()
    facts: dict[str, Fact] = dict(found)
    gone: dict[str, Unavailable] = dict(missing)
    return Snapshot(tool_version=__version__, taken_at=now(), unavailable=gone).replace(**facts)


def size(text: str | None, option: str) -> int | None:
    """'24G', '24GiB', '512 MB' (powers of two, as memory is sold) → bytes."""
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    value = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    if match is None or not 1 <= value < math.inf:
        raise ExaminationError(f"{option} {text!r} is no size: write 24G or 512M")
    return int(value)
