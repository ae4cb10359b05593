"""How the run will be started, as the user said (--gpus, --nodes, --framework): nothing here was counted or guessed."""

from typing import Literal

from dsdoctor.facts.base import Fact

FrameworkName = Literal[
    "none", "hf", "accelerate", "lightning"
]  # none: the training script calls deepspeed.initialize itself


class RunPlan(Fact, frozen=True, kw_only=True):
    gpus_per_node: int | None = None
    nodes: int = 1
    framework: FrameworkName | None = None
    named_by: str = "--gpus"  # "--gpus 8 --nodes 2"

    @property
    def ranks(self) -> int | None:
        return None if self.gpus_per_node is None else self.gpus_per_node * self.nodes
