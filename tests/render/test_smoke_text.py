"""What `dsdoctor smoke` prints, and the line of it in `dsdoctor check`."""

import re

import msgspec
import pytest

from dsdoctor.facts import Collective, Smoke, SmokeLoad, SmokeProof, SmokeRun
from dsdoctor.model import Report
from dsdoctor.render import smoke, text
from dsdoctor.render.smoke_summary import CAUTION, word
from tests.render import smoke_runs
from tests.render.reports import INSTALL, failing, finding, mixed, passing, report


def of(told: Report, *runs: SmokeRun) -> Report:
    """The report with these runs in it."""
    return msgspec.structs.replace(told, facts=told.facts.replace(smoke=smoke_runs.smoke(*runs)))


def shown(*runs: SmokeRun, width: int = 120, **rest: object) -> str:
    return smoke.render(smoke_runs.smoke(*runs), width=width, **rest)  # type: ignore[arg-type]


def row(page: str, recipe: str) -> str:
    return next(line for line in page.splitlines() if line.split()[:1] == [recipe])


def section(page: str, recipe: str) -> str:
    """What is told of a run below the table, on one line."""
    return " ".join(re.split(rf"\n{recipe} \(", page)[1].split("\n\n")[0].split())


def test_a_row_tells_how_it_went_where_and_with_which_spread() -> None:
    page = shown()
    assert row(page, "zero2").split("  ")[0] == "zero2"
    assert re.split(r"\s{2,}", row(page, "zero2")) == [
        "zero2", "ok", "1 x H200", "bf16", "1.09 -> 0.72", "1.8 s", "9.6 ms (8.9-9.6)", "41 MiB in first step", "9.0 s",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", row(page, "comm"))[:6] == ["comm", "ok", "2 x H200", "bf16", "-", "-"]
    assert row(page, "zero3").split()[:4] == ["zero3", "killed", "2", "x"]
    assert row(page, "zero1").split()[1] == "hung"


def test_what_cannot_run_here_says_why_in_its_row_and_nowhere_else() -> None:
    page = shown()
    assert row(page, "moe").endswith("not applicable: experts are spread over ranks: it needs 2 GPUs, and 1 is here")
    assert page.count("moe") == 1
    only = shown(smoke_runs.not_applicable())
    assert only.startswith("moe  not applicable: experts")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_a_narrow_page_moves_columns_below_their_row_and_loses_none(width: int) -> None:
    page = shown(width=width)
    for part in ("1.09 -> 0.72", "9.6 ms (8.9-9.6)", "bf16", "9.0 s", "41 MiB"):
        assert part in " ".join(page.split())
    assert max(map(len, page.splitlines())) <= width


def test_a_run_without_a_gpu_has_no_column_for_its_memory() -> None:
    page = shown(smoke_runs.killed())
    assert "peak VRAM" not in page
    assert "VRAM" in shown()


def test_a_run_that_went_well_in_company_is_told_briefly_and_alone_in_full() -> None:
    brief = section(shown(), "zero2")
    assert "import torch 2.1 s, import deepspeed 3.4 s" in brief
    assert "memory: host memory peaked at 1.5 GiB" in brief
    assert "allocator" not in brief
    alone = shown(smoke_runs.zero2())
    assert re.search(r"import torch      \u2588{5,}\u2591+  2\.1 s", alone)
    for part in (
        "peaked at 41 MiB (60 MiB reserved) in first step",
        "host memory peaked at 1.5 GiB",
        "VRAM (NVML)",
        "up to 900 MiB",
    ):
        assert part in alone


def test_who_fell_first_and_who_was_only_torn_down() -> None:
    told = section(shown(), "zero3")
    assert "rank 1 fell first: SIGKILL (in first step)" in told
    assert "rank 0: torn down after that (in first step)" in told
    assert "the cgroup counted 1 kill for want of memory" in told
    assert "12 MiB of host memory were free" in told
    assert "first step" in told
    assert "did not end" in told


def test_a_hang_says_which_phase_was_silent_for_how_long() -> None:
    assert "rank 0 fell first: said nothing for 60 s (in rendezvous)" in section(shown(), "zero1")


def test_an_error_is_named_and_a_lonely_rank_is_not_the_first() -> None:
    bad = msgspec.structs.replace(smoke_runs.hostile(), recipe="zero2")
    rank = msgspec.structs.replace(
        bad.ranks[0], error_type="ValueError", error="Type fp16 is not supported", last_phase="initialize"
    )
    page = shown(msgspec.structs.replace(bad, ranks=(rank,)))
    assert "rank 0 fell: ValueError: Type fp16 is not supported (in initialize)" in page


def test_stacks_and_output_come_with_v() -> None:
    assert "_create_store" not in shown()
    page = shown(verbosity=1)
    assert "  stack of ranks 0, 1:\n    Thread 0x7f (most recent call first):\n      File" in page
    assert "  last output:\n    [rank0] waiting for rank 1\n    Terminated" in page


def test_collectives_show_the_bytes_and_the_rates_with_their_spread() -> None:
    page = shown(smoke_runs.comm())
    assert re.split(r"\s{2,}", row(page, "all_gather")) == ["", "all_gather", "32 MiB", "180", "202", "214", "right"]


def test_of_very_many_phases_a_brief_run_names_the_longest() -> None:
    many = smoke_runs.phases(("import torch", 3.0), *((f"all_gather {n} KiB", 0.01) for n in range(20)), ("steps", 2.0))
    told = section(shown(smoke_runs.comm(phases=many), smoke_runs.zero2()), "comm")
    assert "phases: import torch 3.0 s, all_gather 0 KiB 10 ms," in told
    assert "steps 2.0 s, 13 shorter ones 130 ms" in told


def test_what_was_changed_in_the_users_config_is_told() -> None:
    run = smoke_runs.zero2(config="conf/ds.json", notes=("train_batch_size 512 became 8",))
    told = section(shown(run, smoke_runs.comm()), "zero2")
    assert "with your conf/ds.json" in told
    assert "your config in this run: train_batch_size 512 became 8" in told


def test_the_disk_is_held_against_its_plain_test() -> None:
    told = section(shown(), "zero3-nvme")
    for part in (
        "swapped to /local/nvme (xfs, O_DIRECT works): 134 MB in 14 files",
        "steps read 600 MB (545 MB/s) and wrote 610 MB (555 MB/s) in 1.1 s",
        "the folder gave 2.0 GB/s read, 1.4 GB/s write in a plain test just before",
    ):
        assert part in told


def test_a_run_that_offloads_says_what_the_processor_did() -> None:
    page = shown()
    assert "CPU-bound: CPU 92 % busy, GPU idle 70 %, the busiest core 93 % (11 samples while steps ran)" in section(
        page, "zero3-nvme"
    )
    assert "busy" not in section(page, "zero2")
    idle = msgspec.structs.replace(smoke_runs.nvme().load or SmokeLoad(), cpu_percent=30.0)
    assert "CPU-bound" not in shown(msgspec.structs.replace(smoke_runs.nvme(), load=idle))


@pytest.mark.parametrize(
    "changes",
    [
        {"proofs": (SmokeProof(name="partitioned", ok=False, detail="8 of 8 elements are kept"),)},
        {"steps": smoke_runs.steps((1.0, float("nan")), 5.0)},
        {"collectives": (Collective(name="all_reduce", message_bytes=4, bytes_per_s=(1.0,), correct=False),)},
    ],
    ids=["proof", "loss", "collective"],
)
def test_a_run_that_ended_with_wrong_numbers_is_not_called_ok(changes: dict[str, object]) -> None:
    run = smoke_runs.zero2(**changes)
    page = shown(run, smoke_runs.comm())
    assert word(run) == "wrong"
    assert row(page, "zero2").split()[1] == "wrong"
    assert re.search("8 of 8 elements|the loss of step 2 is NaN|WRONG", page)
    assert word(smoke_runs.zero2()) == "ok"


def test_it_says_that_it_is_no_benchmark() -> None:
    assert CAUTION in " ".join(shown().split())
    assert "no benchmark" in CAUTION


def test_quiet_keeps_the_rows_only() -> None:
    page = shown(verbosity=-1)
    assert len(page.splitlines()) == 7
    assert "benchmark" not in page


def test_a_healthy_report_ends_in_one_line_and_a_sick_one_with_findings_and_plan() -> None:
    healthy = smoke.render(of(report(passing), smoke_runs.zero2()), width=100)
    assert healthy.endswith("\n\nNothing is wrong: 1 checks passed.\n")
    sick = smoke.render(of(mixed(), smoke_runs.zero2(), smoke_runs.hung()), width=100)
    for part in ("[ERROR] CUDA001", "\nPlan\n", INSTALL, "Next: step 1, then run `dsdoctor smoke zero1` again."):
        assert part in sick
    assert sick.index("zero1") < sick.index("[ERROR] CUDA001") < sick.index("\nPlan\n")
    assert INSTALL not in smoke.render(of(mixed(), smoke_runs.hung()), verbosity=-1)


def test_without_a_run_it_says_why() -> None:
    assert smoke.render(report(passing)).startswith("No smoke run was made: no smoke run was asked for (--smoke).")
    assert smoke.render(Smoke()) == "No smoke run was made.\n"


def test_an_interrupted_run_shows_what_was_known() -> None:
    told = msgspec.structs.replace(of(report(passing), smoke_runs.zero2()), interrupted=True)
    assert "Interrupted: this is what was known by then." in smoke.render(told)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_hostile_text_and_missing_numbers(width: int, verbosity: int) -> None:
    odd = (
        smoke_runs.hostile(),
        smoke_runs.empty(),
        *(
            smoke_runs.empty(outcome=o)
            for o in ("signal", "exited", "hung", "timed-out", "not-started", "not-applicable")
        ),
    )
    for color in (False, True):
        page = smoke.render(of(mixed(), *odd), width=width, verbosity=verbosity, color=color)
        for bad in ("\x1b]", "\x1b[31mred", "\x07", "\x9b", "\u202e", "owned", "\n::error::", "None", "nan"):
            assert bad not in page, repr(bad)
        assert "[red]x[/red]" in page
    assert "\x1b" not in smoke.render(of(mixed(), *odd), width=width, verbosity=verbosity)


def test_ascii_terminals_get_ascii() -> None:
    assert smoke.render(of(mixed()), unicode=False, verbosity=1).isascii()
    assert smoke.render(smoke_runs.smoke(smoke_runs.hostile()), unicode=False, verbosity=1).isascii()


def test_colours_only_when_asked_for() -> None:
    assert "\x1b" not in shown()
    assert "\x1b[32mok    " in shown(color=True)
    assert "\x1b[31mhung" in shown(color=True)


def test_the_report_of_check_has_one_line_of_it() -> None:
    page = text.render(of(report(passing), smoke_runs.zero2(), smoke_runs.hung(recipe="zero3-nvme")), width=120)
    assert "  Smoke runs: zero2 ok (1.09 -> 0.72), zero3-nvme hung." in page
    assert "Smoke runs" not in text.render(report(failing("DS001", finding())))
