"""What ranks tell, put together: real event lines, and those of ranks that die in the middle of a word."""

import json
from typing import Any

import msgspec
import pytest

from dsdoctor.facts import SmokeRun
from dsdoctor.probes.answers import entry
from dsdoctor.smoke.story import Story

BEGAN = 100.0


def said(story: Story, rank: int, what: str, t: float, **values: Any) -> None:
    story.hear(rank, entry(json.dumps({"t": t, "what": what, **values}).encode()))


@pytest.fixture
def story() -> Story:
    told = Story(2, BEGAN)
    for rank in (0, 1):
        said(told, rank, "hello", 100.1, pid=10 + rank, local_rank=rank, world_size=2)
        said(told, rank, "begin", 100.2, name="initialize")
    said(told, 0, "begin", 101.0, name="compile cpu_adam")
    return told


def test_phase_is_the_innermost_that_did_not_end(story: Story) -> None:
    assert (story.ranks[0].phase, story.ranks[1].phase) == ("compile cpu_adam", "initialize")
    said(story, 0, "end", 130.0, name="compile cpu_adam", seconds=29.0, peak=None)
    assert story.ranks[0].phase == "initialize"
    said(story, 0, "end", 131.0, name="initialize", seconds=30.8, peak=4096)
    phases = story.ranks[0].told_phases(0)
    assert [(p.name, p.start_s, p.seconds) for p in phases] == [
        ("initialize", 0.2, 30.8),
        ("compile cpu_adam", 1.0, 29.0),
    ]
    assert story.rank_facts(0) == {"peak_bytes": 4096, "peak_phase": "initialize"}
    unended = story.ranks[1].told_phases(1)
    assert [(p.name, p.seconds, p.rank) for p in unended] == [("initialize", None, 1)]


def test_the_peak_is_named_by_the_phase_that_reached_it(story: Story) -> None:
    for name, peak in (("initialize", 100), ("first step", 900), ("steps", 900)):
        said(story, 1, "end", 132.0, name=name, seconds=1.0, peak=peak)
    assert story.rank_facts(1) == {"peak_bytes": 900, "peak_phase": "first step"}


def test_samples_of_memory_do_not_count_as_a_word(story: Story) -> None:
    said(story, 0, "memory", 150.0, allocated=1024, reserved=2048)
    assert story.spoke_at == 101.0
    assert story.ranks[0].torch_bytes == (1024, 2048)


def test_steps_are_those_of_rank_0(story: Story) -> None:
    for rank in (1, 0):
        said(story, rank, "step", 140.0, number=1, loss=1.5, ms=20.12345, grad_norm=0.5, loss_scale=None)
    assert [(s.number, s.loss, s.ms, s.grad_norm, s.loss_scale) for s in story.steps] == [(1, 1.5, 20.123, 0.5, None)]


def test_the_first_proof_that_fails_counts_whoever_tells_it(story: Story) -> None:
    said(story, 0, "proof", 140.0, name="resumes", ok=True, detail="0.5 and 0.5")
    said(story, 1, "proof", 140.1, name="resumes", ok=False, detail="0.5 and 0.7")
    said(story, 0, "proof", 140.2, name="resumes", ok=True, detail="again")
    assert [(p.name, p.ok, p.detail) for p in story.proofs.values()] == [("resumes", False, "0.5 and 0.7")]


def test_swapped_bytes_of_all_ranks_are_added_and_those_of_the_folder_are_not(story: Story) -> None:
    said(story, 0, "swap", 140.0, path="/nvme/x", direct=True, plain_read_bytes_per_s=2e9)
    for rank in (0, 1):
        said(story, rank, "swap", 141.0, read_bytes=100, written_bytes=50, step_seconds=1.5)
    said(story, 0, "swap", 142.0, swapped_bytes=134266880, files=12)
    assert story.swap is not None
    assert (story.swap.read_bytes, story.swap.written_bytes, story.swap.step_seconds) == (200, 100, 1.5)
    assert (story.swap.swapped_bytes, story.swap.files, story.swap.direct) == (134266880, 12, True)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[1]",
        b'{"t": 1.0, "what": "st',
        b'{"what": "step", "number": 1}',
        b'{"t": "soon", "what": "begin", "name": "x"}',
        b'{"t": 1.0, "what": "step", "number": "one", "loss": 1, "ms": 1}',
        b'{"t": 1.0, "what": "rank", "loss": "nan?"}',
        b'{"t": 1.0, "what": "swap", "path": 7}',
        b'{"t": 1.0, "what": "collective", "name": "all_reduce"}',
        b'{"t": 1.0, "what": ["begin"]}',
        b'{"t": 1.0, "what": "__init__", "ranks": 5}',
        b'\xff\xfe{"t": 1.0}',
    ],
)
def test_a_line_that_is_cut_off_or_somebody_elses_changes_nothing(story: Story, line: bytes) -> None:
    before = (story.ranks[0].phase, list(story.steps), story.swap, dict(story.collectives), story.rank_facts(0))
    story.hear(0, entry(line))
    story.hear(7, {"t": 1.0, "what": "done"})
    assert (story.ranks[0].phase, list(story.steps), story.swap, dict(story.collectives), story.rank_facts(0)) == before


def test_loss_that_is_no_number_is_kept_as_a_step_without_one_and_can_be_read_again() -> None:
    story = Story(1, BEGAN)
    for loss in ("NaN", "Infinity", "1.5"):
        story.hear(0, entry(f'{{"t": 101.0, "what": "step", "number": 1, "loss": {loss}, "ms": 1.0}}'.encode()))
    assert [step.loss for step in story.steps] == [None, None, 1.5]
    run = SmokeRun(recipe="zero2", outcome="failed", steps=tuple(story.steps))
    assert msgspec.json.decode(msgspec.json.encode(run), type=SmokeRun) == run
