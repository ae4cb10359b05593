"""What kind of storage a path lies on: /proc/self/mountinfo and /sys/dev/block."""

import os
import re

import msgspec

from dsdoctor.facts.storage import Device
from dsdoctor.probes.system import System

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "glusterfs", "ceph", "wekafs", "afs", "9p", "fuse.sshfs", "fuse.gcsfuse", "fuse.s3fs", "fuse.juicefs", "fuse.rclone", "fuse.mountpoint-s3", "fuse.glusterfs", "fuse.ceph", "pvfs2", "orangefs", "panfs"})  # fmt: skip
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True):
    """One line of mountinfo."""

    point: str
    filesystem: str
    number: str  # "259:1"
    source: str


def mount_of(system: System, path: str) -> Mount | None:
    """The mount that ``path`` lies on: the one with the longest mount point above it; the last of equals wins."""
    best: Mount | None = None
    for line in (system.read("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        if len(fields) < 5 or len(tail) < 2:
            continue
        point = _OCTAL.sub(lambda m: chr(int(m.group(1), 8)), fields[4])
        above = path == point or path.startswith(point.rstrip("/") + "/")
        if above and (best is None or len(point) >= len(best.point)):
            best = Mount(point, tail[0], fields[2], tail[1])
    return best


def device_of(system: System, mount: Mount) -> Device:
    """NVMe, SSD, rotational ... of a mount."""
    if mount.filesystem in NETWORK:
        return "network"
    if mount.filesystem in ("tmpfs", "ramfs"):
        return "tmpfs"
    if mount.filesystem == "overlay":
        return "overlay"
    block = f"/sys/dev/block/{mount.number}"
    try:
        name = os.path.basename(os.readlink(system.path(block)))
    except OSError:  # btrfs and ZFS have numbers of their own
        name = os.path.basename(mount.source)
        block = f"/sys/class/block/{name}"
    below = system.names(f"{block}/slaves")  # of LVM, LUKS and software RAID
    if all(part.startswith("nvme") for part in below or (name,)):
        return "nvme"
    if name.startswith(("vd", "xvd", "loop", "zram")):
        return "virtual"
    rotational = (system.read(f"{block}/queue/rotational") or system.read(f"{block}/../queue/rotational") or "").strip()
    return {"0": "ssd", "1": "rotational"}.get(rotational, "unknown")  # type: ignore[return-value]
