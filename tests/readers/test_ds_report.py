"""ds_report as it was really printed, and as people paste it."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsdoctor.facts import DeepSpeed, DsReport, Toolkits, Torch
from dsdoctor.readers import ds_report

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECORDED = Path(__file__).parents[2] / "fixtures" / "ds_report"
INDEX: dict[str, dict[str, Any]] = tomllib.loads((RECORDED / "index.toml").read_text("utf-8"))


def recorded(name: str) -> str:
    return (RECORDED / name).read_bytes().decode()


def read(name: str) -> DsReport:
    return ds_report.parse(recorded(name), name)


@pytest.mark.parametrize("name", sorted(INDEX))
def test_a_recorded_report_parses_to_what_its_index_says(name: str) -> None:
    want, report = INDEX[name], read(name)
    counted = Counter(f"{'YES' if op.installed else 'NO'}/{'OKAY' if op.compatible else 'NO'}" for op in report.ops)
    assert report.complete == want["complete"]
    assert report.deepspeed_version == want.get("deepspeed")
    assert report.torch_version == want.get("torch")
    assert report.nvcc_version == want.get("nvcc")
    assert report.ninja == want.get("ninja")
    assert dict(counted) == want.get("statuses", {})
    assert [op.name for op in report.ops if not op.compatible] == want.get("not_compatible", [])
    assert (report.fault_type, report.fault) == (want.get("fault_type"), want.get("fault"))


def test_every_recorded_file_has_a_row_in_the_index() -> None:
    assert {path.name for path in RECORDED.glob("*.txt")} == set(INDEX)


BASE = "0.19.8__accel-cuda_small-shm.txt"


def _lost_escape(text: str) -> str:
    return text.replace("\x1b[", "[")


def _no_colour(text: str) -> str:
    for code in ("0", "91", "92", "93"):
        text = text.replace(f"\x1b[{code}m", "")
    return text


def _stderr_last(text: str) -> str:
    first, _, rest = text.partition("\n")
    return rest + first + "\n"


def _wrapped(text: str) -> str:
    """A narrow terminal broke the path rows."""
    return text.replace("site-packages/", "site-\npackages/")


PASTES = {
    "lost escape": _lost_escape,
    "caret escape": lambda t: t.replace("\x1b[", "^[["),
    "picture of escape": lambda t: t.replace("\x1b[", "\u241b["),
    "no colour": _no_colour,
    "windows line ends": lambda t: t.replace("\n", "\r\n"),
    "doubled carriage returns": lambda t: t.replace("\n", "\r\r\n"),
    "quoted in a mail": lambda t: "".join(f"> {line}\n" for line in t.splitlines()),
    "quoted twice": lambda t: "".join(f">> {line}\n" for line in t.splitlines()),
    "fenced": lambda t: f"My setup:\n```bash\n{t}```\nPlease help",
    "indented": lambda t: "".join(f"    {line}\n" for line in t.splitlines()),
    "shell prompts": lambda t: f"(env) me@box:~$ ds_report\n{t}(env) me@box:~$ ",
    "prefixed by pdsh": lambda t: "".join(f"node7: {line}\n" for line in _no_colour(t).splitlines()),
    "stderr last": _stderr_last,
    "wrapped paths": _wrapped,
    "ellipsis for dots": lambda t: t.replace("...", "\u2026"),
    "markdown escapes": lambda t: _no_colour(t).replace("stochastic_transformer", "stochastic\\_transformer"),
}


@pytest.mark.parametrize("paste", PASTES.values(), ids=PASTES.keys())
def test_a_pasted_report_says_the_same_as_the_original(paste: Any) -> None:
    want, got = read(BASE), ds_report.parse(paste(recorded(BASE)), "paste")
    assert got.complete
    assert [(o.name, o.installed, o.compatible) for o in got.ops] == [
        (o.name, o.installed, o.compatible) for o in want.ops
    ]
    for field in ("torch_path", "torch_version", "torch_cuda", "nvcc_version", "deepspeed_version", "wheel_torch"):
        assert getattr(got, field) == getattr(want, field)
    assert got.shm_bytes == 64 * 2**20


def test_warnings_stand_with_their_op() -> None:
    report = read(BASE)
    aio, evoformer = report.op("async_io"), report.op("evoformer_attn")
    assert aio is not None
    assert evoformer is not None
    assert len(aio.warnings) == 3
    assert aio.warnings[1] == "async_io: please install the libaio-dev package with apt"
    assert evoformer.warnings[0].startswith("Unable to locate CUTLASS.")
    assert [op.name for op in report.ops if op.warnings] == ["async_io", "evoformer_attn"]
    assert any("/dev/shm size might be too small" in w for w in report.general_warnings)


def test_a_failed_probe_is_tied_to_the_op_that_it_names() -> None:
    line = "gds compatibility check failed (CUDA_HOME does not exist), treating the op as not compatible\n"
    gds = ds_report.parse(line + recorded(BASE), "paste").op("gds")
    assert gds is not None
    assert gds.warnings == (line.strip(),)


def test_every_information_row_is_kept_as_printed() -> None:
    info = read("0.3.16__accel-cuda.txt").info
    assert list(info)[-1] == "deepspeed wheel compiled w."
    assert info["deepspeed info"] == "0.3.16, unknown, unknown"
    unknown = recorded(BASE) + "some new key ..................... blue\n"
    assert ds_report.parse(unknown, "paste").info["some new key"] == "blue"


@pytest.mark.parametrize(
    ("name", "accelerator", "fallback"),
    [
        ("0.19.8__plain.txt", "cpu", True),
        ("0.19.8__prebuilt-cpu-ops.txt", "cpu", False),
        ("0.19.8__accel-cuda.txt", "cuda", False),
        ("0.14.5__accel-cuda.txt", "cuda", False),
        ("0.19.8__hide-both.txt", "cuda", False),
        ("0.3.16__plain.txt", "cuda", False),
        ("0.19.8__torch-missing.txt", None, False),
    ],
)
def test_the_accelerator_comes_from_the_log_or_the_rows(name: str, accelerator: str | None, fallback: bool) -> None:
    report = read(name)
    assert (report.accelerator, report.accelerator_fallback) == (accelerator, fallback)


def test_why_nvcc_has_no_version_is_told() -> None:
    assert read("0.19.8__accel-cuda_nvcc-missing.txt").nvcc_problem == "nvcc missing"
    problem = read("0.19.8__accel-cuda_no-cuda-home.txt").nvcc_problem
    assert problem == "cannot find CUDA_HOME via torch.utils.cpp_extension.CUDA_HOME=None"


def test_a_report_that_stops_early_is_not_complete() -> None:
    whole = recorded(BASE).splitlines(keepends=True)
    for keep in (15, 30, len(whole) - 3):
        assert not ds_report.parse("".join(whole[:keep]), "paste").complete
    head_lost = ds_report.parse("".join(whole[20:]), "paste")
    assert not head_lost.complete
    assert head_lost.torch_version == "2.13.0+cu130"


def test_a_traceback_in_the_middle_names_the_fault_and_keeps_the_rows() -> None:
    whole = recorded(BASE).splitlines(keepends=True)
    died = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/bin/ds_report", line 8, in <module>\n    sys.exit(cli_main())\n'
        "deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist,\n"
        "unable to compile CUDA op(s)\n"
    )
    report = ds_report.parse("".join(whole[:20]) + died, "paste")
    assert report.fault_type == "deepspeed.ops.op_builder.builder.MissingCUDAException"
    assert report.fault == "CUDA_HOME does not exist,\nunable to compile CUDA op(s)"
    assert report.op("cpu_adam") is not None
    stderr_first = ds_report.parse(died + "".join(whole[:20]), "paste")
    assert stderr_first.fault == report.fault


def test_a_crash_by_signal_is_named() -> None:
    report = ds_report.parse("$ ds_report\nSegmentation fault (core dumped)\n", "paste")
    assert (report.complete, report.fault_type) == (False, "SIGSEGV")


def test_of_two_reports_the_last_is_read() -> None:
    report = ds_report.parse(recorded("0.19.8__accel-cuda.txt") + recorded("0.8.3__accel-cuda.txt"), "paste")
    assert report.deepspeed_version == "0.8.3"
    assert len(report.ops) == 13
    assert report.shm_bytes is None or report.complete


def test_nothing_of_the_terminal_survives() -> None:
    evil = "\x1b]0;title\x07\x1b[2J\u202e\x00"
    text = recorded(BASE).replace("0.19.8, unknown", f"{evil}0.19.8, un{evil}known").replace("libaio-dev", evil)
    report = ds_report.parse(text, "paste")
    kept = repr(report)
    assert report.deepspeed_version == "0.19.8"
    assert not any(f"\\x{code}" in kept for code in ("1b", "07", "00"))
    assert "\u202e" not in kept
    assert "title" not in kept


@pytest.mark.parametrize(
    "text", ["", "hello", "\x00\xff" * 5000, "ds_report", "a" * 100_000, "[NO] ....... [OKAY]\n" * 99]
)
def test_a_text_without_a_report_says_so(text: str) -> None:
    report = ds_report.parse(text, "junk")
    assert (report.complete, report.fault_type, report.fault) == (False, None, ds_report.NOT_FOUND)


def test_a_huge_text_is_read_at_both_ends() -> None:
    report = ds_report.parse(recorded(BASE) + "x" * 50_000_000 + "\n", "huge")
    assert report.deepspeed_version == "0.19.8"
    tail = ds_report.parse("y" * 50_000_000 + "\n" + recorded(BASE), "huge")
    assert tail.complete


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("[]. \nNOYESKA-_m\x1b0923:ninja'\"\\T"), max_size=400), st.integers(0, 3000))
def test_no_text_makes_it_raise(noise: str, at: int) -> None:
    whole = recorded(BASE)
    assert ds_report.parse(whole[:at] + noise + whole[at:], "fuzz").source == "fuzz"


def test_facts_of_a_report_feed_the_same_checks() -> None:
    facts = ds_report.facts_of(read("0.19.8__prebuilt-cuda-fused-adam.txt"))
    torch, deepspeed, toolkits = facts["torch"], facts["deepspeed"], facts["toolkits"]
    assert isinstance(torch, Torch)
    assert isinstance(deepspeed, DeepSpeed)
    assert isinstance(toolkits, Toolkits)
    assert (torch.version, torch.cuda, torch.from_text) == ("2.13.0+cu130", "13.0", True)
    assert (deepspeed.version, deepspeed.prebuilt_ops, deepspeed.from_text) == ("0.19.8", ("fused_adam",), True)
    assert toolkits.selected is not None
    assert toolkits.selected.version == "13.0"
    assert toolkits.selected.root == "/usr/local/cuda-13.0"


def test_facts_of_a_cpu_report_take_the_cuda_build_from_torchs_version() -> None:
    torch = ds_report.facts_of(read("0.19.8__plain.txt"))["torch"]
    assert isinstance(torch, Torch)
    assert torch.cuda == "13.0"
    cpu = ds_report.facts_of(read("0.19.8__cpu-torch.txt"))["torch"]
    assert isinstance(cpu, Torch)
    assert cpu.cuda is None


def test_facts_leave_out_what_a_dead_report_does_not_say() -> None:
    assert set(ds_report.facts_of(read("0.19.8__torch-missing.txt"))) == {"ds_report"}
    no_home = ds_report.facts_of(read("0.19.8__accel-cuda_no-cuda-home.txt"))["toolkits"]
    assert isinstance(no_home, Toolkits)
    assert no_home.chosen is None
