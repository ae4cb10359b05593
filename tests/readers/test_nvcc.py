"""nvcc's answers as people paste them."""

from pathlib import Path

from dsdoctor.readers import nvcc

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"


def test_a_recorded_answer() -> None:
    kit = nvcc.parse((TRANSCRIPTS / "nvcc-version__13.0.txt").read_text())
    assert kit is not None
    assert (kit.version, kit.from_text, kit.nvcc_problem) == ("13.0", True, None)


def test_with_the_path_before_it() -> None:
    text = "$ which nvcc\n/usr/local/cuda-12.4/bin/nvcc\n" + (TRANSCRIPTS / "nvcc-version__13.0.txt").read_text()
    kit = nvcc.parse("> " + text.replace("\n", "\n> "))
    assert kit is not None
    assert (kit.root, kit.nvcc) == ("/usr/local/cuda-12.4", "/usr/local/cuda-12.4/bin/nvcc")


def test_nvcc_is_not_there() -> None:
    kit = nvcc.parse("bash: nvcc: command not found")
    assert kit is not None
    assert (kit.exists, kit.nvcc, kit.version, kit.nvcc_problem) == (False, None, None, "bash: nvcc: command not found")


def test_other_text_holds_no_toolkit() -> None:
    assert nvcc.parse("nvcc version ........ 11.8\nrelease 12.4 of something else") is None
    assert nvcc.parse("") is None
