"""NVMe offload: what the folder gives in a plain write and read, and what training moved."""

import mmap
import os
import time

PLAIN_BYTES = 64 * 1024 * 1024
BLOCK = 1024 * 1024  # DeepSpeed's aio block size


def try_plain(folder, channel):
    """Rank 0 writes and reads a file, past the page cache where the filesystem allows it."""
    if channel.rank != 0:
        return
    with channel.phase("plain write and read"):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "plain")
        direct = getattr(os, "O_DIRECT", 0)
        try:
            found = _measure(path, direct)
        except OSError as error:
            if not direct or error.errno != 22:  # EINVAL: this filesystem has no O_DIRECT
                raise
            direct = 0
            found = _measure(path, 0)
        finally:
            if os.path.exists(path):
                os.unlink(path)
    channel.say("swap", path=folder, direct=bool(direct), **found)


def _measure(path, direct):
    block = mmap.mmap(-1, BLOCK)  # O_DIRECT wants an aligned buffer: a map begins at a page
    block.write(os.urandom(BLOCK))
    written = _timed(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | direct, lambda fd: os.write(fd, block), sync=True)
    read = _timed(path, os.O_RDONLY | direct, lambda fd: os.readv(fd, [block]), sync=False)
    return {"plain_write_bytes_per_s": PLAIN_BYTES / written, "plain_read_bytes_per_s": PLAIN_BYTES / read}


def _timed(path, flags, move, sync):
    descriptor = os.open(path, flags, 0o600)
    try:
        started = time.monotonic()
        for _ in range(PLAIN_BYTES // BLOCK):
            if move(descriptor) != BLOCK:
                raise OSError(28, "No space left on device", path)
        if sync:
            os.fsync(descriptor)
        return max(time.monotonic() - started, 1e-9)
    finally:
        os.close(descriptor)


class Counter:
    """Bytes that this process moved to and from disks since it was made, as the kernel counts them (Linux)."""

    def __init__(self, channel):
        self._channel = channel
        self._started = time.monotonic()
        self._before = _counts()

    def told(self, folder):
        """Tells what was moved, and what lies in ``folder`` now; rank 0 counts the files."""
        now, before = _counts(), self._before
        if now and before:
            self._channel.say(
                "swap",
                read_bytes=now["read_bytes"] - before["read_bytes"],
                written_bytes=now["write_bytes"] - before["write_bytes"],
                step_seconds=time.monotonic() - self._started,
            )
        if self._channel.rank == 0:
            sizes = [os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names]
            self._channel.say("swap", swapped_bytes=sum(sizes), files=len(sizes))
            self._channel.proof(
                "swapped",
                sizes,
                "%d files with %d bytes lie in the folder after the last step" % (len(sizes), sum(sizes)),
            )


def _counts():
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return {name: int(value) for name, _, value in (line.partition(":") for line in file)}
    except (OSError, ValueError):
        return None
