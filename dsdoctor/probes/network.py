"""Names, interfaces and the port of a rendezvous. Nothing leaves the machine but name look-ups."""

import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import TypeVar

from dsdoctor.facts import Interface, Network
from dsdoctor.probes.system import System

LOOKUP_S = 3.0
DEFAULT_PORT = 29500  # DeepSpeed's launcher: deepspeed/constants.py TORCH_DISTRIBUTED_DEFAULT_PORT
_VIRTUAL = ("docker", "veth", "virbr", "br-", "tun", "tap", "cni", "flannel", "cali", "wg")
T = TypeVar("T")


def probe(system: System) -> Network:
    """Facts of the network as a rendezvous would meet it."""
    own = _within(lambda: _addresses(None))
    master = system.env.get("MASTER_ADDR")
    master_addresses = _within(lambda: _addresses(master)) if master else None
    text = system.env.get("MASTER_PORT", "")
    named = text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536
    port = int(text[:6]) if named else DEFAULT_PORT
    works = system.run(["hostname", "-I"], 3.0) if system.linux and system.which("hostname") else None
    return Network(
        hostname_resolves=None if own is None else bool(own),
        hostname_loopback=all(map(_loopback, own)) if own else None,
        hostname_i_works=None if works is None else works.ok and bool(works.stdout.strip()),
        interfaces=tuple(_interfaces(system)),
        master_addr=master,
        master_resolves=None if master_addresses is None else bool(master_addresses),
        master_loopback=all(map(_loopback, master_addresses)) if master_addresses else None,
        master_port=port,
        master_port_named_by="MASTER_PORT" if named else "DeepSpeed's default",
        master_port_free=_free(port),
        infiniband=system.names("/sys/class/infiniband"),
    )


def _within(action: Callable[[], T]) -> T | None:
    """The result of ``action``, or None when it takes longer than a look-up may."""
    result: list[T] = []
    thread = threading.Thread(target=lambda: result.append(action()), daemon=True)
    thread.start()
    thread.join(LOOKUP_S)
    return result[0] if result else None


def _addresses(name: str | None) -> list[str]:
    """Addresses of ``name``, or of this host's own name; empty when it does not resolve."""
    try:
        return sorted({str(row[4][0]) for row in socket.getaddrinfo(name or socket.gethostname(), None)})
    except (OSError, UnicodeError):
        return []


def _loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _free(port: int) -> bool | None:
    """True when nobody listens on ``port`` at any address of this machine. Binds, never listens; None: not allowed."""
    try:
        with socket.socket() as trial:
            if os.name == "posix":  # connections in TIME_WAIT do not count; on Windows this word would take a used port
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(("", port))
    except PermissionError:
        return None
    except OSError:
        return False
    return True


def _interfaces(system: System) -> list[Interface]:
    try:
        names = [name for _, name in socket.if_nameindex()]
    except (OSError, AttributeError):
        return []
    return [
        Interface(
            name=name,
            up=_up(system, name),
            addresses=_address(name),
            loopback=name in ("lo", "lo0"),
            virtual=name.startswith(_VIRTUAL),
        )
        for name in names
    ]


def _up(system: System, name: str) -> bool | None:
    state = (system.read(f"/sys/class/net/{name}/operstate") or "").strip()
    return {"up": True, "down": False, "unknown": True if name == "lo" else None}.get(state)


def _address(name: str) -> tuple[str, ...]:
    """The IPv4 address of an interface (Linux: ioctl SIOCGIFADDR); empty where it has none or cannot be asked."""
    try:
        import fcntl
    except ImportError:
        return ()
    request = struct.pack("256s", name.encode()[:15])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe_socket:
            return (socket.inet_ntoa(fcntl.ioctl(probe_socket.fileno(), 0x8915, request)[20:24]),)
    except OSError:
        return ()
