"""What could not be decided, said once for each thing that is missing."""

from collections.abc import Iterator

import msgspec
import pytest

from dsdoctor.check import check
from dsdoctor.examination import diagnose
from dsdoctor.facts import DsConfig, Gpus, Host, Memory, TorchLive, Unavailable
from dsdoctor.healthy import healthy
from dsdoctor.model import Check, Finding, Report
from dsdoctor.render import renderer, text
from dsdoctor.render.undecided import undecided
from tests.render.reports import crashing, knowledge, undecided_too
from tests.render.reports import undecided as says_unknown

SLOW = "the torch import gave no answer within 60 s"


@check("TORCH001", "torch works", causes=())
def wants_torch(live: TorchLive) -> Iterator[Finding]:
    """Say why."""
    yield from ()


@check("GPU011", "The GPU works in torch", causes=())
def wants_config_and_gpus(config: DsConfig, gpus: Gpus) -> Iterator[Finding]:
    """Say why."""
    yield from ()


@check("MEM001", "There is memory", causes=())
def wants_memory(memory: Memory) -> Iterator[Finding]:
    """Say why."""
    yield from ()


def many(count: int) -> list[Check]:
    def look(live: TorchLive) -> Iterator[Finding]:
        """Say why."""
        yield from ()

    return [check(f"OPS{n:03}", "An op works", causes=())(look) for n in range(count)]


def blind(*checks: Check) -> Report:
    """torch timed out, two sections are denied, and nobody asked for a config."""
    denied = Unavailable(kind="denied", detail="no permission")
    missing = {
        "torch_live": Unavailable(kind="timed-out", detail=SLOW),
        "gpus": denied,
        "memory": denied,
        "ds_config": Unavailable(kind="not-asked", detail="no ds_config was given (--config)"),
    }
    machine = healthy().replace(**dict.fromkeys(missing), unavailable=missing)
    return diagnose(machine, knowledge(*checks))


def test_one_reason_names_every_section_that_it_is_about_and_what_was_not_asked_for_is_no_reason() -> None:
    groups = undecided(blind(wants_torch, wants_config_and_gpus, wants_memory, says_unknown, undecided_too, crashing))
    assert groups == {
        f"{SLOW} (missing: torch_live)": ["TORCH001"],
        "no permission (missing: gpus, memory)": ["GPU011", "MEM001"],
        "nvidia-smi gave no answer": ["GPU001", "GPU002"],
        "a defect of dsdoctor: ZeroDivisionError: by zero": ["RUN001"],
    }


@pytest.mark.parametrize(("count", "shown"), [(13, "OPS012\n"), (14, "OPS011 and 2 more\n")])
def test_a_long_list_of_codes_is_cut_unless_verbose(count: int, shown: str) -> None:
    page = text.render(blind(*many(count)), width=200)
    assert shown in page
    assert f"OPS{count - 1:03}\n" in text.render(blind(*many(count)), width=200, verbosity=1)


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_documents_tell_it_too(form: str) -> None:
    page = renderer(form)(blind(wants_torch))
    assert "Could not be decided" in page
    assert f"{SLOW} (missing: torch_live): TORCH001" in page.replace("\\", "")


def test_the_last_line_is_the_next_step() -> None:
    def last(report: Report) -> str:
        return text.render(report, width=120).splitlines()[-1]

    assert last(blind(wants_torch)).startswith("Next: see what could not be decided")
    assert last(msgspec.structs.replace(blind(wants_torch), interrupted=True)) == (
        "Next: run `dsdoctor check` again and let it end."
    )


def test_a_report_without_a_section_reason_says_what_was_not_examined() -> None:
    @check("HOST001", "There is a host", causes=())
    def wants_host(host: Host) -> Iterator[Finding]:
        """Say why."""
        yield from ()

    report = diagnose(healthy().replace(host=None), knowledge(wants_host))
    assert undecided(report) == {"host was not examined": ["HOST001"]}
