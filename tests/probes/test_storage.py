"""Places for offload: which, on what device, whether direct and asynchronous I/O work there."""

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dsdoctor.facts import DsConfig, Place
from dsdoctor.probes import storage
from dsdoctor.probes.mounts import Mount, device_of, mount_of
from dsdoctor.probes.system import System

Built = Callable[..., System]
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
MOUNTS = """22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
30 22 0:26 / /tmp rw,nosuid - tmpfs tmpfs rw
40 22 0:52 / /scratch\\040space rw - lustre 10.0.0.1@tcp:/scratch rw
41 22 0:53 / /home rw - nfs4 filer:/home rw
42 22 259:5 / /data rw - xfs /dev/nvme1n1 rw
43 42 8:17 / /data/slow rw - ext4 /dev/sdb1 rw
44 22 0:60 / /over rw - overlay overlay rw
45 22 253:0 / /lvm rw - xfs /dev/mapper/vg-fast rw
46 22 0:61 / /btrfs rw - btrfs /dev/nvme2n1p1 rw
47 22 254:0 / /cloud rw - ext4 /dev/vda rw
"""


def disks(tmp_path: Path) -> None:
    """/sys as the kernel lays it out: numbers are links into /sys/devices."""
    by_number = tmp_path / "root" / "sys" / "dev" / "block"
    by_number.mkdir(parents=True)
    rows = {"259:2": "nvme0n1/nvme0n1p2", "259:5": "nvme1n1", "8:17": "sdb/sdb1", "253:0": "dm-0", "254:0": "vda"}
    for number, name in rows.items():
        folder = tmp_path / "root" / "sys" / "devices" / name
        (folder / "slaves").mkdir(parents=True)
        disk = tmp_path / "root" / "sys" / "devices" / name.split("/")[0] / "queue"
        disk.mkdir(exist_ok=True)
        (disk / "rotational").write_text("1\n" if name.startswith("sdb") else "0\n")
        (by_number / number).symlink_to(os.path.join("..", "..", "devices", name))
    (tmp_path / "root" / "sys" / "devices" / "dm-0" / "slaves" / "nvme3n1").mkdir()


@linux_only
@pytest.mark.parametrize(
    ("path", "filesystem", "device"),
    [
        ("/", "ext4", "nvme"),
        ("/var/x", "ext4", "nvme"),
        ("/tmp/x", "tmpfs", "tmpfs"),
        ("/scratch space/run", "lustre", "network"),
        ("/home/me", "nfs4", "network"),
        ("/data", "xfs", "nvme"),
        ("/data/slow/x", "ext4", "rotational"),
        ("/database", "ext4", "nvme"),  # not under /data
        ("/over", "overlay", "overlay"),
        ("/lvm", "xfs", "nvme"),
        ("/btrfs", "btrfs", "nvme"),
        ("/cloud", "ext4", "virtual"),
    ],
)
def test_kind_of_device(built: Built, tmp_path: Path, path: str, filesystem: str, device: str) -> None:
    disks(tmp_path)
    system = built({"/proc/self/mountinfo": MOUNTS})
    mount = mount_of(system, path)
    assert mount is not None
    assert (mount.filesystem, device_of(system, mount)) == (filesystem, device)


def test_a_device_without_a_word_in_sys_is_not_known(built: Built) -> None:
    assert device_of(built(), Mount("/", "ext4", "8:1", "/dev/root")) == "unknown"


def config(**blocks: Mapping[str, object]) -> DsConfig:
    return DsConfig(path="ds.json", values={"zero_optimization": {"stage": 3, **blocks}})


def nvme(places: tuple[Place, ...]) -> list[tuple[str, str, bool]]:
    return [(p.path, p.named_by, p.exists) for p in places if p.role == "nvme"]


def test_the_config_names_the_place(built: Built) -> None:
    offload = {"device": "nvme", "nvme_path": "/local_nvme"}
    found = storage.probe(built(), None, config(offload_param=offload, offload_optimizer=offload)).places
    assert nvme(found) == [("/local_nvme", "zero_optimization.offload_param.nvme_path", False)]


def test_two_different_places_in_the_config(built: Built) -> None:
    blocks: dict[str, dict[str, object]] = {
        "offload_param": {"device": "nvme", "nvme_path": "/a"},
        "offload_optimizer": {"device": "nvme", "nvme_path": "/b"},
    }
    found = storage.probe(built(), None, config(**blocks)).places
    assert [path for path, _, _ in nvme(found)] == ["/a", "/b"]


