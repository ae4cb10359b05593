"""What leaves the machine names nobody, and is still worth reading."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsdoctor.facts import (
    DsConfig,
    DsReport,
    Environment,
    Gpus,
    Host,
    Interface,
    Network,
    Place,
    Programs,
    Python,
    Snapshot,
    Storage,
)
from dsdoctor.facts.programs import Hostfile
from dsdoctor.facts.snapshot import decode, encode
from dsdoctor.redact import redact
from dsdoctor.redact_text import Words, text

WORDS = Words(home="/home/alice", user="alice", hosts={"gandalf": "host", "worker-a1": "node1"})


def clean(snapshot: Snapshot) -> Snapshot:
    return redact(snapshot, "/home/alice", "alice", "gandalf")


def variables(**given: str) -> dict[str, str]:
    section = clean(Snapshot(tool_version="0", environment=Environment(variables=given))).environment
    assert section is not None
    return section.variables


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/home/alice/venv/bin/python", "~/venv/bin/python"),
        ("/home/alice", "~"),
        ("/home/alice/bin:/usr/bin:/home/alice/.local/bin", "~/bin:/usr/bin:~/.local/bin"),
        ("-I/home/alice/include", "-I~/include"),
        ("file:///home/alice/x", "file://~/x"),
        ("/home/alice2/x", "/home/user/x"),
        ("/home/bob/x", "/home/user/x"),
        ("/Users/bob/x", "/Users/user/x"),
        ("C:\\Users\\bob\\x", "C:\\Users\\user\\x"),
        ("C:\\\\Users\\\\bob\\\\x", "C:\\\\Users\\\\user\\\\x"),
        ("/scratch/alice/run", "/scratch/user/run"),
        ("alice@gandalf:~$ ds_report", "user@host:~$ ds_report"),
        ("gandalf.cluster.example.org: out of memory", "host: out of memory"),
        ("GANDALF said", "host said"),
        ("worker-a1: ssh failed", "node1: ssh failed"),
        ("worker-a10 stays", "worker-a10 stays"),
        ("connect to 10.1.2.3 port 29500", "connect to private-ip port 29500"),
        ("connect to 8.8.8.8", "connect to public-ip"),
        ("tcp://192.168.0.7:29500", "tcp://private-ip:29500"),
        ("fe80::1ff:fe23:4567:890a up", "link-local-ip up"),
        ("2001:4860:4860::8888", "public-ip"),
        ("link 3c:ec:ef:12:34:56", "link mac-address"),
        ("GPU-8e33e5b0-1234-5678-9abc-def012345678", "GPU-uuid"),
        ("GPU-8e33e5b0,GPU-9e33e5b0", "GPU-uuid,GPU-uuid"),
        ("MIG-8e33e5b0-1234-5678-9abc-def012345678", "MIG-uuid"),
        ("Serial Number: 1320622003456", "Serial Number: redacted"),
        ("ask bob.smith@example.com now", "ask email now"),
        ("https://bob:hunter2@pypi.example.com/simple", "https://redacted@pypi.example.com/simple"),
        ("token hf_abcdefghijklmnopqrstuv", "token redacted"),
        ("WANDB_API_KEY=0123abcd end", "WANDB_API_KEY=redacted end"),
        ('"password": "hunter2"', '"password": "redacted"'),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer redacted"),
    ],
)
def test_what_is_private_goes(before: str, after: str) -> None:
    assert text(before, WORDS) == after
    assert text(after, WORDS) == after


@pytest.mark.parametrize(
    "value",
    [
        "580.159.04",
        "driver 580.159.04",
        "nvcc 12.4.131",
        "CUDA Version: 12.4.131.0",
        "nvidia-cudnn-cu12==9.1.0.70",
        "nvidia_cublas_cu12-12.4.5.8-py3-none",
        "v1.2.3.4",
        "1.2.3.4.5",
        "127.0.0.1:29500",
        "::1",
        "0.0.0.0",
        "c10::Half and std::vector<at::Tensor> at aten::add",
        "05:17:57",
        "[2026-11-30 03:11:55,618] [WARNING]",
        "https://docs.nvidia.com/deeplearning/nccl",
        "tokens: 512",
        "TOKENIZERS_PARALLELISM=false",
        "/usr/local/cuda-13.0/lib64:/usr/lib/x86_64-linux-gnu",
        "git+https://github.com/deepspeedai/DeepSpeed@v0.19.8",
        "0000:3b:00.0",
        "sm_90;sm_100",
    ],
)
def test_what_is_public_stays(value: str) -> None:
    assert text(value, WORDS) == value


def test_secrets_of_the_environment_go_and_settings_stay() -> None:
    after = variables(
        HF_TOKEN="hf_x",
        WANDB_PROJECT="secret plans",
        AWS_SECRET_ACCESS_KEY="x",
        OPENAI_API_KEY="x",
        TOKENIZERS_PARALLELISM="false",
        CUDA_HOME="/usr/local/cuda",
        PATH="/home/alice/bin:/usr/bin",
        MASTER_ADDR="gandalf.lan",
        SLURM_JOB_NODELIST="rack[01-04]",
        SLURM_JOB_USER="alice",
        CUDA_VISIBLE_DEVICES="0,1",
        HF_HOME="",
    )
    assert after == {
        "HF_TOKEN": "redacted",
        "WANDB_PROJECT": "redacted",
        "AWS_SECRET_ACCESS_KEY": "redacted",
        "OPENAI_API_KEY": "redacted",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_HOME": "/usr/local/cuda",
        "PATH": "~/bin:/usr/bin",
        "MASTER_ADDR": "host",
        "SLURM_JOB_NODELIST": "host",
        "SLURM_JOB_USER": "user",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "HF_HOME": "",
    }
    assert variables(MASTER_ADDR="localhost") == {"MASTER_ADDR": "localhost"}
    assert variables(MASTER_ADDR="10.0.0.9") == {"MASTER_ADDR": "private-ip"}


def full_snapshot() -> Snapshot:
    return Snapshot(
        tool_version="0",
        origin="/home/alice/report.txt",
        host=Host(system="linux", kernel="5.15.0.91", machine="x86_64", distribution="ubuntu"),
        gpus=Gpus(nvml="ok", driver_version="12.4.131.0"),
        python=Python(
            executable="/home/alice/v/bin/python", chosen_because="x", version="3.11.7", prefix="/home/alice/v",
            base_prefix="/usr",
        ),
        network=Network(
            master_addr="10.0.0.1", interfaces=(Interface(name="eth0", addresses=("10.0.0.1", "fe80::1", "127.0.0.1")),)
        ),
        programs=Programs(
            hostfile=Hostfile(
                path="/job/hostfile", exists=True, hosts={"frodo": 8, "10.0.0.2": 8, "localhost": 4},
                bad_lines=("3: merry slot=8",),
            )
        ),
        storage=Storage(places=(Place(path="/home/alice/nvme", role="nvme", named_by="--nvme"),)),
        ds_config=DsConfig(
            path="/home/alice/ds.json", values={"comet": {"api_key": "abc", "project": "frodo"}}, places={"comet": (1, 1)}
        ),
        ds_report=DsReport(source="paste", fault="frodo: no route to gandalf"),
        environment=Environment(variables={"MASTER_ADDR": "frodo", "HOSTNAME": "gandalf"}),
    )  # fmt: skip


def test_every_section_is_walked() -> None:
    after = clean(full_snapshot())
    leaked = [
        word for word in ("alice", "gandalf", "frodo", "merry", "10.0.0", "abc") if word.encode() in encode(after)
    ]
    assert leaked == []
    assert after.programs is not None
    assert after.programs.hostfile is not None
    assert after.programs.hostfile.hosts == {"node1": 8, "node2": 8, "localhost": 4}
    assert after.programs.hostfile.bad_lines == ("3: node3 slot=8",)
    assert after.ds_report is not None
    assert after.ds_report.fault == "node1: no route to host"
    assert after.network is not None
    assert after.network.master_addr == "private-ip"
    assert after.network.interfaces[0].addresses == ("private-ip", "link-local-ip", "127.0.0.1")


def test_versions_and_fixed_words_stay_even_when_they_look_private() -> None:
    after = redact(full_snapshot(), "/home/alice", "ubuntu", "linux")
    assert after.host is not None
    assert after.gpus is not None
    assert (after.host.system, after.host.distribution, after.host.kernel) == ("linux", "ubuntu", "5.15.0.91")
    assert after.gpus.driver_version == "12.4.131.0"


def test_a_redacted_snapshot_is_still_a_snapshot() -> None:
    after = clean(full_snapshot())
    assert decode(encode(after), "x") == after
    assert clean(after) == after


def test_nothing_known_still_takes_out_what_shows_itself() -> None:
    after = redact(full_snapshot(), None, None, None)
    assert b"/home/alice" not in encode(after)
    assert b"frodo" not in encode(after)


def test_a_root_home_does_not_eat_every_path() -> None:
    for home in ("/", "", "relative"):
        assert text("/usr/bin/python", Words(home=home)) == "/usr/bin/python"
    assert text("/root/x:/usr/bin", Words(home="/root", user="root")) == "~/x:/usr/bin"
    assert text("c:/users/Alice/x", Words(home="C:\\Users\\alice")) == "~/x"


PIECES = st.sampled_from(
    ["/home/", "alice", "gandalf", ".lan", "node1", "10.0.0.1", ":", "/", "\\", "@", "=", " ", "token", "Serial: ", "GPU-",
     "8e33e5b0", "fe80::1", "https://", "user", "host", "redacted", "~", "-I", ".", "a", "3c:ec:ef:12:34:56", "hf_", "b" * 20,
     "C:\\Users\\", "-", "key", '"', "private-ip", "version ", "x.example.com"]
)  # fmt: skip
TEXT = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=20)


@settings(deadline=None, max_examples=400)
@given(TEXT, TEXT, TEXT, st.sampled_from(["gandalf", "user", "node7", "a", "x.example.com", ""]))
def test_redacting_twice_changes_nothing_more(words: str, value: str, name: str, hostname: str) -> None:
    before = Snapshot(
        tool_version="0",
        ds_report=DsReport(source=words, fault=value, info={name: value}),
        environment=Environment(variables={"MASTER_ADDR": name, "PATH": value, "X_TOKEN": value}),
        network=Network(master_addr=value),
        programs=Programs(hostfile=Hostfile(path="h", exists=True, hosts={name: 1, "node1": 2}, bad_lines=(words,))),
    )
    once = redact(before, "/home/alice", "alice", hostname)
    assert redact(once, "/home/alice", "alice", hostname) == once


@settings(deadline=None, max_examples=50)
@given(
    st.sampled_from(["a", "-", "a.", "1.", "ab:", "/home", "//", "@", "a@", "token", "key="]), st.integers(1, 20_000)
)
def test_long_texts_stay_linear(piece: str, times: int) -> None:
    assert isinstance(text((piece * times)[:60_000], WORDS), str)


def test_structs_stay_what_they_are() -> None:
    before = full_snapshot()
    after = clean(before)
    assert [type(getattr(after, f)) for f in after.__struct_fields__] == [
        type(getattr(before, f)) for f in before.__struct_fields__
    ]
    assert msgspec.to_builtins(before) == msgspec.to_builtins(full_snapshot())
