"""The place for NVMe offload: judged only when it was asked for."""

from typing import Any

import pytest
from dsdoctor_checks import storage as family

from dsdoctor import healthy as h
from dsdoctor.model import Check, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

CHECKS = checks_of(family)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.code)
def test_a_good_place_is_quiet(check: Check) -> None:
    assert verdict(check, h.healthy(h.storage(h.place()))).status is Status.PASSED


@pytest.mark.parametrize("check", CHECKS[1:], ids=lambda c: c.code)
def test_nobody_asked_for_nvme(check: Check) -> None:
    assert verdict(check, h.healthy()).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("check", "changes", "cause", "word"),
    [
        (family.place_exists, {"exists": False}, "nvme-path-missing", "does not exist"),
        (family.place_exists, {"is_directory": False}, "nvme-path-missing", "not a folder"),
        (family.place_writable, {"writable": False}, "nvme-path-permission", "cannot be written"),
        (family.place_fast, {"device": "tmpfs", "filesystem": "tmpfs"}, "nvme-no-odirect", "memory, not a disk"),
        (family.place_fast, {"device": "rotational"}, "nvme-no-odirect", "rotating"),
        (family.place_direct, {"o_direct": False, "o_direct_error": "Invalid argument"}, "nvme-no-odirect", "Invalid argument"),
        (family.place_async, {"aio": False, "aio_error": "io_submit: EINVAL"}, "nvme-no-odirect", "io_submit: EINVAL"),
        (family.place_roomy, {"free_bytes": h.GIB // 2}, "nvme-disk-full", "0.5 GiB"),
        (family.place_roomy, {"free_inodes": 12}, "nvme-disk-full", "12 inodes"),
        (family.place_clean, {"leftovers": ("/mnt/nvme/zero_stage_3",), "leftover_bytes": 3 * h.GIB}, "nvme-buffer-mismatch", "3.0 GiB"),
    ],
)  # fmt: skip
def test_a_bad_place_is_named_with_its_path(check: Check, changes: dict[str, Any], cause: str, word: str) -> None:
    found = verdict(check, h.healthy(h.storage(h.place(**changes))))
    assert found.status is Status.FAILED, found.reason
    assert found.findings[0].cause == cause
    assert word in found.findings[0].message
    assert "/mnt/nvme" in found.findings[0].message
    assert found.findings[0].remedy is not None


def test_little_room_warns_and_no_room_blocks() -> None:
    def severity(free: int) -> Severity:
        return verdict(family.place_roomy, h.healthy(h.storage(h.place(free_bytes=free)))).severity

    assert (severity(10 * h.GIB), severity(h.GIB // 2)) == (Severity.WARNING, Severity.ERROR)


def test_an_untried_write_is_unknown_and_a_missing_place_is_told_once() -> None:
    untried = h.healthy(h.storage(h.place(o_direct=None, aio=None, writable=None)))
    for check in (family.place_direct, family.place_async, family.place_writable):
        assert verdict(check, untried).status is Status.UNKNOWN
    gone = h.healthy(h.storage(h.place(exists=False, writable=False)))
    assert verdict(family.place_writable, gone).status is Status.NOT_APPLICABLE


def test_nvme_without_a_path_in_the_config() -> None:
    config = h.ds_config({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}})
    found = verdict(family.place_exists, h.healthy(config))
    assert found.findings[0].subject == "zero_optimization.offload_optimizer.nvme_path"


def test_the_kernels_requests_are_used_up() -> None:
    used = h.healthy(h.storage(h.place()), h.limits(aio_max_nr=65536, aio_nr=65500))
    found = verdict(family.requests_left, used)
    assert "36 are left" in found.findings[0].message
    assert found.findings[0].cause == "aio-max-nr"
