"""Reads what a program writes, all of it, and keeps the first and the last part."""

import contextlib
import threading
from collections.abc import Callable
from typing import IO


class Drain(threading.Thread):
    """Reads a pipe to its end, keeping the first and the last part. ``hear`` is given each whole line as it comes."""

    def __init__(self, pipe: IO[bytes], keep: int, hear: Callable[[bytes], None] | None = None) -> None:
        super().__init__(daemon=True)
        self._pipe, self._half, self._hear, self._line = pipe, keep // 2, hear, b""
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := self._pipe.read1(65536):  # type: ignore[attr-defined]
                self._tell(chunk)
                room = self._half - len(self._head)
                self._head += chunk[:room]
                self._tail += chunk[max(room, 0) :]
                if len(self._tail) > 2 * self._half:
                    self._dropped += len(self._tail) - self._half
                    del self._tail[: len(self._tail) - self._half]
            self._pipe.close()

    def _tell(self, chunk: bytes) -> None:
        if self._hear is None:
            return
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            with contextlib.suppress(Exception):  # a listener's fault must not cost the answer
                self._hear(line)

    def held(self) -> bool:
        """True when somebody still has the other end open."""
        self.join(0.2)
        return self.is_alive()

    def data(self) -> bytes:
        self.join(1.0)
        cut = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return bytes(self._head) + cut + bytes(self._tail)
