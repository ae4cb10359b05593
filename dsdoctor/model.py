"""The words of a diagnosis: severity, status, proof, finding, remedy, verdict, capability, step, report."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import msgspec

from dsdoctor.facts import Snapshot

REPORT_SCHEMA_VERSION = 1


class Severity(str, Enum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return ("info", "warning", "error").index(self.value)


class Status(str, Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not_applicable"
    CRASHED = "crashed"


class Proof(str, Enum):
    """How a verdict is known: read somewhere, seen in a tiny program or an import, or really run."""

    DECLARED = "declared"
    PROBED = "probed"
    RAN = "ran"

    @property
    def rank(self) -> int:
        return ("declared", "probed", "ran").index(self.value)


Safety = Literal["safe", "careful", "manual"]


class _Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the values below."""


class Evidence(_Value, frozen=True, kw_only=True):
    """One observation: ``where`` it was read and ``text`` as read."""

    where: str
    text: str


class ConfigEdit(_Value, frozen=True, kw_only=True):
    """A change of the user's ds_config that cannot do harm; ``config/fix.py`` makes text edits of it."""

    action: Literal["rename", "remove", "set", "drop-twins", "move"]  # drop-twins: of equal members keep the last
    key: str  # dotted, as it stands in the file
    value: str | None = None  # the new name, the new value as JSON, or the dotted key to move to


class Remedy(_Value, frozen=True, kw_only=True):
    """An order, the exact commands for this machine, and the command that proves that it worked."""

    order: str  # "Install ninja into this environment"
    commands: tuple[str, ...] = ()
    safety: Safety = "safe"
    verify: str | None = None
    note: str | None = None  # what it costs, what to know before
    edits: tuple[ConfigEdit, ...] = ()  # when the remedy is a safe change of the ds_config


class Finding(_Value, frozen=True, kw_only=True):
    """What is wrong: both values and where they were read, in one sentence."""

    message: str
    cause: str  # slug of the causes table
    evidence: tuple[Evidence, ...] = ()
    subject: str | None = None  # which op, file, GPU, key
    remedy: Remedy | None = None
    severity: Severity | None = None  # only when it differs from the check's


class Check(_Value, frozen=True, kw_only=True):
    """A pluggable check: metadata and a pure function from facts to findings."""

    code: str  # "CUDA201"
    title: str  # the healthy state, as a sentence
    family: str  # "CUDA"
    severity: Severity
    causes: tuple[str, ...]
    guards: tuple[str, ...]  # abilities that a failure takes away: "train", "cuda-ops", ...
    rationale: str  # the docstring
    run: Callable[..., Any]
    needs: dict[str, Any]  # parameter -> type (a Fact, or Prescriber)
    optional: frozenset[str] = frozenset()  # parameters that may be None
    refuted_by: tuple[str, ...] = ()  # trials: when all of them worked, what the check expects did not happen


class Verdict(_Value, frozen=True, kw_only=True):
    code: str
    title: str
    family: str
    status: Status
    severity: Severity  # of its worst finding when FAILED, else the check's
    proof: Proof = Proof.DECLARED
    findings: tuple[Finding, ...] = ()
    reason: str | None = None  # for UNKNOWN, NOT_APPLICABLE, CRASHED
    waits_for: tuple[str, ...] = ()  # fact sections that are missing
    ignored: str | None = None  # the user's reason for ignoring this code


CapabilityState = Literal["ready", "blocked", "unknown", "not_applicable"]


class Capability(_Value, frozen=True, kw_only=True):
    name: str  # "zero2", "optimizer-offload-cpu"
    title: str
    state: CapabilityState
    proof: Proof = Proof.DECLARED
    blocked_by: tuple[str, ...] = ()  # codes
    because: str | None = None  # for unknown and not_applicable


OpState = Literal["builds", "fails", "unknown"]


class OpVerdict(_Value, frozen=True, kw_only=True):
    """One op: will it build and load here?"""

    name: str
    state: OpState
    proof: Proof = Proof.DECLARED
    said: Literal["okay", "no", "installed"] | None = None  # ds_report's word; None: it has no such row
    differs: bool = False  # ds_report says otherwise
    cause: str | None = None  # why it fails
    because: str | None = None  # one sentence
    blocked_by: tuple[str, ...] = ()  # codes
    features: tuple[str, ...] = ()  # what uses it
    wanted: str | None = None  # what asks for it here
    note: str | None = None
    seconds: float | None = None  # of a real build
    log: str | None = None


class Cause(_Value, frozen=True, kw_only=True):
    """One root, and the checks that saw it."""

    cause: str
    title: str
    layer: str
    severity: Severity
    codes: tuple[str, ...]
    proof: Proof
    explains: tuple[str, ...] = ()  # causes seen that are only its symptoms
    explained_by: str | None = None  # this one is itself a symptom
    confidence: float | None = None  # 0 to 1, where a log was read: how surely this is what killed the run
    evidence: tuple[Evidence, ...] = ()  # where a log was read: its lines, and what checks saw


class Step(_Value, frozen=True, kw_only=True):
    """One thing to do; mends ``cause`` and clears ``clears``."""

    number: int
    cause: str
    order: str
    why: str
    commands: tuple[str, ...] = ()
    safety: Safety = "safe"
    clears: tuple[str, ...] = ()
    verify: str | None = None
    note: str | None = None
    severity: Severity = Severity.ERROR


LinkKind = Literal["cause", "exception", "mask", "collateral", "exit", "harmless"]


class Link(_Value, frozen=True, kw_only=True):
    """One event that a log tells: the line, who said it, and what it means."""

    kind: LinkKind
    where: str  # "train.log:812"
    text: str
    rank: int | None = None
    means: str | None = None
    count: int = 1


class Story(_Value, frozen=True, kw_only=True):
    """What a log tells: how the run fell, from the first fatal event on, and what only looks bad."""

    fell: bool  # anything says that the run did not come to its end
    recognised: bool  # and a cause is named for it
    chain: tuple[Link, ...] = ()  # the first is the first fatal event
    harmless: tuple[Link, ...] = ()
    tail: tuple[Link, ...] = ()  # most useful lines, when nothing was recognised
    collect: tuple[str, ...] = ()  # and what to collect next


class Platform(_Value, frozen=True, kw_only=True):
    """What DeepSpeed can do on this kind of machine: the first lines of a report."""

    headline: str
    can: str | None = None
    cannot: str | None = None
    instead: str | None = None


class Counts(_Value, frozen=True, kw_only=True):
    passed: int = 0
    failed: int = 0
    unknown: int = 0
    not_applicable: int = 0
    crashed: int = 0
    errors: int = 0  # findings by severity
    warnings: int = 0
    infos: int = 0


class Report(_Value, frozen=True, kw_only=True):
    """The whole answer. Encoded as it stands it is the ``--json`` document."""

    schema_version: int = REPORT_SCHEMA_VERSION
    tool_version: str
    outcome: Literal["healthy", "warnings", "problems", "incomplete"]
    summary: str  # one sentence
    patient: str  # the interpreter that was examined and why
    platform: Platform
    counts: Counts
    facts: Snapshot
    verdicts: tuple[Verdict, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    ops: tuple[OpVerdict, ...] = ()
    causes: tuple[Cause, ...] = ()
    plan: tuple[Step, ...] = ()
    story: Story | None = None  # only where a log was read
    problems: tuple[str, ...] = ()  # plug-ins that could not be loaded
    interrupted: bool = False
    seconds: float | None = None
