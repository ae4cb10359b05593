"""The machine as probes see it. Tests give a System with another root, environment or PATH; probes never reach around it."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dsdoctor.probes import runner
from dsdoctor.probes.runner import Ran, Running

READ_LIMIT = 4 * 1024 * 1024


class System:
    """Files, variables and programs of one machine.

    ``root`` is put in front of absolute paths that are read (a recorded or constructed file tree in tests); ``platform``
    is sys.platform's word.
    """

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        root: str | os.PathLike[str] = "/",
        cwd: str | None = None,
        platform: str | None = None,
    ) -> None:
        self.env: dict[str, str] = dict(os.environ if env is None else env)
        self.root = Path(root)
        self.platform = platform or sys.platform
        self._cwd = cwd

    @property
    def cwd(self) -> str | None:
        """The working folder, or None when it was deleted."""
        if self._cwd is not None:
            return self._cwd
        try:
            return os.getcwd()
        except OSError:
            return None

    @property
    def linux(self) -> bool:
        return self.platform.startswith("linux")

    @property
    def real(self) -> bool:
        """True when this is the machine that we run on, not a constructed tree."""
        return self.root == Path("/") and self.platform == sys.platform

    def path(self, absolute: str | os.PathLike[str]) -> Path:
        """Where ``absolute`` really lies."""
        if self.root == Path("/"):
            return Path(absolute)
        return self.root / str(absolute).lstrip("/")

    def read(self, absolute: str | os.PathLike[str], limit: int = READ_LIMIT) -> str | None:
        """Text of a file, at most ``limit`` bytes, or None when it cannot be read."""
        data = self.read_bytes(absolute, limit)
        return None if data is None else data.decode("utf-8", "replace")

    def read_bytes(self, absolute: str | os.PathLike[str], limit: int = READ_LIMIT) -> bytes | None:
        try:
            with open(self.path(absolute), "rb") as file:
                return file.read(limit)
        except (OSError, ValueError):
            return None

    def exists(self, absolute: str | os.PathLike[str]) -> bool:
        try:
            return self.path(absolute).exists()
        except (OSError, ValueError):
            return False

    def is_dir(self, absolute: str | os.PathLike[str]) -> bool:
        try:
            return self.path(absolute).is_dir()
        except (OSError, ValueError):
            return False

    def is_file(self, absolute: str | os.PathLike[str]) -> bool:
        try:
            return self.path(absolute).is_file()
        except (OSError, ValueError):
            return False

    def names(self, absolute: str | os.PathLike[str]) -> tuple[str, ...]:
        """Sorted names in a folder; empty when it cannot be read."""
        try:
            return tuple(sorted(os.listdir(self.path(absolute))))
        except (OSError, ValueError):
            return ()

    def which(self, program: str, path: str | None = None) -> str | None:
        """Where ``program`` is found on PATH (or on ``path``), as an executable file."""
        if not program:
            return None
        return shutil.which(program, path=path if path is not None else self.env.get("PATH", os.defpath))

    def run(
        self,
        argv: Sequence[str],
        limit_s: float = 10.0,
        *,
        env: Mapping[str, str] | None = None,
        answer: bool = False,
        hear: Callable[[bytes], None] | None = None,
        stall_s: float | None = None,
        polite: bool = False,
    ) -> Ran:
        """Run a program with this System's environment and working folder; see runner.run."""
        cwd = self.cwd or tempfile.gettempdir()
        env = self.env if env is None else env
        return runner.run(argv, limit_s, env=env, cwd=cwd, answer=answer, hear=hear, stall_s=stall_s, polite=polite)

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        answer: bool = False,
        hear: Callable[[bytes], None] | None = None,
    ) -> Running:
        """Start a program and go on; see runner.start. Raises NotStarted."""
        cwd = self.cwd or tempfile.gettempdir()
        return runner.start(argv, env=self.env if env is None else env, cwd=cwd, answer=answer, hear=hear)
