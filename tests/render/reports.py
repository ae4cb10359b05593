"""Reports for the tests of the renderers: judged by the real engine, from checks that a test writes itself."""

from collections.abc import Iterator

from dsdoctor.check import check, not_applicable, unknown
from dsdoctor.examination import Request, diagnose
from dsdoctor.facts import Environment, Host
from dsdoctor.healthy import healthy
from dsdoctor.knowledge import CapabilitySpec, CauseInfo, Knowledge
from dsdoctor.model import Check, Evidence, Finding, Platform, Proof, Remedy, Report, Severity
from dsdoctor.settings import Settings

INSTALL = (
    "sudo apt-get update && sudo apt-get install -y cuda-nvcc-12-8 libcurand-dev-12-8 libcublas-dev-12-8 ninja-build"
)
VERIFY = (
    "/home/user/env/bin/python -c 'import torch.utils.cpp_extension as e; print(e.CUDA_HOME, e.is_ninja_available())'"
)
PLACE = "confs/ds config.json:12:5"


def finding(message: str = "CUDA_HOME is /usr/local/cuda-11.8 and torch wants 12.8", **rest: object) -> Finding:
    fields: dict[str, object] = {
        "message": message,
        "cause": "nvcc-missing",
        "evidence": (Evidence(where="environment", text="CUDA_HOME=/usr/local/cuda-11.8"),),
        "subject": "nvcc",
        "remedy": Remedy(order="Install the CUDA compiler 12.8", commands=(INSTALL,), verify=VERIFY),
        **rest,
    }
    return Finding(**fields)  # type: ignore[arg-type]


def failing(code: str, *findings: Finding, severity: Severity = Severity.ERROR, title: str = "All is well") -> Check:
    def look(host: Host) -> Iterator[Finding]:
        """Say why."""
        yield from findings

    causes = tuple({f.cause for f in findings})
    return check(code, title, causes=causes, severity=severity, guards=("gpu",))(look)


@check("PY001", "Python is there", causes=())
def passing(host: Host) -> Iterator[Finding]:
    """Say why."""
    yield from ()


@check("GPU001", "The GPU is warm", causes=())
def undecided(host: Host) -> Iterator[Finding]:
    """Say why."""
    unknown("nvidia-smi gave no answer")
    yield


@check("GPU002", "The GPU is cold", causes=())
def undecided_too(host: Host) -> Iterator[Finding]:
    """Say why."""
    unknown("nvidia-smi gave no answer")
    yield


@check("NET001", "Nodes talk", causes=())
def absent(host: Host) -> Iterator[Finding]:
    """Say why."""
    not_applicable("there is one node")
    yield


@check("RUN001", "It runs", causes=())
def crashing(environment: Environment) -> Iterator[Finding]:
    """Say why."""
    raise ZeroDivisionError("by zero")
    yield


def can(name: str, title: str, *abilities: str) -> CapabilitySpec:
    return CapabilitySpec(
        name=name,
        title=title,
        requires=lambda snapshot: abilities,
        applies=lambda snapshot: None,
        proof=lambda snapshot: Proof.PROBED,
    )


def knowledge(*checks: Check) -> Knowledge:
    return Knowledge(
        checks=checks,
        causes={
            "nvcc-missing": CauseInfo(
                title="The CUDA compiler is missing",
                layer="toolkit",
                why="Ops are compiled by nvcc on first use.",
                remedy="Install nvcc.",
                explains=("op-build-failed",),
                sources=("DeepSpeed#1",),
            ),
            "op-build-failed": CauseInfo(title="An op was not built", layer="ops", why="It was.", remedy="Rebuild."),
        },
        capabilities=(
            can("zero2", "ZeRO-2", "gpu"),
            can("nvme", "NVMe offload (ZeRO-Infinity)", "gpu"),
        ),
        describe_platform=lambda snapshot: Platform(headline="Ubuntu: 1 x NVIDIA H200", can="train", cannot="fly"),
    )


def report(*checks: Check, ignored: dict[str, str] | None = None) -> Report:
    return diagnose(healthy(), knowledge(*checks), Request(settings=Settings(ignored=ignored or {})))


def mixed(ignored: dict[str, str] | None = None) -> Report:
    """One of everything."""
    return report(
        failing("CUDA001", finding(), title="The CUDA compiler fits torch"),
        failing("CFG001", finding("zero_optimization is a list", cause="config-bad", remedy=None,
                evidence=(Evidence(where=PLACE, text='"zero_optimization": []'),)), severity=Severity.WARNING),
        failing("MEM001", finding("there are 2 TiB of memory", cause="memory-big", remedy=None), severity=Severity.INFO),
        passing, undecided, undecided_too, absent, crashing, ignored=ignored,
    )  # fmt: skip


def hostile() -> Report:
    """A machine that puts escape sequences, markup and injections into every text."""
    text = (
        "\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b5m[red]x[/red] <script>alert(1)</script> a|b `c`\n::error::fake \ud800"
    )
    remedy = Remedy(order=text, commands=(f"echo {text}",), verify="true")
    evidence = (Evidence(where="\x1b[2Jlog\x00", text=text), Evidence(where="log", text="\u202egnp.exe"))
    return report(failing("CUDA001", finding(text, remedy=remedy, evidence=evidence, subject=text)))
