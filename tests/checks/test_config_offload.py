"""NVMe offload: what the disk takes, buffers, and a second path."""

from typing import Any

from dsdoctor.facts import Place, Storage
from dsdoctor.model import Severity
from tests.checks.config_cases import config, found, one


def swapping(*, aio: dict[str, Any] | None = None, **optimizer: Any) -> Any:
    zero = {
        "stage": 3,
        "offload_param": {"device": "nvme", "nvme_path": "/a"},
        "offload_optimizer": {"device": "nvme", "nvme_path": "/b", **optimizer},
    }
    return config(zero_optimization=zero, aio=aio or {})


def test_blocks_are_aligned_for_direct_io() -> None:
    assert "multiples of 4096" in one("CFG056", swapping(aio={"block_size": 100_000})).message
    assert one("CFG056", swapping(aio={"block_size": 4096})).severity is Severity.WARNING
    assert "1 or more" in one("CFG056", swapping(aio={"queue_depth": 0})).message
    assert not found("CFG056", swapping(aio={"block_size": 1048576, "queue_depth": 32}))
    assert not found("CFG056", config(aio={"block_size": 100_000}))


def test_adam_wants_four_buffers() -> None:
    assert "swaps 4 tensors" in one("CFG057", swapping(buffer_count=2)).message
    assert not found("CFG057", swapping(buffer_count=4))


def test_the_second_path_is_judged_too() -> None:
    first = Place(path="/a", role="nvme", named_by="offload_param.nvme_path", writable=True)
    gone = Place(path="/b", role="nvme", named_by="offload_optimizer.nvme_path", exists=False, is_directory=False)
    finding = one("CFG058", swapping(), Storage(places=(first, gone)))
    assert finding.cause == "nvme-path-missing"
    assert "/b, which does not exist" in finding.message
    locked = Place(path="/b", role="nvme", named_by="offload_optimizer.nvme_path", writable=False)
    assert one("CFG058", swapping(), Storage(places=(first, locked))).cause == "nvme-path-permission"
    assert not found("CFG058", swapping(), Storage(places=(gone,)))
