"""Whether the smoke runs that came to their end computed right numbers."""

from collections.abc import Callable, Iterator

from dsdoctor.api import Evidence, Finding, Prescriber, Remedy, Smoke, SmokeRun, check, not_applicable
from dsdoctor_checks.run_results import (
    comparable,
    ended,
    loss_problem,
    overflowed,
    partition_problem,
    ranks_differ,
    stages_differ,
    wrong_collectives,
)
from dsdoctor_checks.run_text import about, again

_PROOF_CAUSES = {"partitioned": "states-not-partitioned", "collective": "collective-wrong"}
_ANEW = "Delete the extension cache and run again; if it stays, the GPU or its memory computes wrongly"


def _judged(smoke: Smoke, problem: Callable[[SmokeRun], str | None]) -> Iterator[tuple[SmokeRun, str]]:
    """Runs that came to their end, with what is wrong with them."""
    if not ended(smoke.runs):
        not_applicable("no smoke run came to its end")
    for run in ended(smoke.runs):
        if what := problem(run):
            yield run, what


def _wrong(run: SmokeRun, what: str, cause: str, order: str, prescriber: Prescriber, *commands: str) -> Finding:
    remedy = Remedy(
        order=order, commands=commands, safety="careful" if commands else "manual", verify=again(run, prescriber)
    )
    losses = ", ".join(f"{loss:.5g}" for loss in run.losses[:12])
    evidence = (Evidence(where=f"smoke run, recipe {run.recipe}, losses", text=losses),) if losses else ()
    return Finding(message=f"{about(run)} {what}", cause=cause, subject=run.recipe, evidence=evidence, remedy=remedy)


@check(
    "RUN010",
    "The loss of every smoke run is finite and falls",
    causes=["smoke-loss-wrong", "loss-scale-minimum"],
    guards=["run"],
)
def losses_fall(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """Every recipe trains on one fixed batch, so its loss must fall; one that doesn't, or is no number, comes from an op or a
    device that computes wrongly. fp16 that skips all steps for overflow is told apart: more steps mend it."""
    for run, what in _judged(smoke, loss_problem):
        if skipped := overflowed(run):
            order = "Take more steps (--steps 30), or lower fp16.initial_scale_power"
            yield _wrong(run, skipped, "loss-scale-minimum", order, prescriber)
        else:
            yield _wrong(run, what, "smoke-loss-wrong", _ANEW, prescriber)


@check("RUN011", "All ranks of a smoke run end with the same model", causes=["smoke-loss-wrong"], guards=["run"])
def ranks_agree(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """Data-parallel ranks hold the same weights, so one common batch must give one loss on all of them. Where it does not,
    gradients or weights did not arrive as they were sent."""
    order = "Look at the links between the GPUs: run the collectives by themselves"
    for run, what in _judged(smoke, ranks_differ):
        yield _wrong(run, f"left its ranks with different models: {what}", "smoke-loss-wrong", order, prescriber, prescriber.shell("dsdoctor smoke comm"))  # fmt: skip


@check("RUN012", "ZeRO-1, 2 and 3 train alike", causes=["smoke-loss-wrong"], guards=["run"])
def stages_agree(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """The stages differ in where states lie, not in what is computed: from one seed they must give the same losses step by step,
    up to the order in which sums are formed (relative 1e-3 in fp32, 3e-2 in bf16 and fp16)."""
    pairs = comparable(smoke.runs)
    if not pairs:
        not_applicable("no two ZeRO stages were run on the same terms")
    parted = [(a, b, what) for a, b in pairs if (what := stages_differ(a, b))]
    agreeing = {run.recipe for a, b in pairs if not stages_differ(a, b) for run in (a, b)}
    for a, b, what in parted:
        odd = [run for run in (a, b) if run.recipe not in agreeing] or [a, b]
        finding = _wrong(odd[-1], f"trains unlike another stage: {what}", "smoke-loss-wrong", _ANEW, prescriber)
        subject = ", ".join(run.recipe for run in odd)
        yield Finding(message=finding.message, cause=finding.cause, subject=subject, evidence=finding.evidence, remedy=finding.remedy)  # fmt: skip


@check("RUN013", "ZeRO partitions the model states over the ranks", causes=["states-not-partitioned"], guards=["run"])
def states_are_partitioned(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """Each rank must hold less than the whole, and all together the whole, up to padding: else a run takes as much memory as without
    ZeRO. It is judged by what the optimizers of the ranks really hold after the last step."""
    if not any(run.world_size > 1 and run.stage for run in ended(smoke.runs)):
        not_applicable("no ZeRO run with several ranks came to its end")
    order = "Look whether every rank sees the whole group: RANK, WORLD_SIZE and LOCAL_RANK, and the world size that DeepSpeed prints"
    for run, what in _judged(smoke, partition_problem):
        yield _wrong(run, what, "states-not-partitioned", order, prescriber)


@check("RUN014", "Collectives give right numbers", causes=["collective-wrong"], guards=["run"])
def collectives_are_right(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """Every collective is called with numbers whose result is known. A wrong sum is silent in training: the loss is a little off,
    or turns NaN hours later."""
    if not any(run.collectives for run in ended(smoke.runs)):
        not_applicable("no collective was tried by itself")
    order = "Find the path that corrupts: try without GPU peer-to-peer access"
    for run in ended(smoke.runs):
        if wrong := wrong_collectives(run):
            what = f"got wrong numbers from {', '.join(wrong)}"
            commands = (
                (prescriber.set("NCCL_P2P_DISABLE", "1"), again(run, prescriber)) if run.accelerator == "cuda" else ()
            )
            yield _wrong(run, what, "collective-wrong", order, prescriber, *commands)


@check(
    "RUN015",
    "What a smoke run compares by itself holds",
    causes=["smoke-loss-wrong", *_PROOF_CAUSES.values()],
    guards=["run"],
)
def proofs_hold(smoke: Smoke, prescriber: Prescriber) -> Iterator[Finding]:
    """A recipe compares what only it can see while it runs: that a resumed training goes on as the first, that consolidated weights
    are the trained ones, that experts lie on different ranks."""
    if not any(run.proofs for run in ended(smoke.runs)):
        not_applicable("no run compared anything by itself")
    for run in ended(smoke.runs):
        for proof in run.proofs:
            if not proof.ok:
                cause = _PROOF_CAUSES.get(proof.name.split()[0], "smoke-loss-wrong")
                yield _wrong(run, f"does not hold its proof {proof.name!r}: {proof.detail}", cause, _ANEW, prescriber)
