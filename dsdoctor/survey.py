"""Which probe gives which section, and what each waits for. The one list to read to see how a machine is examined.

What only some examinations need (builds, trials, a smoke run, a config) is imported where it is asked for.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dsdoctor.events import Event, Observer
from dsdoctor.facts import (
    DsConfig,
    Fact,
    Gpus,
    OpBuilds,
    Packages,
    Python,
    Smoke,
    SmokeRun,
    Snapshot,
    Toolkits,
    Torch,
    Unavailable,
)
from dsdoctor.facts.snapshot import LIVE_SECTIONS
from dsdoctor.probes import (
    ProbeFailed,
    caches,
    compilers,
    cpu,
    deepspeed,
    environment,
    gpu,
    host,
    limits,
    memory,
    network,
    packages,
    patient,
    programs,
    python,
    runner,
    storage,
    toolkit,
    torch,
)
from dsdoctor.probes.examiner import Examiner, Facts, Found, Task
from dsdoctor.probes.system import System
from dsdoctor.recorded import beside_the_config
from dsdoctor.request import Request

if TYPE_CHECKING:
    from dsdoctor.probes.op_builds import Order
    from dsdoctor.smoke.order import Job

STATIC_LIMIT_S = 30.0  # for everything but the live probe and the smoke run
_ON_REQUEST = frozenset({"smoke", "op_builds"})
Examined = tuple[dict[str, Fact], dict[str, Unavailable]]


def examine_all(request: Request, observe: Observer) -> Examined:
    """Run every probe that the request asks for. Raises ProbeFailed when there is no patient."""
    system = System()
    chosen = python.choose(system, request.python)
    found, missing = _run(tasks(request, system, chosen), request, observe)
    if request.static:
        left_out = Unavailable(kind="not-examined", detail="needs the live probe, which --static leaves out")
        missing |= {s: left_out for s in LIVE_SECTIONS - _ON_REQUEST if s not in found}
    if "smoke" not in found:
        missing["smoke"] = Unavailable(kind="not-asked", detail="no smoke run was asked for (--smoke)")
    if "op_builds" not in found:
        missing["op_builds"] = Unavailable(kind="not-asked", detail="no op was built (dsdoctor ops --build)")
    if request.config is None:
        missing |= dict.fromkeys(
            ("ds_config", "config_words"), Unavailable(kind="not-asked", detail="no ds_config was given (--config)")
        )
    return found | beside_the_config(request), missing


def examine_again(request: Request, known: Snapshot, sections: set[str], observe: Observer) -> Examined:
    """Run only the probes that give ``sections``; what they wait for is taken from ``known``."""
    system = System()
    patient_python = known.python
    chosen = (
        (patient_python.executable, patient_python.chosen_because)
        if patient_python
        else python.choose(system, request.python)
    )
    wanted = [task for task in tasks(request, system, chosen) if sections & set(task.gives)]
    seed = {name: getattr(known, name) for name in known.__struct_fields__ if isinstance(getattr(known, name), Fact)}
    return _run(wanted, request, observe, seed)


def build(known: Snapshot, order: "Order", observe: Observer) -> OpBuilds:
    """Build ops in the patient of ``known``. Raises ProbeFailed; on Ctrl-C every child is ended first."""
    if known.python is None:
        raise ProbeFailed("depends", "no op can be built: there is no interpreter")
    from dsdoctor.probes import op_builds

    try:
        return op_builds.build(
            System(), known.python, order, observe, cpu=known.cpu, memory=known.memory, known=known.caches
        )
    except KeyboardInterrupt:
        runner.kill_all()
        raise


def smoke(known: Snapshot, work: Iterable["Job | SmokeRun"], observe: Observer) -> Smoke:
    """Run jobs in the patient of ``known``, one after the other; runs that are not applicable keep their place.

    On Ctrl-C raises SmokeInterrupted with what had ended by then. Raises ProbeFailed when there is no interpreter.
    """
    if known.python is None:
        raise ProbeFailed("depends", "nothing can be trained: there is no interpreter")
    from dsdoctor.smoke.order import Job
    from dsdoctor.smoke.runner import run

    runs: list[SmokeRun] = []
    todo = list(work)
    for number, one in enumerate(todo, 1):
        if not isinstance(one, Job):
            runs.append(one)
            continue
        name = one.recipe.name
        observe(Event(kind="smoke-started", name=name, detail=f"{number} of {len(todo)}"))
        try:
            ran = run(System(), known.python, one, observe)
        except KeyboardInterrupt:
            raise SmokeInterrupted(Smoke(runs=tuple(runs))) from None
        runs.append(ran)
        observe(Event(kind="smoke-ended", name=name, outcome=ran.outcome, seconds=ran.seconds))
    return Smoke(runs=tuple(runs))


class SmokeInterrupted(KeyboardInterrupt):
    """Ctrl-C during a smoke run; ``smoke`` holds the runs that had ended by then."""

    def __init__(self, smoke: Smoke) -> None:
        super().__init__()
        self.smoke = smoke


def tasks(request: Request, system: System, chosen: tuple[str, str]) -> list[Task]:
    """All probes for this request, most urgent first."""
    executable, because = chosen
    nvme = request.nvme or request.settings.nvme
    live = [] if request.static else _live(request, system)
    config = request.config
    read = [Task("ds_config", lambda facts: _read_config(config))] if config else []
    return [
        Task("python", lambda facts: python.probe(system, executable, because)),
        *live,
        Task("gpus", lambda facts: gpu.probe(system)),
        Task("host", lambda facts: host.probe(system)),
        Task("cpu", lambda facts: _cpu(system, request), needs=[Python]),  # needs none: it steps back for the patient
        Task("memory", lambda facts: memory.probe(system)),
        Task("limits", lambda facts: limits.probe(system)),
        Task("environment", lambda facts: environment.probe(system)),
        Task("network", lambda facts: network.probe(system)),
        Task("programs", lambda facts: programs.probe(system, request.hostfile)),
        *read,
        Task("packages", lambda facts: packages.probe(system, facts.need(Python)), needs=[Python]),
        Task("torch", lambda f: torch.probe(system, f.need(Python), f.need(Packages)), needs=[Python, Packages]),
        Task(
            "deepspeed", lambda f: deepspeed.probe(system, f.need(Python), f.need(Packages)), needs=[Python, Packages]
        ),
        Task("compilers", lambda facts: compilers.probe(system, facts.get(Python)), needs=[Python]),
        Task("toolkits", lambda f: toolkit.probe(system, f.get(Python), f.get(Torch)), needs=[Python, Torch]),
        Task("caches", lambda f: caches.probe(system, f.get(Python), f.get(Torch)), needs=[Python, Torch]),
        *([] if request.static else [_trials(system)]),
        Task("storage", lambda facts: storage.probe(system, nvme, facts.get(DsConfig)), needs=[DsConfig]),
    ]


def _run(wanted: list[Task], request: Request, observe: Observer, seed: dict[str, Fact] | None = None) -> Examined:
    limit = STATIC_LIMIT_S + (0.0 if request.static else request.limit_s)
    return Examiner(wanted, limit, observe, seed).examine()


def _live(request: Request, system: System) -> list[Task]:
    def probe(facts: Facts) -> Found:
        live = patient.probe(system, facts.need(Python), request.limit_s, _config_order(request))
        return {name: getattr(live, name) for name in live.__struct_fields__}

    return [Task("patient", probe, needs=[Python], gives=patient.Live.__struct_fields__)]


def _config_order(request: Request) -> patient.ConfigOrder | None:
    if request.config is None:
        return None
    plan = request.run_plan
    alone = plan is not None and plan.framework in ("none", "lightning")
    return patient.ConfigOrder(request.config, plan.ranks if plan else None, not alone)


def _read_config(path: str) -> Fact:
    from dsdoctor.readers import ds_config

    return ds_config.read(path)


def _trials(system: System) -> Task:
    from dsdoctor.probes import trials

    def probe(facts: Facts) -> Found:
        return trials.probe(system, facts.need(Python), facts.get(Torch), facts.get(Toolkits), facts.get(Gpus))

    return Task("trials", probe, needs=[Python, Torch, Toolkits, Gpus])


def _cpu(system: System, request: Request) -> Fact:
    """py-cpuinfo is what DeepSpeed asks. It takes a second, so a static run on Linux reads the kernel's word instead."""
    if request.static and system.linux:
        return cpu.probe(system)
    return cpu.probe_py_cpuinfo(system)
