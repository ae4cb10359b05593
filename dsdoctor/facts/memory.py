"""Host RAM, swap, cgroup limits and shared memory. All sizes in bytes."""

from typing import Literal

from dsdoctor.facts.base import Fact


class Memory(Fact, frozen=True, kw_only=True):
    total_bytes: int
    available_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None
    cgroup_version: Literal[1, 2] | None = None
    cgroup_limit_bytes: int | None = None  # None: no limit (or no cgroup)
    cgroup_used_bytes: int | None = None
    cgroup_oom_kills: int | None = None
    shm_bytes: int | None = None  # size of /dev/shm
    shm_free_bytes: int | None = None
    shm_leftovers: tuple[str, ...] = ()  # nccl-*, torch_* files that nobody removed

    @property
    def usable_bytes(self) -> int:
        """RAM that a process here may take: the smaller of what is available and what is left of the cgroup limit."""
        free = self.available_bytes if self.available_bytes is not None else self.total_bytes
        if self.cgroup_limit_bytes is None:
            return free
        return min(free, max(0, self.cgroup_limit_bytes - (self.cgroup_used_bytes or 0)))
