"""Causes by how surely they killed the run, and the story of the fall."""

from pathlib import Path

from dsdoctor.examination import triage
from dsdoctor.model import Report, Status
from dsdoctor.render.story import likely
from dsdoctor.request import Request

HEADER = "csrc/includes/context.h:10:10: fatal error: curand_kernel.h: No such file or directory\n"
BUILD = "RuntimeError: Error building extension 'cpu_adam'\n"
DESTRUCTOR = "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'\n"
END = "[2026-11-30 10:00:00,000] [ERROR] [launch.py:325:sigkill_handler] ['/venv/bin/python', 'train.py'] exits with return code = 1\n"
REPORT = """--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
op name ................ installed .. compatible
cpu_adam ............... [NO] ....... [OKAY]
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/venv/lib/python3.10/site-packages/torch']
torch version .................... 2.1.0+cu121
deepspeed install path ........... ['/venv/lib/python3.10/site-packages/deepspeed']
deepspeed info ................... 0.12.6, unknown, unknown
torch cuda version ............... 12.1
torch hip version ................ None
nvcc version ..................... 11.7
deepspeed wheel compiled w. ...... torch 2.1, cuda 12.1
"""


def told(folder: Path, *texts: str, **names: str) -> Report:
    files = {**{f"rank{number}.log": text for number, text in enumerate(texts)}, **names}
    for name, text in files.items():
        (folder / name).write_text(text)
    return triage(Request(logs=tuple(str(folder / name) for name in files)))


def test_the_first_fatal_line_leads_and_what_followed_comes_behind_it(tmp_path: Path) -> None:
    report = told(tmp_path, "step 1\n" + HEADER + BUILD + DESTRUCTOR + END)
    assert report.story is not None
    assert [cause.cause for cause in likely(report)][:1] == ["curand-header-missing"]
    assert [link.where.rpartition(":")[2] for link in report.story.chain] == ["2", "3", "4", "5"]
    assert [link.kind == "cause" for link in report.story.chain] == [True, False, False, False]
    assert report.plan[0].cause == "curand-header-missing"


def test_the_cause_leads_even_when_another_file_tells_its_echo_first(tmp_path: Path) -> None:
    report = told(tmp_path, BUILD + END, "[rank1]: " + HEADER)
    assert report.story is not None
    assert report.story.chain[0].where.endswith("rank1.log:1")
    assert report.story.chain[0].rank == 1


def test_last_words_alone_are_no_certainty(tmp_path: Path) -> None:
    report = told(tmp_path, DESTRUCTOR + END)
    assert all((cause.confidence or 0) < 0.6 for cause in report.causes)


def test_facts_in_the_text_are_judged_by_the_checks(tmp_path: Path) -> None:
    """Nothing in the log names a cause, the ds_report beside it does."""
    report = told(tmp_path, BUILD + DESTRUCTOR + END, **{"report.txt": REPORT})
    assert likely(report)[0].cause == "torch-cuda-vs-nvcc-major"
    assert report.facts.torch is not None
    assert report.facts.torch.version == "2.1.0+cu121"
    assert "LOG001" not in likely(report)[0].codes


def test_a_line_and_a_check_that_see_one_cause_confirm_each_other(tmp_path: Path) -> None:
    line = "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 11.7 does not match the version torch was compiled with 12.1, unable to compile cuda/cpp extensions without a matching cuda version.\n"
    alone = likely(told(tmp_path, line))[0]
    both = likely(told(tmp_path, line, **{"report.txt": REPORT}))[0]
    assert alone.cause == both.cause == "torch-cuda-vs-nvcc-major"
    assert (both.confidence or 0) > (alone.confidence or 0)
    assert {code[:3] for code in both.codes} == {"LOG", "CUD"}


def test_a_surely_named_cause_goes_before_what_checks_find_beside_it(tmp_path: Path) -> None:
    report = told(tmp_path, HEADER + BUILD, **{"report.txt": REPORT})
    assert [cause.cause for cause in likely(report)][:2] == ["curand-header-missing", "torch-cuda-vs-nvcc-major"]


def test_what_is_unknown_is_said_to_be_unknown(tmp_path: Path) -> None:
    text = (
        'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    go()\nmy.own.Trouble.StrangeError: seven\n'
        + END
    )
    report = told(tmp_path, text)
    assert report.story is not None
    assert (report.story.fell, report.story.recognised, likely(report)) == (True, False, [])
    assert [link.kind for link in report.story.chain][:1] == ["exception"]
    assert any("every rank" in wish for wish in report.story.collect)
    (open_question,) = [v for v in report.verdicts if v.code == "LOG002"]
    assert open_question.status is Status.UNKNOWN


def test_noise_is_listed_as_harmless_and_names_nothing(tmp_path: Path) -> None:
    noise = "df: /home/user/.triton/autotune: No such file or directory\n[2026-11-30 10:00:00,000] [INFO] [real_accelerator.py:260:get_accelerator] Setting ds_accelerator to cuda (auto detect)\n"
    report = told(tmp_path, noise + "step 1: loss 0.7\n")
    assert report.story is not None
    assert (report.story.fell, likely(report)) == (False, [])
    assert len(report.story.harmless) == 2
    assert all(link.means for link in report.story.harmless)


def test_a_line_of_another_release_does_not_count(tmp_path: Path) -> None:
    """From 0.15.1 on DeepSpeed runs this line through a shell by mistake; a text that tells of 0.12.6 has another reason."""
    line = "FileNotFoundError: [Errno 2] No such file or directory: \"/opt/rocm/bin/rocminfo | grep -Eo -m1 'Wavefront Size:'\"\n"
    alone, other = told(tmp_path, line), told(tmp_path, line, **{"report.txt": REPORT})
    slug = likely(alone)[0].cause
    assert slug not in {cause.cause for cause in other.causes}
