"""Names, interfaces and ports that a rendezvous needs."""

from dsdoctor.facts.base import Fact


class Interface(Fact, frozen=True, kw_only=True):
    name: str
    up: bool | None = None
    addresses: tuple[str, ...] = ()
    loopback: bool = False
    virtual: bool = False  # docker0, veth, virbr, br-, tun


class Network(Fact, frozen=True, kw_only=True):
    hostname_resolves: bool | None = None
    hostname_loopback: bool | None = None  # resolves to 127.* or ::1 only
    hostname_i_works: bool | None = None  # `hostname -I`, which DeepSpeed's multi-node launcher calls
    interfaces: tuple[Interface, ...] = ()
    master_addr: str | None = None
    master_resolves: bool | None = None
    master_loopback: bool | None = None
    master_port: int = 29500
    master_port_named_by: str = "DeepSpeed's default"
    master_port_free: bool | None = None
    infiniband: tuple[str, ...] = ()  # devices under /sys/class/infiniband
