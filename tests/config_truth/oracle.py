"""DeepSpeed's own word on configs, and what Hugging Face makes of them: a child (child.py) that answers a line with a line."""

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

_CHILD = str(Path(__file__).parent / "child.py")


class Oracle:
    """Ask DeepSpeed; a context manager, because the child has to be ended."""

    def __enter__(self) -> "Oracle":
        self.child = subprocess.Popen(
            [sys.executable, "-P", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.child.communicate()

    def refuses(self, text: str, ranks: int = 1) -> str | None:
        """What DeepSpeed raises for the file ``text`` on ``ranks`` GPUs, or None when it takes it."""
        said: str | None = self._ask({"text": text, "ranks": ranks})
        return said

    def words(self, text: str, ranks: int = 1) -> dict[str, Any]:
        """What the live probe would tell of the file ``text``."""
        answer: dict[str, Any] = self._ask({"words": text, "ranks": ranks})
        return answer

    def through(self, framework: str, **asked: Any) -> dict[str, Any]:
        """What the framework hands to DeepSpeed ("config"), or why it stops before ("error")."""
        answer: dict[str, Any] = self._ask({"framework": framework, **asked})
        return answer

    def _ask(self, asked: dict[str, Any]) -> Any:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(asked) + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        assert answer, "DeepSpeed's child ended"
        return json.loads(answer)
