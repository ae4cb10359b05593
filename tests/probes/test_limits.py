"""ulimits and the kernel's asynchronous requests."""

from collections.abc import Callable

import pytest

from dsdoctor.facts import UNLIMITED
from dsdoctor.probes import limits
from dsdoctor.probes.system import System

Built = Callable[..., System]


def test_the_kernel_s_asynchronous_requests(built: Built) -> None:
    found = limits.probe(built({"/proc/sys/fs/aio-max-nr": "65536\n", "/proc/sys/fs/aio-nr": "1024\n"}))
    assert (found.aio_max_nr, found.aio_nr) == (65536, 1024)


def test_without_proc_they_are_not_known(built: Built) -> None:
    found = limits.probe(built())
    assert (found.aio_max_nr, found.aio_nr) == (None, None)


def test_limits_are_those_of_this_process(built: Built) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        files = limits.probe(built()).open_files
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert files is not None
    assert files.soft == soft - 1


def test_no_limit_has_a_name_of_its_own(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (8 * 1024**2, resource.RLIM_INFINITY))
    locked = limits.probe(built()).memlock_bytes
    assert locked is not None
    assert (locked.soft, locked.hard) == (8 * 1024**2, UNLIMITED)


def test_windows_has_no_such_limits(built: Built) -> None:
    found = limits.probe(built(platform="win32"))
    assert (found.memlock_bytes, found.open_files, found.processes) == (None, None, None)
