"""Checks of names, ports, interfaces and launch variables: what the processes of one run need to find each other."""

from collections.abc import Iterator

from dsdoctor.api import (
    Environment,
    Finding,
    Gpus,
    Network,
    Prescriber,
    Purpose,
    Remedy,
    Severity,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.launch import (
    address_found,
    hostfile_fits,
    hostfile_readable,
    launch_programs,
    numactl_there,
    ranks_complete,
    ranks_fit_gpus,
    slurm_launcher,
    visible_devices_kept,
)

__all__ = [
    "address_found", "hostfile_fits", "hostfile_readable", "launch_programs", "numactl_there", "ranks_complete",
    "ranks_fit_gpus", "slurm_launcher", "visible_devices_kept",
]  # fmt: skip
_SKIPPED = {"lo", "docker0"}


@check("NET001", "The rendezvous port is free", causes=["port-in-use"], severity=Severity.WARNING)
def port_free(network: Network, environment: Environment | None) -> Iterator[Finding]:
    """The deepspeed launcher takes port 29500 for every run, unless --master_port stands before the script's name."""
    if known(network.master_port_free, f"whether port {network.master_port} is free"):
        return
    if environment is not None and environment.get("RANK") not in ("", "0"):
        not_applicable("only rank 0 opens the port")
    other = network.master_port + 1 if network.master_port < 65535 else 29501
    yield Finding(
        message=f"port {network.master_port} ({network.master_port_named_by}) is in use: a second run on it stops with EADDRINUSE",
        cause="port-in-use",
        subject=str(network.master_port),
        remedy=Remedy(
            order="Start the run on another port, or end the run that holds this one",
            commands=(f"deepspeed --master_port {other} train.py",),
            note="--master_port must stand before the script's name, else the script gets it",
        ),
    )


@check("NET002", "This machine's own name resolves", causes=["master-addr-empty"], severity=Severity.WARNING)
def own_name(network: Network, prescriber: Prescriber) -> Iterator[Finding]:
    """gloo and the launchers look up the host's own name. When that fails, the start hangs or dies."""
    if known(network.hostname_resolves, "whether the host name resolves"):
        return
    sudo = "" if prescriber.root else "sudo "
    yield Finding(
        message="the host's own name does not resolve to an address",
        cause="master-addr-empty",
        remedy=Remedy(
            order="Add the name to /etc/hosts",
            commands=(f'echo "127.0.1.1 $(hostname)" | {sudo}tee -a /etc/hosts',),
            safety="careful",
            verify='getent hosts "$(hostname)"',
        ),
    )


@check(
    "NET003", "Other nodes can reach this machine by its name", causes=["master-unreachable"], severity=Severity.WARNING
)
def name_not_loopback(network: Network, purpose: Purpose | None) -> Iterator[Finding]:
    """With several nodes the name must lead to an address that the others can reach, not to 127.0.0.1."""
    several = purpose is not None and purpose.name == "multi-node"
    if not several:
        not_applicable("training on several nodes was not asked for")
    if network.master_loopback or (network.master_addr is None and network.hostname_loopback):
        what = f"MASTER_ADDR ({network.master_addr})" if network.master_addr else "the host's name"
        yield Finding(
            message=f"{what} leads to a loopback address, which other nodes cannot reach",
            cause="master-unreachable",
            remedy=Remedy(
                order="Give the launcher an address that all nodes reach",
                commands=("deepspeed --hostfile hostfile --master_addr <address of the first node> train.py",),
                safety="manual",
            ),
        )


@check(
    "NET004",
    "NCCL_SOCKET_IFNAME names an interface that is there",
    causes=["nccl-ifname-docker0-lo", "nccl-wrong-interface"],
    severity=Severity.WARNING,
)
def interface_named(network: Network, environment: Environment, prescriber: Prescriber) -> Iterator[Finding]:
    """A name that fits no interface ends NCCL's start; ^docker0 alone makes NCCL take lo."""
    value = environment.get("NCCL_SOCKET_IFNAME").strip()
    if not value:
        not_applicable("NCCL_SOCKET_IFNAME is not set")
    names = [name for name in value.lstrip("^=").split(",") if name]
    problem = _exclusion(names) if value.startswith("^") else _inclusion(value, names, network)
    if problem is None:
        return
    yield Finding(
        message=f"NCCL_SOCKET_IFNAME is {value}: {problem}",
        cause="nccl-ifname-docker0-lo" if value.startswith("^") or _SKIPPED & set(names) else "nccl-wrong-interface",
        subject="NCCL_SOCKET_IFNAME",
        remedy=Remedy(
            order="Take the variable away, or name the interface that all nodes share",
            commands=(prescriber.unset("NCCL_SOCKET_IFNAME"),),
            note=f"interfaces that are up here: {', '.join(_up(network)) or 'none seen'}",
        ),
    )


def _exclusion(names: list[str]) -> str | None:
    return None if "lo" in names else "the list of interfaces to leave out lacks lo, so NCCL may take lo"


def _inclusion(value: str, names: list[str], network: Network) -> str | None:
    bad = sorted(_SKIPPED & set(names))
    if bad:
        return f"{', '.join(bad)} does not lead to another machine"
    exact = value.startswith("=")
    there = [i.name for i in network.interfaces]
    if not there or any(t == n if exact else t.startswith(n) for t in there for n in names):
        return None
    return f"no interface here has that name (there are {', '.join(there)})"


def _up(network: Network) -> list[str]:
    return [i.name for i in network.interfaces if i.up and not i.loopback and not i.virtual]


@check("NET005", "NCCL may use its fast paths", causes=["p2p-broken-consumer-gpu"], severity=Severity.INFO)
def nccl_unhindered(environment: Environment, gpus: Gpus | None, prescriber: Prescriber) -> Iterator[Finding]:
    """Variables that once worked around a fault stay in profiles and make every later run slow."""
    if gpus is not None and len(gpus.devices) < 2 and not environment.get("NCCL_IB_DISABLE"):
        not_applicable("there are not two GPUs for NCCL to connect")
    meaning = {
        "NCCL_P2P_DISABLE": "GPUs exchange data through host memory",
        "NCCL_IB_DISABLE": "nodes talk over sockets, not InfiniBand",
        "NCCL_SHM_DISABLE": "processes talk over sockets, not shared memory",
    }
    for name, effect in meaning.items():
        if environment.on(name):
            yield Finding(
                message=f"{name} is {environment.get(name)}: {effect}",
                cause="p2p-broken-consumer-gpu",
                subject=name,
                remedy=Remedy(order="Take it away, unless a run hangs without it", commands=(prescriber.unset(name),)),
            )


@check(
    "NET006",
    "There is an interface that leads to other nodes",
    causes=["nccl-wrong-interface"],
    severity=Severity.WARNING,
)
def interface_there(network: Network, purpose: Purpose | None) -> Iterator[Finding]:
    """Several nodes need an interface beside loopback and container bridges."""
    if purpose is None or purpose.name != "multi-node":
        not_applicable("training on several nodes was not asked for")
    if network.interfaces and not _up(network):
        yield Finding(
            message=f"only {', '.join(i.name for i in network.interfaces)} are there, and none of them leads to another node",
            cause="nccl-wrong-interface",
            remedy=Remedy(order="Give the container the host's network (--network host)", safety="manual"),
        )
