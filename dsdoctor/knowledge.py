"""What the engine must be told about its field: causes, capabilities, purposes, platforms. Check packages supply it."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from dsdoctor.facts import Purpose, Snapshot
from dsdoctor.model import Check, Platform, Proof
from dsdoctor.signatures import Signatures

# From the bottom of a machine to the top of a run; plans mend in this order.
LAYERS = ("platform", "driver", "gpu", "toolkit", "compiler", "python", "torch", "deepspeed", "ops", "memory",
          "storage", "network", "config", "launch", "run")  # fmt: skip

ANY_CAUSE = "*"  # in a check's causes: it may name every cause of the vocabulary


class CauseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a causes table."""

    title: str  # noun phrase: "ninja is not on PATH"
    layer: str  # one of LAYERS
    why: str  # why this breaks DeepSpeed
    remedy: str  # what mends it, in general
    explains: tuple[str, ...] = ()  # causes that are only symptoms when this one is present
    sources: tuple[str, ...] = ()
    seen_by: str = "static"  # static, live-import, smoke-run, log-only


class CapabilitySpec(msgspec.Struct, frozen=True, kw_only=True):
    """How one line of "what can I run here" is decided.

    ``requires`` names abilities; a check that guards one of them and fails at ERROR blocks the capability.
    ``applies`` gives the reason why the question makes no sense here, or None. ``proof`` says how much of it was seen:
    RAN when a real run did it, PROBED when its hard part was tried in small, else DECLARED.
    """

    name: str
    title: str
    requires: Callable[[Snapshot], tuple[str, ...]]
    applies: Callable[[Snapshot], str | None]
    proof: Callable[[Snapshot], Proof]


class OpSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One op of this machine's DeepSpeed and accelerator, and what a build of it needs.

    ``needs`` names abilities, as a capability's ``requires``; the ability "op" is taken away only from the op that a
    finding names as its subject.
    """

    name: str
    needs: tuple[str, ...]
    features: tuple[str, ...] = ()  # what uses it, for the reader: "optimizer.type = Adam"
    wanted: str | None = None  # what asks for it on this machine: "ds_config.json:4:5 offload_optimizer.device = cpu"
    note: str | None = None  # "not in the table: judged by what its builder says"


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """All that plug-ins brought together."""

    checks: tuple[Check, ...] = ()
    causes: Mapping[str, CauseInfo] = {}
    capabilities: tuple[CapabilitySpec, ...] = ()
    ops: Callable[[Snapshot], tuple[OpSpec, ...]] | None = None
    guess_purpose: Callable[[Snapshot], Purpose] | None = None
    describe_platform: Callable[[Snapshot], Platform] | None = None
    signatures: tuple[Callable[[], Iterable[str]], ...] = ()  # texts of tables of known log lines (signatures.py)
    problems: tuple[str, ...] = ()  # plug-ins that could not be loaded

    def known_lines(self) -> Signatures:
        """The lines of logs that plug-ins know."""
        return Signatures(text for texts in self.signatures for text in texts())
