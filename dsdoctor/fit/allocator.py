"""torch's caching allocator for CUDA memory, as far as it decides what nvidia-smi shows.

Its rules (c10/cuda/CUDACachingAllocator.cpp): a tensor takes the smallest free block that holds it, which is split when more
than 1 MiB is left; else a new segment is asked of the driver, of the tensor's size rounded up to 2 MiB, or 20 MiB for tensors
below 10 MiB. Freed blocks melt into free neighbours of their segment and stay with the process. Tensors up to 1 MiB come
from a pool of their own, which is small and left out.
"""

import bisect
from typing import Final

MIB: Final = 1 << 20
SMALL: Final = MIB
SHARED_SEGMENT: Final = 20 * MIB
OWN_SEGMENT: Final = 10 * MIB


class Block:
    """A piece of a segment; its neighbours are the pieces before and after it."""

    __slots__ = ("after", "before", "serial", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.before: Block | None = None
        self.after: Block | None = None
        self.serial = 0  # 0: in use


class Allocator:
    def __init__(self) -> None:
        self._free: list[tuple[int, int, Block]] = []  # by size
        self._serial = 0
        self.reserved = 0
        self.peak = 0

    def take(self, size: float) -> Block | None:
        """A block for so many bytes; None stands for a small one."""
        wanted = -(-int(size) // 512) * 512
        if wanted <= SMALL:
            return None
        place = bisect.bisect_left(self._free, (wanted, -1))
        if place < len(self._free):
            block = self._free.pop(place)[2]
            block.serial = 0
        else:
            block = Block(SHARED_SEGMENT if wanted < OWN_SEGMENT else -(-wanted // (2 * MIB)) * 2 * MIB)
            self.reserved += block.size
            self.peak = max(self.peak, self.reserved)
        if block.size - wanted > SMALL:
            self._split(block, wanted)
        return block

    def touch(self, size: float) -> None:
        """Takes and gives back at once: whatever hole holds it is the same hole again, else there is a new one."""
        if size > SMALL and (not self._free or self._free[-1][0] < size):
            self.give(self.take(size))

    def _split(self, block: Block, wanted: int) -> None:
        rest = Block(block.size - wanted)
        rest.before, rest.after = block, block.after
        if block.after:
            block.after.before = rest
        block.after, block.size = rest, wanted
        self._put(rest)

    def give(self, *blocks: Block | None) -> None:
        for block in blocks:
            if block is not None:
                self._give(block)

    def _give(self, block: Block) -> None:
        if block.before and block.before.serial:
            before = block.before
            self._forget(before)
            self._join(before, block)
            block = before
        if block.after and block.after.serial:
            after = block.after
            self._forget(after)
            self._join(block, after)
        self._put(block)

    def empty_cache(self) -> None:
        """Gives whole free segments back to the driver."""
        whole = [block for _, _, block in self._free if block.before is None and block.after is None]
        for block in whole:
            self._forget(block)
            self.reserved -= block.size

    def _put(self, block: Block) -> None:
        self._serial += 1
        block.serial = self._serial
        bisect.insort(self._free, (block.size, block.serial, block))

    def _forget(self, block: Block) -> None:
        del self._free[bisect.bisect_left(self._free, (block.size, block.serial))]
        block.serial = 0

    @staticmethod
    def _join(first: Block, second: Block) -> None:
        first.size += second.size
        first.after = second.after
        if second.after:
            second.after.before = first