def test_a_path_without_the_device_nvme_is_not_used_by_deepspeed(built: Built) -> None:
    found = storage.probe(built(), None, config(offload_param={"device": "cpu", "nvme_path": "/a"})).places
    assert nvme(found) == []


def test_the_option_wins_over_the_config(built: Built) -> None:
    offload = {"device": "nvme", "nvme_path": "/local_nvme"}
    found = storage.probe(built(), "/mnt/fast", config(offload_param=offload)).places
    assert nvme(found) == [("/mnt/fast", "--nvme", False)]


def test_a_missing_place_is_not_created(built: Built, tmp_path: Path) -> None:
    storage.probe(built(), "/mnt/fast", None)
    assert not (tmp_path / "root" / "mnt").exists()


def test_a_file_is_no_place(built: Built) -> None:
    place = storage.probe(built({"/mnt/fast": "text"}), "/mnt/fast", None).place("nvme")
    assert place is not None
    assert (place.exists, place.is_directory) == (True, False)


@linux_only
def test_a_trial_leaves_nothing_behind(built: Built, tmp_path: Path) -> None:
    place = storage.probe(built({"/nvme/keep": ""}), "/nvme", None).place("nvme")
    assert place is not None
    assert place.writable is True
    assert place.free_bytes is not None
    assert place.o_direct is True or place.o_direct_error
    assert os.listdir(tmp_path / "root" / "nvme") == ["keep"]


@linux_only
@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs /dev/shm")
def test_this_machine_s_memory_filesystem_is_named(tmp_path: Path) -> None:
    place = storage.probe(System({"PATH": ""}, cwd=os.fspath(tmp_path)), "/dev/shm", None).place("nvme")
    assert place is not None
    assert (place.filesystem, place.device) == ("tmpfs", "tmpfs")


@linux_only
def test_asynchronous_writes_really_work_where_libaio_is(tmp_path: Path) -> None:
    try:
        ctypes.CDLL("libaio.so.1")
    except OSError:
        present = False
    else:
        present = True
    place = storage.probe(System(cwd=os.fspath(tmp_path)), os.fspath(tmp_path), None).place("nvme")
    assert place is not None
    if not place.o_direct:
        pytest.skip("no direct I/O here")
    if present:
        assert (place.aio, place.aio_error) == (True, None)
    else:
        assert place.aio is None
        assert "libaio" in (place.aio_error or "")
    assert os.listdir(tmp_path) == []


@linux_only
def test_a_trial_that_could_not_be_made_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", os.fspath(tmp_path / "gone"))
    place = storage.probe(System(cwd=os.fspath(tmp_path)), os.fspath(tmp_path), None).place("nvme")
    assert place is not None
    if not place.o_direct:
        pytest.skip("no direct I/O here")
    assert place.aio is None
    assert place.aio_error


def test_swap_files_of_an_earlier_run(built: Built) -> None:
    swap = "/nvme/zero_stage_3/optimizer/rank0"
    files = {f"{swap}/1.tensor.swp": "x" * 4096, f"{swap}/2.tensor.swp": "x" * 1000, "/nvme/other": "x"}
    place = storage.probe(built(files), "/nvme", None).place("nvme")
    assert place is not None
    assert [os.path.basename(folder) for folder in place.leftovers] == ["zero_stage_3"]
    assert place.leftover_bytes == 5096


def test_the_other_places(built: Built) -> None:
    files = {"/project/x": "", "/home/me/x": "", "/fast/tmp/x": ""}
    system = built(files, cwd="/project", HOME="/home/me", TMPDIR="/fast/tmp")
    found = {place.role: place for place in storage.probe(system, None, None).places}
    assert (found["cwd"].path, found["tmp"].path, found["home"].path) == ("/project", "/fast/tmp", "/home/me")
    assert found["cwd"].o_direct is None  # nothing is written there


def test_without_home_there_is_no_such_place(built: Built) -> None:
    assert storage.probe(built(), None, None).place("home") is None


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_answer(built: Built, platform: str) -> None:
    place = storage.probe(built({"/nvme/x": ""}, platform=platform), "/nvme", None).place("nvme")
    assert place is not None
    assert (place.device, place.filesystem, place.aio) == ("unknown", None, None)
