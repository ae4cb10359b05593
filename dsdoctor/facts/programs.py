"""Programs around DeepSpeed that launchers and features call."""

from dsdoctor.facts.base import Fact

NAMES = ("pdsh", "ssh", "numactl", "mpirun", "srun", "nvidia-smi", "lscpu", "df", "ldconfig", "git", "uv", "conda",
         "which", "hostname", "ds_report", "deepspeed", "accelerate")  # fmt: skip


class Hostfile(Fact, frozen=True, kw_only=True):
    path: str
    exists: bool
    hosts: dict[str, int] = {}  # host -> slots
    bad_lines: tuple[str, ...] = ()  # "3: node1 slot=8"


class Programs(Fact, frozen=True, kw_only=True):
    paths: dict[str, str] = {}  # name -> path, those of NAMES that are on PATH
    hostfile: Hostfile | None = None  # the one named by the user or /job/hostfile

    def __contains__(self, name: str) -> bool:
        return name in self.paths
