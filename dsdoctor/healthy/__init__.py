"""One coherent healthy machine to bend in tests: a Linux box with one H200, as recorded, in a virtual environment.

Every function takes ``**changes`` for the fields that are odd. ``healthy(*sections)`` is the whole machine with some
sections replaced; ``machine`` of dsdoctor.testing holds only what it is given.
"""

from dsdoctor.facts import Fact, Snapshot, Unavailable
from dsdoctor.facts.snapshot import SECTIONS
from dsdoctor.healthy.base import GIB, SITE
from dsdoctor.healthy.machine import (
    caches,
    cpu,
    environment,
    gpu,
    gpus,
    host,
    limits,
    memory,
    network,
    no_gpus,
    place,
    programs,
    storage,
)
from dsdoctor.healthy.ops import ds_report, op_builders, op_builds, trials
from dsdoctor.healthy.runs import aftermath, ds_config, fallen_run, purpose, smoke, smoke_rank, smoke_run
from dsdoctor.healthy.software import (
    compiler,
    compilers,
    deepspeed,
    deepspeed_live,
    imported,
    packages,
    python,
    toolkit,
    toolkits,
    torch,
    torch_live,
)

__all__ = [
    "GIB", "SITE", "aftermath", "caches", "compiler", "compilers", "cpu", "deepspeed", "deepspeed_live", "ds_config",
    "ds_report", "environment", "fallen_run", "gpu", "gpus", "healthy", "host", "imported", "limits", "memory",
    "network", "no_gpus", "op_builders", "op_builds", "packages", "place", "programs", "purpose", "python", "smoke",
    "smoke_rank", "smoke_run", "storage", "toolkit", "toolkits", "torch", "torch_live", "trials",
]  # fmt: skip


def healthy(*replaced: Fact, **unavailable: Unavailable) -> Snapshot:
    """The whole machine, with ``replaced`` sections in place of the healthy ones and ``unavailable`` ones taken away."""
    sections: list[Fact] = [
        purpose(), host(), cpu(), memory(), limits(), gpus(), toolkits(), compilers(), python(), packages(), torch(),
        torch_live(), deepspeed(), deepspeed_live(), ds_report(), op_builders(), environment(), caches(), storage(), network(), programs(),
    ]  # fmt: skip
    fields = {SECTIONS[type(s)]: s for s in (*sections, *replaced)}
    for name in unavailable:
        fields.pop(name, None)
    not_asked = {
        "smoke": Unavailable(kind="not-asked", detail="no smoke run was asked for (--smoke)"),
        "op_builds": Unavailable(kind="not-asked", detail="no op was built (dsdoctor ops --build)"),
        "ds_config": Unavailable(kind="not-asked", detail="no ds_config was given (--config)"),
    }
    missing = {name: why for name, why in {**not_asked, **unavailable}.items() if name not in fields}
    return Snapshot(tool_version="0", origin="a healthy machine", unavailable=missing, **fields)  # type: ignore[arg-type]
