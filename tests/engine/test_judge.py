"""Facts are injected by type; what is missing, raises or does not apply becomes a verdict of its own."""

from collections.abc import Iterator

import pytest

from dsdoctor.api import Finding, Host, Memory, Prescriber, Severity, Smoke, Unavailable, check, known, not_applicable
from dsdoctor.judge import judge
from dsdoctor.model import Proof, Status
from dsdoctor.testing import machine, verdict

MEMORY = Memory(total_bytes=1 << 30)


@check("MEM901", "there is a gigabyte", causes=["small"], guards=["host-memory"])
def enough(memory: Memory) -> Iterator[Finding]:
    """A gigabyte is what this test asks for, no less."""
    if memory.total_bytes < 1 << 30:
        yield Finding(message=f"only {memory.total_bytes} bytes", cause="small")


@check("MEM902", "swap is known", causes=["small"])
def swap_known(memory: Memory, host: Host | None, rx: Prescriber) -> Iterator[Finding]:
    """Takes an optional section and the prescriber beside a needed one."""
    if host is not None and host.system == "darwin":
        not_applicable("macOS swaps by itself")
    known(memory.swap_total_bytes, "the size of swap")
    yield from ()


@check("MEM903", "never raises", causes=["small"])
def raises(memory: Memory) -> Iterator[Finding]:
    """A check with a bug costs one verdict."""
    yield Finding(message=str(1 // (memory.total_bytes - memory.total_bytes)), cause="small")


@check("MEM904", "names its causes", causes=["small"])
def liar(memory: Memory) -> Iterator[Finding]:
    """Names a cause that it did not declare."""
    yield Finding(message="x", cause="other")


@check("RUN901", "ran", causes=["small"])
def ran(smoke: Smoke) -> Iterator[Finding]:
    """A verdict from a real run carries the highest grade."""
    yield from ()


def test_silence_is_health_and_a_finding_is_failure() -> None:
    assert verdict(enough, machine(MEMORY)).status is Status.PASSED
    sick = verdict(enough, machine(Memory(total_bytes=5)))
    assert (sick.status, sick.findings[0].message) == (Status.FAILED, "only 5 bytes")


def test_missing_fact_is_unknown_with_its_reason_and_never_passed() -> None:
    found = verdict(enough, machine(memory=Unavailable(kind="denied", detail="/proc is closed")))
    assert (found.status, found.reason, found.waits_for) == (Status.UNKNOWN, "/proc is closed", ("memory",))


def test_fact_that_nobody_asked_for_is_not_applicable() -> None:
    found = verdict(ran, machine(smoke=Unavailable(kind="not-asked", detail="no --smoke")))
    assert (found.status, found.reason) == (Status.NOT_APPLICABLE, "no --smoke")


def test_optional_fact_may_be_missing_and_unknown_field_makes_unknown() -> None:
    found = verdict(swap_known, machine(MEMORY))
    assert (found.status, found.reason) == (Status.UNKNOWN, "the size of swap is not known")
    mac = Host(system="darwin", kernel="23", machine="arm64")
    assert verdict(swap_known, machine(MEMORY, mac)).reason == "macOS swaps by itself"


def test_check_that_raises_is_contained_and_the_others_go_on() -> None:
    crashed, passed = judge([raises, enough], machine(MEMORY))
    assert crashed.status is Status.CRASHED
    assert "ZeroDivisionError" in str(crashed.reason)
    assert passed.status is Status.PASSED


def test_undeclared_cause_is_our_bug_not_the_users() -> None:
    assert verdict(liar, machine(MEMORY)).status is Status.CRASHED


def test_verdict_from_a_run_has_the_highest_grade() -> None:
    assert verdict(ran, machine(Smoke())).proof is Proof.RAN
    assert verdict(enough, machine(MEMORY)).proof is Proof.DECLARED


def test_user_severity_and_ignore_win() -> None:
    (found,) = judge([enough], machine(Memory(total_bytes=5)), {"MEM901": Severity.WARNING}, {"MEM901": "small box"})
    assert (found.severity, found.ignored) == (Severity.WARNING, "small box")


@pytest.mark.parametrize("code", ["cuda201", "CUDA2", "X1", "CUDA-201"])
def test_code_must_be_family_and_three_digits(code: str) -> None:
    with pytest.raises(ValueError, match="no code"):
        check(code, "t", causes=["small"])


def test_parameter_without_a_fact_type_is_refused_when_the_check_is_written() -> None:
    def careless(memory: int) -> Iterator[Finding]:
        """Asks for a number."""
        yield from ()

    with pytest.raises(TypeError, match="memory"):
        check("MEM905", "t", causes=["small"])(careless)
