"""What `dsdoctor fit` found, as one value: every renderer and the JSON document take it as it is."""

from typing import Final, Literal

import msgspec

from dsdoctor.fit.fits import Fit, Largest, Word
from dsdoctor.fit.room import Room
from dsdoctor.fit.training import Training

FIT_SCHEMA_VERSION: Final = 1


class Model(msgspec.Struct, frozen=True, kw_only=True):
    source: str  # a config.json, or "--params 7B"
    family: str
    parameters: int
    trained: int  # parameters that get a gradient
    exact: bool  # the number of parameters
    layers: int
    hidden: int
    vocab: int
    experts: int = 0
    experts_per_token: int = 0
    positions: int | None = None  # the longest sequence that config.json speaks of
    notes: tuple[str, ...] = ()


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    origin: str  # "this machine", or a snapshot's file
    cards: tuple[str, ...] = ()  # names of the GPUs that are used
    bf16: bool = True  # they compute in it, or nothing else is known
    room: Room = Room()
    asked: tuple[str, ...] = ()  # sizes that were given, not found: "gpu", "host", "nvme"
    why: str | None = None  # nothing is known of GPUs


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A change with which it would fit."""

    change: str  # "recompute activations"
    options: tuple[str, ...]  # ("--activation-checkpointing",)
    strategy: str
    word: Word
    spare: int | None  # bytes of each GPU
    zero_init: bool = False  # and only when the model is made inside deepspeed.zero.Init


class FitReport(msgspec.Struct, frozen=True, kw_only=True):
    schema_version: int = FIT_SCHEMA_VERSION
    tool_version: str
    model: Model
    training: Training
    machine: Machine
    word: Word  # of the strategy that is named or chosen, else of the best
    fits: tuple[Fit, ...]  # the best first
    choice: str | None = None  # name of the cheapest strategy that fits, or of the one that was asked for
    named: bool = False  # it was asked for
    largest: Largest | None = None  # of the choice
    nearest: str | None = None  # where nothing fits: the strategy that comes nearest
    ways: tuple[Way, ...] = ()  # where nothing fits: what would
    caveats: tuple[str, ...] = ()  # what the numbers do not know
    command: str = "dsdoctor fit"  # the question once more
    written: str | None = None  # the file that has the config now

    @property
    def chosen(self) -> Fit | None:
        return next((fit for fit in self.fits if fit.plan.name == self.choice), None)

    @property
    def outcome(self) -> Literal["yes", "unknown", "no"]:
        return "yes" if self.word in ("fits", "tight") else "unknown" if self.word == "unknown" else "no"
