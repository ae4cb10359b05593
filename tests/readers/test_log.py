"""Logs in every wrapping: what is found, where, by whom, and that nothing of it can break the reader."""

import gzip
import json
import unicodedata
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.panel import Panel

from dsdoctor.facts import Log
from dsdoctor.readers.log import read
from dsdoctor.readers.log.ends import signal_of
from dsdoctor.readers.log.prefixes import take_apart
from dsdoctor.registry import load
from dsdoctor.signatures import Signatures

KNOWN = load().known_lines()
FATAL = "csrc/includes/context.h:10:10: fatal error: curand_kernel.h: No such file or directory"
LINES = (
    "step 1 loss 0.7",
    FATAL,
    "ninja: build stopped: subcommand failed.",
    "RuntimeError: Error building extension 'cpu_adam'",
)


def log_of(folder: Path, data: bytes | str, name: str = "train.log", known: Signatures = KNOWN) -> Log:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read([str(path)], known).log


def causes(log: Log) -> list[tuple[str | None, int]]:
    return [(match.cause, match.place.line) for match in log.having("root")]


def each(form: str) -> str:
    return "".join(form.format(line) + "\n" for line in LINES)


WRAPPINGS = {
    "plain": each("{}"),
    "Windows line ends": each("{}\r"),
    "ranks of torchrun": each("[rank3]: {}"),
    "tee of torchrun": each("[default3]:{}"),
    "mpirun --tag-output": each("[1,3]<stderr>:{}"),
    "srun --label": each("3: {}"),
    "pdsh": each("worker-2: {}"),
    "docker compose": each("worker-2  | {}"),
    "Kubernetes": each("2026-11-30T10:00:00.123456789Z stderr F {}"),
    "GitHub Actions": each("2026-11-30T10:00:00.1234567Z {}"),
    "a logger": each("2026-11-30 10:00:00,123 - {}"),
    "syslog": each("Nov 30 10:00:00 node7 train[812]: {}"),
    "Ray": each("(RayTrainWorker pid=812, ip=10.0.0.7) {}"),
    "a quoted mail": each("> {}"),
    "colour": each("\x1b[01m\x1b[K{}\x1b[m\x1b[K"),
    "docker's JSON": "".join(json.dumps({"log": line + "\n", "stream": "stderr"}) + "\n" for line in LINES),
    "a fence": "```\n" + each("{}") + "```\n",
}


@pytest.mark.parametrize("text", WRAPPINGS.values(), ids=WRAPPINGS.keys())
def test_a_wrapping_hides_nothing(tmp_path: Path, text: str) -> None:
    log = log_of(tmp_path, text)
    line = 3 if text.startswith("```") else 2
    assert causes(log) == [("curand-header-missing", line)]
    assert log.having("root")[0].place.text == FATAL
    assert log.exceptions[0].type == "RuntimeError"
    assert log.exceptions[0].message == "Error building extension 'cpu_adam'"


def test_packed_and_wide_texts_are_read(tmp_path: Path) -> None:
    plain = WRAPPINGS["plain"]
    squeezed = log_of(tmp_path, gzip.compress(plain.encode()), "train.log.gz")
    wide = log_of(tmp_path, plain.replace("\n", "\r\n").encode("utf-16"), "train.txt")
    assert causes(squeezed) == causes(wide) == [("curand-header-missing", 2)]
    assert (squeezed.files[0].packed, wide.files[0].packed) == ("gzip", "utf-16")


