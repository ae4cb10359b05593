"""Names, interfaces and the rendezvous port. Only this machine is spoken to."""

import os
import socket
from collections.abc import Callable, Iterator

import pytest

from dsdoctor.probes import network
from dsdoctor.probes.system import System

Built = Callable[..., System]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_a_port_that_somebody_listens_on_is_not_free(built: Built, taken: int) -> None:
    found = network.probe(built(MASTER_PORT=str(taken)))
    assert (found.master_port, found.master_port_named_by, found.master_port_free) == (taken, "MASTER_PORT", False)


def test_a_port_is_free_again_and_stays_free_after_the_look(built: Built) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    assert network.probe(built(MASTER_PORT=port)).master_port_free is True
    assert network.probe(built(MASTER_PORT=port)).master_port_free is True


@pytest.mark.parametrize("text", ["", "no number", "0", "70000", "-1", "٢٩٥٠٠", "9" * 5000])
def test_a_port_that_is_none_gives_deepspeed_s_default(built: Built, text: str) -> None:
    found = network.probe(built(MASTER_PORT=text))
    assert (found.master_port, found.master_port_named_by) == (29500, "DeepSpeed's default")


def test_the_default_port_that_the_user_named_is_the_user_s(built: Built) -> None:
    assert network.probe(built(MASTER_PORT="29500")).master_port_named_by == "MASTER_PORT"


@pytest.mark.parametrize(
    ("address", "resolves", "loopback"),
    [("127.0.0.1", True, True), ("::1", True, True), ("192.0.2.7", True, False), ("no such name", False, None)],
)
def test_the_master_s_address(built: Built, address: str, resolves: bool, loopback: bool | None) -> None:
    found = network.probe(built(MASTER_ADDR=address))
    assert (found.master_addr, found.master_resolves, found.master_loopback) == (address, resolves, loopback)


def test_without_a_master_nothing_is_said_of_it(built: Built) -> None:
    found = network.probe(built())
    assert (found.master_addr, found.master_resolves, found.master_loopback) == (None, None, None)


def test_a_look_up_that_does_not_end_is_not_known(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    forever = threading.Event()
    monkeypatch.setattr(network, "LOOKUP_S", 0.05)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: forever.wait(30) and [])
    found = network.probe(built(MASTER_ADDR="node1.example"))
    forever.set()
    assert (found.hostname_resolves, found.master_resolves) == (None, None)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in hostname is a shell script")
@pytest.mark.parametrize(
    ("script", "works"), [("echo 10.0.0.4 172.17.0.1", True), ("echo unknown option >&2; exit 1", False), (":", False)]
)
def test_hostname_with_a_capital_i(built: Built, script: str, works: bool) -> None:
    assert network.probe(built(programs={"hostname": script})).hostname_i_works is works


def test_without_the_program_hostname_it_is_not_known(built: Built) -> None:
    assert network.probe(built()).hostname_i_works is None


@pytest.mark.skipif(not os.path.isdir("/sys/class/net/lo"), reason="needs Linux with a loopback interface")
def test_this_machine_s_loopback(built: Built) -> None:
    loopback = next(i for i in network.probe(System({"PATH": ""})).interfaces if i.loopback)
    assert (loopback.name, loopback.virtual) == ("lo", False)
    assert set(loopback.addresses) <= {"127.0.0.1", "::1"}


def test_infiniband_devices(built: Built) -> None:
    files = {"/sys/class/infiniband/mlx5_1/node_type": "", "/sys/class/infiniband/mlx5_0/node_type": ""}
    assert network.probe(built(files)).infiniband == ("mlx5_0", "mlx5_1")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_answer(built: Built, platform: str) -> None:
    found = network.probe(built(platform=platform))
    assert (found.infiniband, found.hostname_i_works) == ((), None)
