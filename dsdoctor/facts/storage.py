"""Places on disk that matter: where offload would swap, where checkpoints and temporary files go."""

from typing import Literal

from dsdoctor.facts.base import Fact

Device = Literal["nvme", "ssd", "rotational", "network", "tmpfs", "overlay", "virtual", "unknown"]


class Place(Fact, frozen=True, kw_only=True):
    path: str
    role: Literal["nvme", "cwd", "tmp", "home"]
    named_by: str  # "--nvme", "offload_param.nvme_path", "default"
    exists: bool = True
    is_directory: bool = True
    writable: bool | None = None
    filesystem: str | None = None  # "ext4"
    device: Device = "unknown"
    total_bytes: int | None = None
    free_bytes: int | None = None
    free_inodes: int | None = None
    o_direct: bool | None = None  # a 4 KiB O_DIRECT write worked
    o_direct_error: str | None = None
    aio: bool | None = None  # io_submit on an O_DIRECT file worked (needs libaio.so.1)
    aio_error: str | None = None
    leftovers: tuple[str, ...] = ()  # zero_stage_3 swap folders of earlier runs
    leftover_bytes: int = 0


class Storage(Fact, frozen=True, kw_only=True):
    places: tuple[Place, ...] = ()

    def place(self, role: str) -> Place | None:
        return next((p for p in self.places if p.role == role), None)