def test_a_broken_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    packed = gzip.compress((WRAPPINGS["plain"] + "".join(f"step {n}: {hash(n)}\n" for n in range(50_000))).encode())
    log = log_of(tmp_path, packed[: len(packed) // 2], "cut.log.gz")
    assert causes(log) == [("curand-header-missing", 2)]
    assert "damaged" in str(log.files[0].cut)


def test_a_progress_bar_on_one_line_hides_nothing_and_counts_as_one_line(tmp_path: Path) -> None:
    bar = "".join(f"\r{n:3}%|###| {n}/100 [00:01<00:00, 9.1it/s]" for n in range(100))
    log = log_of(tmp_path, f"{bar}\r{FATAL}\nafter\n")
    assert causes(log) == [("curand-header-missing", 1)]
    assert log.files[0].lines == 2


@pytest.mark.parametrize(
    ("line", "rank", "host"),
    [
        ("[rank12]: ValueError: x", 12, None),
        ("[rank1]:[E1130 10:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] x", 1, None),
        ("[1,5]<stdout>:x", 5, None),
        ("7: x", 7, None),
        ("[3] NCCL WARN x", 3, None),
        ("worker-0: x", None, "worker-0"),
        ("(TrainWorker rank=2, pid=77) x", 2, None),
        ("[2026-11-30 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] x", 0, None),
        ("[E ProcessGroupNCCL.cpp:474] [PG 0 Rank 4] Watchdog caught x", 4, None),
        ("gcc-12: error: x", None, None),
        ("RuntimeError: x", None, None),
        ("2: [rank6]: x", 6, None),
    ],
)
def test_who_said_it(line: str, rank: int | None, host: str | None) -> None:
    said = take_apart(line.encode())
    assert (said.rank, said.host) == (rank, host)


@pytest.mark.parametrize(
    ("code", "name"),
    [(-9, "SIGKILL"), (137, "SIGKILL"), (247, "SIGKILL"), (-7, "SIGBUS"), (135, "SIGBUS"), (249, "SIGBUS"), (-11, "SIGSEGV"),
     (139, "SIGSEGV"), (245, "SIGSEGV"), (-6, "SIGABRT"), (134, "SIGABRT"), (250, "SIGABRT"), (-15, "SIGTERM"), (143, "SIGTERM"),
     (-4, "SIGILL"), (132, "SIGILL"), (3221225477, "SIGSEGV"), (1, None), (2, None), (127, None), (255, "SIGHUP")],
)  # fmt: skip
def test_exit_codes_are_decoded(code: int, name: str | None) -> None:
    assert signal_of(code) == name


@pytest.mark.parametrize(
    ("line", "code", "signal", "rank"),
    [
        ("[ERROR] [launch.py:325:sigkill_handler] ['/venv/bin/python', '-u', 't.py'] exits with return code = -9", -9, "SIGKILL", None),
        ("E1130 10:00:00.1 99 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -11) local_rank: 2 (pid: 71) of binary: /venv/bin/python", -11, "SIGSEGV", 2),
        ("  rank      : 3 (local_rank: 1)\n  exitcode  : -7 (pid: 812)", -7, "SIGBUS", 3),
        ("['/venv/bin/python', 't.py', '--local_rank=1'] exits with return code = 3", 3, None, 1),
        ("  traceback : Signal 9 (SIGKILL) received by PID 812", None, "SIGKILL", None),
        ("srun: error: node03: task 5: Exited with exit code 134", 134, "SIGABRT", 5),
        ("srun: error: node03: task 5: Killed", None, "SIGKILL", 5),
        ("./run.sh: line 7:  812 Bus error               (core dumped) python train.py", None, "SIGBUS", None),
        ("Killed", None, "SIGKILL", None),
        ("subprocess.CalledProcessError: Command '['ninja', '-v']' died with <Signals.SIGSEGV: 11>.", None, "SIGSEGV", None),
        ("    Reason:       OOMKilled", None, "SIGKILL", None),
        ("Fatal Python error: Segmentation fault", None, "SIGSEGV", None),
        ("train-1 exited with code 137", 137, "SIGKILL", None),
    ],
)  # fmt: skip
def test_ends_of_processes_are_read(
    tmp_path: Path, line: str, code: int | None, signal: str | None, rank: int | None
) -> None:
    (ended,) = log_of(tmp_path, f"before\n{line}\n").exits
    assert (ended.code, ended.signal, ended.rank, ended.place.line) == (code, signal, rank, 2 + line.count("\n"))


@pytest.mark.parametrize(
    "line", ["process exited with code 0", "0 errors, 2 warnings", "Killed 3 zombies", "loss 0.1 exit early: no"]
)
def test_what_is_no_end_is_not_taken_for_one(tmp_path: Path, line: str) -> None:
    assert log_of(tmp_path, line + "\n").exits == ()


def test_an_exception_has_its_frame_and_its_rank(tmp_path: Path) -> None:
    text = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/job/train.py", line 7, in <module>\n'
        "[rank1]:     main()\n"
        '[rank1]:   File "/venv/lib/python3.11/site-packages/deepspeed/runtime/engine.py", line 2143, in step\n'
        "[rank1]:     self._take_model_step(lr_kwargs)\n"
        "[rank1]: my.own.StrangeError: the number 7 is not welcome\n"
    )
    (raised,) = log_of(tmp_path, text).exceptions
    assert (raised.type, raised.place.rank, raised.place.line) == ("my.own.StrangeError", 1, 6)
    assert raised.raised_in == "engine.py:2143 in step"


def test_a_source_line_in_a_traceback_was_not_said(tmp_path: Path) -> None:
    """The line that raises shows the words of every message that it could raise."""
    text = '  File "/w/x.py", line 9, in check\n    raise RuntimeError("Error building extension")  # fatal error: curand_kernel.h: No such file\n'
    assert not [m for m in log_of(tmp_path, text).matches if m.role != "harmless"]


def test_a_line_is_found_far_into_a_long_log_and_counted_from_its_start(tmp_path: Path) -> None:
    steps = [f"step {n}: loss {1 / (n + 1):.7f} word{'abcdefghij'[n % 10]}" for n in range(120_000)]
    steps[100_000] = FATAL
    assert causes(log_of(tmp_path, "\n".join(steps))) == [("curand-header-missing", 100_001)]


def test_what_must_stand_near_is_found_over_the_edge_of_a_page(tmp_path: Path) -> None:
    known = Signatures(
        [
            '\n[[signature]]\nid = "a"\nrole = "root"\ncause = "c"\nanchor = "the spark"\npattern = "the spark"\nnear = ["the fuel"]\nreason = "r"\n'
            '\n[[signature]]\nid = "b"\nrole = "root"\ncause = "d"\nanchor = "the spark"\npattern = "the spark"\nnot_near = ["the fuel"]\nreason = "r"\n'
        ]
    )
    fuel, filler = "here is the fuel\n", "x" * 99 + "\n"
    for gap in (1, 39):
        pages = filler * (10486 - gap) + fuel + filler * gap + "the spark\n"  # the page ends between them
        assert causes(log_of(tmp_path, pages, known=known)) == [("c", 10488)]
    assert causes(log_of(tmp_path, fuel + filler * 50 + "the spark\n", known=known)) == [("d", 52)]


def test_a_line_that_counts_only_at_the_end_of_its_text(tmp_path: Path) -> None:
    known = Signatures(
        [
            '\n[[signature]]\nid = "a"\nrole = "root"\ncause = "hang"\nanchor = "waiting for"\npattern = "waiting for"\nlast = 1\nreason = "r"\n'
        ]
    )
    assert causes(log_of(tmp_path, "a\nwaiting for it\n\n\nstep 1\n", known=known)) == [("hang", 2)]
    assert causes(log_of(tmp_path, "a\nwaiting for it\nstep 1\nstep 2\n", known=known)) == []


def test_an_exception_that_pip_shows_under_its_last_frame_was_said(tmp_path: Path) -> None:
    """Its frames have no source, and all of it is indented."""
    shown = (
        "      Traceback (most recent call last):\n"
        '        File "/tmp/pip-install-x1/flash-attn_2b/setup.py", line 9, in <module>\n'
    )
    assert causes(log_of(tmp_path, shown + f"      RuntimeError: {FATAL}\n"))
    assert not causes(log_of(tmp_path, shown + f"          {FATAL}\n"))


def test_a_line_is_harmless_unless_its_text_ends_there(tmp_path: Path) -> None:
    known = Signatures(
        [
            '\n[[signature]]\nid = "a"\nrole = "root"\ncause = "hang"\nanchor = "waiting for"\npattern = "waiting for"\nlast = 1\nreason = "r"\n'
            '\n[[signature]]\nid = "b"\nrole = "harmless"\nanchor = "waiting for"\npattern = "waiting for"\nreason = "r"\n'
        ]
    )
    said = "a\nwaiting for it\nstep 1\n"
    assert [match.signature for match in log_of(tmp_path, said, known=known).matches] == ["a"]
    assert [match.signature for match in log_of(tmp_path, said + "step 2\n", known=known).matches] == ["b"]


def test_the_same_line_of_many_ranks_is_one_match_that_counts_them(tmp_path: Path) -> None:
    text = "".join(f"[rank{rank}]: {FATAL}\n" for rank in (2, 0, 1, 2))
    (match,) = log_of(tmp_path, text).having("root")
    assert (match.count, match.place.rank, match.ranks) == (4, 2, (2, 0, 1))


@pytest.mark.parametrize("prefix", ["", "[rank1]: "])
@pytest.mark.parametrize("width", [40, 64, 80])
def test_a_message_that_rich_broke_under_its_box_is_whole_again(tmp_path: Path, width: int, prefix: str) -> None:
    """What rich prints, at several widths of a terminal."""
    message = 'AssertionError: You are using an untested ZeRO Optimizer. Please add <"zero_allow_untested_optimizer": true> in the configuration file to use it.'
    console = Console(width=width, file=StringIO(), legacy_windows=False)
    console.print(Panel("in step", title="Traceback (most recent call last)"))
    console.print(message, markup=False, highlight=False)
    text = "".join(f"{prefix}{line}\n" for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]
    log = log_of(tmp_path, text + f"{prefix}step 7\n")
    assert causes(log) == [("optimizer-untested", 4)]
    assert log.exceptions[0].message.startswith(message.partition(": ")[2])  # the next line may look like a part of it


def test_odd_files(tmp_path: Path) -> None:
    assert log_of(tmp_path, "").matches == ()
    assert log_of(tmp_path, bytes(range(256)) * 4000).exceptions == ()
    one = log_of(tmp_path, b"y" * 5_000_000 + FATAL.encode() + b"z" * 3_000_000)
    assert [match.cause for match in one.having("root")] == ["curand-header-missing"]
    assert len(one.having("root")[0].place.text) <= 400


PIECES = [example for row in KNOWN.all()[::7] for example in row.example[:1]]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.sampled_from(PIECES).flatmap(
                lambda piece: st.integers(0, len(piece)).map(lambda end: piece[:end].encode())
            ),
            st.binary(max_size=60),
            st.sampled_from(
                [b"\r", b"\x1b[31m", b"[rank1]: ", b'{"log":"', b"\x00", b"\xff\xfe", b"{0}", b"%s", b"[red]", b"```"]
            ),
        ),
        max_size=12,
    ),
    st.sampled_from([b"", b"\n", b"\r\n"]),
)
def test_no_text_breaks_the_reader(tmp_path: Path, pieces: list[bytes], between: bytes) -> None:
    log = log_of(tmp_path, between.join(pieces))
    shown = "".join(match.place.text for match in log.matches)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cs"}, "a control character reached a fact"
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
