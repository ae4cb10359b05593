"""DeepSpeed's own word on configs: a child that imports its config class once and answers a line with a line.

A request is JSON: ``{"text": the file, "ranks": the world size}``. An answer is null, or what DeepSpeed raised.
"""

import json
import subprocess
import sys
from types import TracebackType

_CHILD = """
import json, os, sys, tempfile
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from deepspeed import comm
from deepspeed.runtime.tensor_parallel.init_utils import load_ds_config
from deepspeed.runtime.config import DeepSpeedConfig
ranks = 1
comm.get_rank = lambda *a: 0
comm.get_world_size = lambda *a: ranks
place = os.path.join(tempfile.mkdtemp(), "ds.json")
for line in sys.stdin:
    asked = json.loads(line)
    ranks, said = asked["ranks"], None
    with open(place, "w", encoding="utf-8") as file:
        file.write(asked["text"])
    try:
        DeepSpeedConfig(load_ds_config(place))  # as deepspeed.initialize does
    except Exception as error:
        said = f"{type(error).__name__}: {error}"[:500]
    answers.write(json.dumps(said) + "\\n")
    answers.flush()
os.remove(place)
os.rmdir(os.path.dirname(place))
"""


class Oracle:
    """Ask DeepSpeed; a context manager, because the child has to be ended."""

    def __enter__(self) -> "Oracle":
        self.child = subprocess.Popen(
            [sys.executable, "-c", _CHILD],
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
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps({"text": text, "ranks": ranks}) + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        assert answer, "DeepSpeed's child ended"
        said: str | None = json.loads(answer)
        return said
