# ruff: noqa: RUF001
"""The line that names the error, in what real compilers, linkers and builders printed (2026-11-30)."""

from pathlib import Path

import pytest

from dsdoctor.probes.compiler_output import first_error, killed

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
NAMED = {
    "g++__missing-header": "a.cpp:1:10: fatal error: nope/missing.h: No such file or directory",
    "g++__two-errors": "b.cpp:3:36: error: ‘class std::vector<int>’ has no member named ‘push_backk’; did you mean ‘push_back’?",
    "g++__unknown-standard": "g++: error: unrecognized command-line option ‘-std=c++99’; did you mean ‘-std=c++98’?",
    "g++__no-source": "cc1plus: fatal error: nofile.cpp: No such file or directory",
    "g++__included-from-system_error": "inc/deep.h:1:10: fatal error: gone.h: No such file or directory",
    "g++__in-colour": "a.cpp:1:10: fatal error: nope/missing.h: No such file or directory",
    "clang++__missing-header": "a.cpp:1:10: fatal error: 'nope/missing.h' file not found",
    "clang++__two-errors": "b.cpp:3:36: error: no member named 'push_backk' in 'std::vector<int>'; did you mean 'push_back'?",
    "clang++__unknown-standard": "error: invalid value 'c++99' in '-std=c++99'",
    "ld__undefined": "c.cpp:(.text+0xa): undefined reference to `missing_symbol(int)'",
    "ld__missing-library": "/usr/bin/ld: cannot find -lcurandx: No such file or directory",
    "ld__not-an-object": "junk.o: file not recognized: file format not recognized",
    "ld__out-of-room": "/usr/bin/ld: final link failed: No space left on device",
    "gold__missing-library": "/usr/bin/ld.gold: error: cannot find -lcurandx",
    "gold__undefined": "/tmp/ccHimh9Z.o:c.cpp:function main: error: undefined reference to 'missing_symbol(int)'",
    "nvcc__error": 'k.cu(1): error: identifier "nowhere" is undefined',
    "nvcc__missing-header": "a.cpp:1:10: fatal error: nope/missing.h: No such file or directory",
    "nvcc__unsupported-architecture": "nvcc fatal   : Unsupported gpu architecture 'compute_35'",
    "nvcc__no-host-compiler": "gcc-99: No such file or directory",
    "nvcc__unknown-option": "nvcc fatal   : Unknown option '--nosuchflag'",
    "nvcc__killed": "Killed",
    "sh__no-compiler": "sh: 1: nosuchxx: not found",
    "ninja__killed-1.11": "Killed",
    "ninja__killed-1.13": "Killed",
    "ninja__crashed": "Segmentation fault",
    "torch__missing-header": "/src/a.cpp:1:10: fatal error: nope/missing.h: No such file or directory",
    "torch__two-errors": "/src/b.cpp:3:36: error: ‘class std::vector<int>’ has no member named ‘push_backk’; did you mean ‘push_back’?",
    "torch__compiler-killed": "c++: fatal error: Killed signal terminated program cc1plus",
    "torch__no-compiler": "/bin/sh: 1: nosuch: not found",
    "torch__no-ninja": "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
    "torch__undefined-symbol": "ImportError: /src/bd/sick_op.so: undefined symbol: _Z14missing_symboli",
    "python__undefined-symbol": "ImportError: /src/u.so: undefined symbol: _Z16undefined_symbolv",
}
KILLED = ("nvcc__killed", "bash__killed", "ninja__killed-1.11", "ninja__killed-1.13", "torch__compiler-killed")


def said(name: str) -> str:
    return (TRANSCRIPTS / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize(("name", "line"), NAMED.items(), ids=list(NAMED))
def test_the_line_that_names_the_error(name: str, line: str) -> None:
    assert first_error(said(name)) == line


@pytest.mark.parametrize("name", sorted(NAMED))
def test_an_error_between_other_builds_is_still_the_first(name: str) -> None:
    """Other sources were compiled, with warnings, before; and ninja has its last word."""
    before = "[1/9] c++ -DERROR=1 -c /x/error: y.cpp -o y.o\n/x/y.cpp:2:20: warning: error: unused [-Wunused]\n"
    after = "\nninja: build stopped: subcommand failed.\n"
    assert first_error(before + said(name) + after) == NAMED[name]


def test_no_line_names_an_error() -> None:
    assert first_error("") is None
    assert first_error("[1/2] c++ -Werror -c error.cpp -o error.o\n[2/2] c++ error.o -shared -o e.so\n") is None
    assert first_error("In file included from /usr/include/c++/12/system_error:41,\n  from a.cpp:1:\n") is None
    assert first_error("a.cpp:1:1: note: error: is only quoted\n2 errors generated.\n") is None


def test_what_only_repeats_an_error_is_not_it() -> None:
    text = "FAILED: a.o\n/opt/cc -DX -I/no/error: here -c a.cpp\ncollect2: error: ld returned 1 exit status\n"
    assert first_error(f"{text}ninja: build stopped: subcommand failed.\n") is None
    wrapped = "RuntimeError: Error building extension 'cpu_adam': [1/2] c++ -DX\na.cpp:1:2: error: deep\n"
    assert first_error(wrapped) == "a.cpp:1:2: error: deep"


def test_a_file_that_the_linker_cannot_find_comes_before_a_library() -> None:
    text = "/usr/bin/ld: cannot find a.o: No such file or directory\n/usr/bin/ld: cannot find -laio: No such file or directory"
    assert first_error(text) == "/usr/bin/ld: cannot find a.o: No such file or directory"


def test_a_killed_linker_is_an_error() -> None:
    assert first_error("collect2: fatal error: ld terminated with signal 9 [Killed]\ncompilation terminated.\n") == (
        "collect2: fatal error: ld terminated with signal 9 [Killed]"
    )


def test_a_long_line_is_cut_around_its_error() -> None:
    found = first_error(f"{'x' * 100_000} a.cpp:1:1: error: here {'y' * 100_000}")
    assert found is not None
    assert "error: here" in found
    assert len(found) <= 500


@pytest.mark.parametrize("name", sorted({*NAMED, *KILLED}))
def test_a_compiler_that_was_killed_is_told_from_one_that_failed(name: str) -> None:
    assert killed(said(name)) is (name in KILLED)


@pytest.mark.parametrize(
    "line",
    [
        "g++: internal compiler error: Killed (program cc1plus)",  # gcc up to 9
        "c++: fatal error: Killed signal terminated program cc1plus",  # gcc 10 and later
        "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
        "/bin/sh: line 1:  4711 Killed                  /usr/bin/g++ -c a.cpp",
        "clang-14: error: unable to execute command: Killed",
    ],
)
def test_all_words_for_killed(line: str) -> None:
    assert killed(f"[1/2] c++ -c a.cpp\n{line}\nninja: build stopped: subcommand failed.\n")


@pytest.mark.parametrize("line", ["a.cpp:1:1: error: 'Killed' was not declared in this scope", "c++ -c Killed.cpp"])
def test_the_word_alone_is_not_enough(line: str) -> None:
    assert not killed(line)
