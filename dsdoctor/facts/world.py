"""How many processes the run will have, as the user said (--gpus, --nodes), not as counted here."""

from dsdoctor.facts.base import Fact


class World(Fact, frozen=True, kw_only=True):
    gpus_per_node: int
    nodes: int = 1
    named_by: str = "--gpus"  # "--gpus 8 --nodes 2"

    @property
    def ranks(self) -> int:
        return self.gpus_per_node * self.nodes
