"""A report that is passed on names nobody, in every format, and is still true and readable."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.facts import Environment, Programs
from dsdoctor.facts.packages import Distribution, Packages
from dsdoctor.facts.programs import Hostfile
from dsdoctor.model import Evidence, Remedy, Report
from dsdoctor.redact import hide_tokens, redact, redact_report
from dsdoctor.redact_text import Words, command, text
from dsdoctor.render import FORMATS, renderer
from dsdoctor.testing import load_machine
from tests.machines.test_machines import MACHINES
from tests.render.reports import failing, finding, mixed, report

WHOSE = ("/home/alice", "alice", "gandalf.cluster.lan")
TOKENS = {
    "hf_abcdefghijklmnopqrstuvwxyz": "abcdefghij", "wandb: 0123456789abcdef0123456789abcdef01234567": "0123456789abcdef",
    "wandb_v1_AbCdEfGhIjKlMnOpQrStUvWxYz": "AbCdEf", "AKIAIOSFODNN7EXAMPLE": "AKIA", "ASIAIOSFODNN7EXAMPLE": "ASIA",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG": "wJalr", "ghp_0123456789abcdefghijklmnop": "ghp_0", "nvapi-0123456789abcdefghijkl": "nvapi-0",
    "sk-0123456789abcdefghijklmn": "sk-0", "https://bob:hunter2@pypi.example.com/x": "hunter2", "Bearer abcdef123456": "abcdef123456",
}  # fmt: skip
NAMES = {
    "/home/alice/venv/bin/python": "alice", "/scratch/alice/run": "alice", "alice@": "alice", "owned by alice": "alice",
    "USER=alice": "alice", "uid=1000(alice)": "alice", "alice says": "alice", "/users/bob/x": "bob", "/home2/bob/x": "bob",
    "C:\\Users\\bob\\x": "bob", "gandalf.cluster.lan": "gandalf", "gandalf: up": "gandalf", "GANDALF": "GANDALF", "frodo:29500": "frodo",
    "at 10.1.2.3": "10.1.2.3", "tcp://192.168.7.9:29500": "192.168.7.9", "8.8.4.4": "8.8.4.4", "ssh alice@10.1.2.3": "10.1.2.3", "::ffff:10.1.2.3": ".2.3", "ip-10-1-2-3.ec2.internal": "10-1-2", "fe80::1ff:fe23:4567:890a": "fe80",
    "2001:4860:4860::8888": "4860", "3c:ec:ef:12:34:56": "3c:ec", "bob.smith@example.com": "bob",
    "GPU-8e33e5b0-1234-5678-9abc-def012345678": "8e33e5b0", "MIG-8e33e5b0-1234-5678-9abc-def012345678": "8e33e5b0",
    "8e33e5b0-1234-5678-9abc-def012345678": "8e33e5b0", "Serial Number: 1320622003456": "1320622003456",
}  # fmt: skip
SECRETS = TOKENS | NAMES
WORDS = Words(home="/home/alice", user="alice", hosts={"gandalf": "host"})


def base() -> Report:
    """One of everything, on a machine with a hostfile."""
    whole = mixed({"MEM001": "it is big"})
    hostfile = Hostfile(path="/job/hostfile", exists=True, hosts={"frodo": 8})
    environment = Environment(variables={"PATH": "/usr/bin", "CUDA_HOME": "/usr/local/cuda"})
    facts = whole.facts.replace(programs=Programs(hostfile=hostfile), environment=environment)
    return msgspec.structs.replace(whole, facts=facts, problems=("a plug-in is broken",))


FREE = ("message", "where", "text", "order", "commands", "verify", "note", "subject", "reason", "ignored", "because", "why",
        "summary", "patient", "headline", "can", "cannot", "instead", "problems", "origin", "title", "detail", "executable",
        "PATH", "CUDA_HOME", "path", "name")  # fmt: skip


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a report holds text that may come from a machine."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*way, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*way, number))
    elif isinstance(value, str) and next(w for w in reversed(way) if isinstance(w, str)) in FREE:
        yield way


def planted(whole: Report, way: tuple[Any, ...], secret: str) -> Report:
    raw: Any = msgspec.json.decode(msgspec.json.encode(whole))
    inner = raw
    for step in way[:-1]:
        inner = inner[step]
    inner[way[-1]] = secret
    try:
        return msgspec.convert(raw, Report)
    except msgspec.ValidationError:  # one of a few fixed words
        return whole


WAYS = list(places(msgspec.json.decode(msgspec.json.encode(base()))))


def test_there_are_places_of_every_kind() -> None:
    named = {next(w for w in reversed(way) if isinstance(w, str)) for way in WAYS}
    assert {
        "message",
        "where",
        "text",
        "commands",
        "verify",
        "order",
        "patient",
        "reason",
        "executable",
        "PATH",
    } <= named


@settings(deadline=None, max_examples=250)
@given(
    st.sampled_from(WAYS),
    st.sampled_from(sorted(SECRETS)),
    st.sampled_from(["{}", "see {} now", '"{}"', "'{}'", "a={}", "({})"]),
)
def test_no_secret_survives_in_any_format(way: tuple[Any, ...], secret: str, around: str) -> None:
    after = redact_report(planted(base(), way, around.format(secret)), *WHOSE)
    leaked = [form for form in FORMATS if SECRETS[secret] in renderer(form)(after)]
    assert leaked == []
    assert redact_report(after, *WHOSE) == after


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(WAYS), st.sampled_from(sorted(TOKENS)))
def test_tokens_go_even_where_names_stay(way: tuple[Any, ...], token: str) -> None:
    before = planted(
        planted(base(), way, f"see {token} now"), ("patient",) if way != ("patient",) else ("summary",), "/home/alice/x"
    )
    after = hide_tokens(before)
    documents = [renderer(form)(after) for form in FORMATS]
    assert [d for d in documents if SECRETS[token] in d] == []
    assert "/home/alice/x" in documents[0]


@pytest.mark.parametrize("folder", MACHINES, ids=lambda p: p.name)
def test_a_report_without_secrets_stays_as_it_is(folder: Any) -> None:
    """Recorded machines are redacted already; what is told of them holds versions of every shape."""
    whole = diagnose(load_machine(folder), load_knowledge())
    after = redact_report(whole, *WHOSE)
    assert msgspec.structs.replace(after, facts=whole.facts) == whole  # the facts of some hold a made-up address
    assert hide_tokens(whole) == whole


def test_facts_are_redacted_as_in_a_snapshot() -> None:
    whole = planted(base(), ("facts", "python", "executable"), "/home/alice/v/bin/python")
    assert redact_report(whole, *WHOSE).facts == redact(whole.facts, *WHOSE)


@pytest.mark.parametrize(
    "sentence",
    [
        "nvcc is 13.0.88, the driver 580.159.04",
        "nvidia-cublas-cu12 12.4.5.8 and nvidia-curand-cu12 10.3.5.147 are there",
        "cuDNN is 9.1.0.70, torch wants 9.8.0.87",
        "the wheel brings 12.4.5.8",
        "torch 2.6.0+cu124 of git commit 0123456789abcdef0123456789abcdef01234567",
        "the user's owner by hand; user name",
        "PCI 0000:3b:00.0, 12:30:59, sm_90a",
    ],
)
def test_versions_of_every_shape_stay(sentence: str) -> None:
    versions = {"nvidia-cublas-cu12": "12.4.5.8", "nvidia-cudnn-cu12": "9.8.0.87"}
    installed = {n: Distribution(name=n, version=v, location="/s") for n, v in versions.items()}
    whole = report(failing("CUDA001", finding(sentence)))
    whole = msgspec.structs.replace(whole, facts=whole.facts.replace(packages=Packages(distributions=installed)))
    assert redact_report(whole, *WHOSE).verdicts[0].findings[0].message == sentence


def test_a_user_called_like_a_package_is_found_in_paths_only() -> None:
    rich = Words(home="/home/rich", user="rich", spoken=frozenset(["rich"]))
    assert text("it is owned by bob.", Words(user="bob")) == "it is owned by user."
    assert text("pip install rich; /data/rich/x owned by rich", rich) == "pip install rich; /data/user/x owned by user"


COMMANDS = [
    "printf %s /home/alice/x", "printf %s '/home/alice/my x'", 'printf %s "/home/alice/my x"', "export A=/home/alice/x; printf %s $A",
    "export A='/home/alice/a b'; printf %s \"$A\"", 'export A="/home/alice/a b:$B"; printf %s "$A"', "printf %s -I/home/alice/include",
    "printf %s --at=/home/alice/x", """printf %s 'open("/home/alice/x")'""", "printf %s \\'/home/alice/x", "printf %s /home/alice",
    "printf %s '/home/alice'", "printf %s a:/home/alice/x",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads the command")
@pytest.mark.parametrize("line", COMMANDS)
def test_a_redacted_command_still_does_the_same(line: str) -> None:
    shown = command(line, WORDS)
    assert "alice" not in shown
    assert command(shown, WORDS) == shown
    variables = {"HOME": "/home/alice", "PATH": os.environ["PATH"]}
    said = [
        subprocess.run(["bash", "-c", c], env=variables, capture_output=True, check=True).stdout for c in (line, shown)
    ]
    assert said[0] == said[1]


PART = st.sampled_from(["/home/alice", "/x", "'", '"', "\\", "$", "`", "!", "a", "~", " b"])


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads the command")
@settings(deadline=None, max_examples=80)
@example(["/home/alice", "/home/alice"], ":", False)
@given(st.lists(PART, max_size=6), st.sampled_from([" ", ":", "="]), st.booleans())
def test_a_quoted_word_stays_the_same_word(parts: list[str], between: str, double: bool) -> None:
    word = between.join(parts)
    quoted = '"' + re.sub(r'(["\\$`])', r"\\\1", word) + '"' if double else shlex.quote(word)
    line = f"printf %s {quoted}"
    shown = command(line, WORDS)
    assert "alice" not in shown
    variables = {"HOME": "/home/alice", "PATH": os.environ["PATH"]}
    said = [
        subprocess.run(["bash", "-c", c], env=variables, capture_output=True).stdout.decode() for c in (line, shown)
    ]
    assert said == [word, word]


def test_commands_of_notebooks_and_windows_name_the_home_in_their_own_words() -> None:
    notebook = "import os; os.environ['A'] = '/home/alice/x:' + os.environ.get('A', '')"
    environ = {"HOME": "/home/alice", "A": "b"}
    shown = command(notebook, WORDS)
    assert "alice" not in shown
    exec(shown.removeprefix("import os; "), {"os": type("os", (), {"environ": environ})})
    assert environ["A"] == "/home/alice/x:b"
    windows = Words(home="C:\\Users\\alice", user="alice")
    assert command('set "A=C:\\Users\\alice\\x;%A%"', windows) == 'set "A=%USERPROFILE%\\x;%A%"'


def test_commands_of_a_report_are_read_as_commands() -> None:
    remedy = Remedy(
        order="Set /home/alice/x", commands=("export A='/home/alice/my x'",), verify="ls '/home/alice/my x'"
    )
    seen = Evidence(where="/home/alice/log", text="'/home/alice/my x' is gone")
    after = redact_report(report(failing("CUDA001", finding(remedy=remedy, evidence=(seen,)))), *WHOSE)
    assert after.plan[0].commands == ("export A=\"$HOME\"'/my x'",)
    assert after.plan[0].verify == "ls \"$HOME\"'/my x'"
    assert after.plan[0].order == "Set ~/x"
    assert after.verdicts[0].findings[0].evidence[0].text == "'~/my x' is gone"
