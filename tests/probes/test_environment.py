"""Only variables that matter are taken."""

from collections.abc import Callable

from dsdoctor.facts import Snapshot
from dsdoctor.facts.snapshot import decode, encode
from dsdoctor.probes import environment
from dsdoctor.probes.system import System

Built = Callable[..., System]


def test_known_names_and_prefixes_are_taken_in_order(built: Built) -> None:
    found = environment.probe(built(NCCL_DEBUG="INFO", CXX="g++-12", DS_SKIP_CUDA_CHECK="1", PATH="/bin"))
    assert list(found.variables.items()) == [
        ("CXX", "g++-12"),
        ("DS_SKIP_CUDA_CHECK", "1"),
        ("NCCL_DEBUG", "INFO"),
        ("PATH", "/bin"),
    ]


def test_the_rest_of_the_user_s_environment_is_left_alone(built: Built) -> None:
    found = environment.probe(built(PRIVATE_NOTE="hello", AWS_SECRET="x", MY_CUDA_HOME="/x"))
    assert set(found.variables) == {"PATH"}


def test_a_set_but_empty_variable_is_not_an_unset_one(built: Built) -> None:
    found = environment.probe(built(CUDA_VISIBLE_DEVICES=""))
    assert found.variables["CUDA_VISIBLE_DEVICES"] == ""


def test_bytes_that_are_no_text_survive_a_snapshot(built: Built) -> None:
    found = environment.probe(built(CUDA_HOME="/opt/cuda\udcff"))
    snapshot = Snapshot(tool_version="0", environment=found)
    assert decode(encode(snapshot), "a test").environment == found
    assert found.get("CUDA_HOME") == "/opt/cuda\ufffd"


def test_a_huge_value_is_cut(built: Built) -> None:
    assert len(environment.probe(built(LD_LIBRARY_PATH="/x:" * 100_000)).get("LD_LIBRARY_PATH")) < 10_000
