"""What a run leaves outside its private folder, and its removal: swap files, shared memory, dead locks of builds."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator

from dsdoctor.probes import memory
from dsdoctor.probes.system import System

SHM = "/dev/shm"
# DeepSpeed 0.19.8 ops/csrc/cpu/comm/shm.cpp: 69 MB a rank, "deepspeed_allreduce_buffer_UID_ADDRESS_PORT_RANK", never unlinked.
_OURS = r"deepspeed_allreduce_buffer_\d+_127\.0\.0\.1_{port}_\d+"


class Clearing:
    """Names what a run made and removes it. Only what is surely its own: others may share /dev/shm from another container."""

    def __init__(self, system: System, port: int, swap: str | None) -> None:
        self._system, self._swap = system, swap
        self._port_name = re.compile(_OURS.format(port=port))
        self._segments: set[str] = set()

    def note(self, pids: Iterable[int]) -> None:
        """Remember the shared memory of processes that still live."""
        if self._system.linux and self._system.real:
            self._segments |= memory.segments_of(self._system, map(str, pids))

    def clear(self) -> tuple[str, ...]:
        """Remove all of it; what stays is told. Call it when every process of the run has ended."""
        kept: list[str] = []
        for path in self._shared():
            with contextlib.suppress(OSError):
                os.unlink(path)
            kept += [path] if os.path.lexists(path) else []
        if self._swap is not None:
            shutil.rmtree(self._swap, ignore_errors=True)
            kept += [self._swap] if os.path.lexists(self._swap) else []
        return tuple(kept)

    def _shared(self) -> Iterator[str]:
        for name in self._system.names(SHM) if self._system.real else ():
            if name in self._segments or self._port_name.fullmatch(name):
                yield os.path.join(SHM, name)
