"""What dsdoctor says of a config, without a machine."""

from functools import cache

from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.facts import DeepSpeed, DeepSpeedLive, Fact, FrameworkName, Import, RunPlan
from dsdoctor.judge import finding_severity
from dsdoctor.knowledge import Knowledge
from dsdoctor.model import Severity, Verdict
from dsdoctor.readers import ds_config
from dsdoctor.request import Request
from dsdoctor.testing import machine

RELEASE = DeepSpeed(version="0.19.8", path="site-packages/deepspeed")
LIVE = DeepSpeedLive(imported=Import(outcome="ok"), accelerator="cpu")  # where DeepSpeed's child runs


@cache
def _knowledge() -> Knowledge:
    return load_knowledge()


def verdicts(text: str, ranks: int = 1, *beside: Fact, framework: FrameworkName = "none") -> tuple[Verdict, ...]:
    """The verdicts of the family CFG on the file ``text``."""
    plan = RunPlan(gpus_per_node=ranks, framework=framework, named_by=f"--gpus {ranks}")
    asked = machine(ds_config.parse(text, "ds.json"), RELEASE, LIVE, plan, *beside)
    return diagnose(asked, _knowledge(), Request(only=("CFG",))).verdicts


def errors(text: str, ranks: int = 1, *beside: Fact, framework: FrameworkName = "none") -> list[tuple[str, str, str]]:
    """Code, cause and message of every finding at error level."""
    found = [(v, f) for v in verdicts(text, ranks, *beside, framework=framework) for f in v.findings]
    return [(v.code, f.cause, f.message) for v, f in found if finding_severity(f, v) is Severity.ERROR]
