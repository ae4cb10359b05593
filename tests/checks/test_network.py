"""Ports, names, interfaces, hostfiles and rank variables, as a launch meets them."""

from typing import Any

import pytest
from dsdoctor_checks import network as family

from dsdoctor import healthy as h
from dsdoctor.facts import Hostfile, Interface, Snapshot
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

NODES = h.purpose(name="multi-node", because="--purpose")


def only(check: Check, snapshot: Snapshot) -> Finding:
    found = verdict(check, snapshot)
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    return finding


@pytest.mark.parametrize("purpose", [h.purpose(), NODES], ids=["one-gpu", "many-nodes"])
@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check, purpose: Any) -> None:
    found = verdict(check, h.healthy(purpose))
    assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.status, found.reason, found.findings)


def test_a_port_in_use_names_the_next_one() -> None:
    finding = only(family.port_free, h.healthy(h.network(master_port_free=False)))
    assert "29500" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("deepspeed --master_port 29501 train.py",)
    assert verdict(family.port_free, h.healthy(h.network(master_port_free=None))).status is Status.UNKNOWN


def test_names_that_lead_nowhere() -> None:
    assert "does not resolve" in only(family.own_name, h.healthy(h.network(hostname_resolves=False))).message
    loop = h.healthy(h.network(hostname_loopback=True), NODES)
    assert only(family.name_not_loopback, loop).cause == "master-unreachable"


@pytest.mark.parametrize(
    ("value", "cause"),
    [("docker0", "nccl-ifname-docker0-lo"), ("lo", "nccl-ifname-docker0-lo"), ("^docker0", "nccl-ifname-docker0-lo"), ("ib0", "nccl-wrong-interface"), ("=eth", "nccl-wrong-interface")],
)  # fmt: skip
def test_interface_names_that_nccl_stumbles_over(value: str, cause: str) -> None:
    finding = only(family.interface_named, h.healthy(h.environment(NCCL_SOCKET_IFNAME=value)))
    assert finding.cause == cause
    assert value in finding.message
    assert finding.remedy is not None
    assert "eth0" in (finding.remedy.note or "")


@pytest.mark.parametrize("value", ["eth0", "eth", "=eth0", "^docker0,lo"])
def test_interface_names_that_nccl_takes(value: str) -> None:
    assert verdict(family.interface_named, h.healthy(h.environment(NCCL_SOCKET_IFNAME=value))).status is Status.PASSED


def test_slow_paths_are_told_and_nothing_more() -> None:
    slow = h.healthy(h.gpus(2), h.environment(NCCL_P2P_DISABLE="1", NCCL_IB_DISABLE="0"))
    found = verdict(family.nccl_unhindered, slow)
    assert (found.severity, [f.subject for f in found.findings]) == (Severity.INFO, ["NCCL_P2P_DISABLE"])


def test_only_loopback_in_a_container() -> None:
    alone = h.network(
        interfaces=(Interface(name="lo", up=True, loopback=True), Interface(name="docker0", up=True, virtual=True))
    )
    assert "docker0" in only(family.interface_there, h.healthy(alone, NODES)).message


@pytest.mark.parametrize("value", ["", "node-that-is-not"])
def test_master_addr_empty_or_unknown(value: str) -> None:
    sick = h.healthy(h.environment(MASTER_ADDR=value), h.network(master_addr=value, master_resolves=False))
    assert only(family.address_found, sick).cause == "master-addr-empty"


def test_rank_variables_half_set() -> None:
    finding = only(family.ranks_complete, h.healthy(h.environment(RANK="0", WORLD_SIZE="1")))
    assert "LOCAL_RANK, MASTER_ADDR, MASTER_PORT not" in finding.message
    assert finding.remedy is not None
    assert "export MASTER_PORT=29500" in finding.remedy.commands
    whole = h.environment(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    assert verdict(family.ranks_complete, h.healthy(whole)).status is Status.NOT_APPLICABLE
    port = h.environment(MASTER_PORT="29501")
    assert verdict(family.ranks_complete, h.healthy(port)).status is Status.NOT_APPLICABLE


def test_a_local_rank_without_a_gpu() -> None:
    finding = only(family.ranks_fit_gpus, h.healthy(h.environment(LOCAL_RANK="1")))
    assert "cuda:1" in finding.message
    assert (
        verdict(family.ranks_fit_gpus, h.healthy(h.environment(LOCAL_RANK="1"), h.torch_live(2))).status
        is Status.PASSED
    )


def test_hostfiles() -> None:
    def with_file(**changes: Any) -> Snapshot:
        return h.healthy(h.programs(hostfile=Hostfile(**{"path": "hosts", "exists": True, **changes})))

    assert "3: node1 slot=8" in only(family.hostfile_readable, with_file(bad_lines=("3: node1 slot=8",))).message
    assert only(family.hostfile_readable, with_file(exists=False)).cause == "hostfile-missing-silent-fallback"
    default = with_file(path="/job/hostfile", exists=False)
    assert verdict(family.hostfile_readable, default).status is Status.NOT_APPLICABLE
    assert "slots=1" in str(only(family.hostfile_fits, with_file(hosts={"localhost": 4})).remedy)


def test_pdsh_matters_with_more_than_one_host() -> None:
    two = Hostfile(path="hosts", exists=True, hosts={"a": 8, "b": 8})
    finding = only(family.launch_programs, h.healthy(h.programs("pdsh", hostfile=two)))
    assert finding.cause == "pdsh-missing"
    assert "2 hosts" in finding.message
    one = Hostfile(path="hosts", exists=True, hosts={"a": 8})
    assert verdict(family.launch_programs, h.healthy(h.programs("pdsh", hostfile=one))).status is Status.NOT_APPLICABLE


def test_numactl_is_only_mentioned() -> None:
    assert verdict(family.numactl_there, h.healthy(h.programs("numactl"))).severity is Severity.INFO


def test_the_old_launcher_and_visible_devices() -> None:
    old = h.deepspeed(version="0.14.0")
    finding = only(family.visible_devices_kept, h.healthy(old, h.environment(CUDA_VISIBLE_DEVICES="4,5")))
    assert "4,5" in finding.message
    slurm = h.healthy(old, h.environment(CUDA_VISIBLE_DEVICES="4,5", SLURM_JOB_ID="7"))
    assert only(family.visible_devices_kept, slurm).cause == "cuda-visible-devices-slurm"
    assert (
        verdict(family.visible_devices_kept, h.healthy(old, h.environment(CUDA_VISIBLE_DEVICES="0,1"))).status
        is Status.PASSED
    )
    assert (
        verdict(family.visible_devices_kept, h.healthy(h.environment(CUDA_VISIBLE_DEVICES="4,5"))).status
        is Status.PASSED
    )


def test_pdsh_inside_slurm() -> None:
    two = Hostfile(path="hosts", exists=True, hosts={"a": 8, "b": 8})
    inside = h.healthy(h.host(scheduler="slurm", inside_job=True), h.programs(hostfile=two))
    assert only(family.slurm_launcher, inside).cause == "slurm-venv-missing"
