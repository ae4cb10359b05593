"""What the machine is for: the same fact can be healthy for one purpose and fatal for another."""

from typing import Literal

from dsdoctor.facts.base import Fact

PurposeName = Literal["ci-cpu", "builder", "single-gpu", "multi-gpu", "multi-node", "offload-nvme"]


class Purpose(Fact, frozen=True, kw_only=True):
    name: PurposeName
    because: str  # "--purpose", "no GPU and CI is set", ...
    guessed: bool = True

    @property
    def wants_gpu(self) -> bool:
        return self.name not in ("ci-cpu", "builder")
