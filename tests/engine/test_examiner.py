"""Probes run side by side; one that raises, hangs or waits in vain costs its own section only."""

import threading
import time

import pytest

from dsdoctor.events import Event, nobody
from dsdoctor.facts import Cpu, Fact, Host, Limits, Memory
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.examiner import Examiner, Facts, Interrupted, Task

HOST = Host(system="linux", kernel="6", machine="x86_64")


def broken(facts: Facts) -> Fact:
    raise ZeroDivisionError("oops")


def denied(facts: Facts) -> Fact:
    raise ProbeFailed("denied", "no permission to look")


def test_a_raising_probe_costs_its_own_section_only() -> None:
    found, missing = Examiner(
        [Task("cpu", broken), Task("host", lambda f: HOST), Task("limits", denied)], 5, nobody
    ).examine()
    assert found == {"host": HOST}
    assert (missing["cpu"].kind, missing["limits"].kind) == ("crashed", "denied")
    assert "ZeroDivisionError" in missing["cpu"].detail


def test_probe_waits_for_what_it_needs_and_may_find_it_missing() -> None:
    def slow_host(facts: Facts) -> Fact:
        time.sleep(0.1)
        return HOST

    def memory(facts: Facts) -> Fact:
        return Memory(total_bytes=1 if facts.need(Host) == HOST else 2)

    found, missing = Examiner(
        [
            Task("memory", memory, needs=[Host]),
            Task("host", slow_host),
            Task("cpu", broken),
            Task("limits", lambda f: Limits(aio_nr=f.need(Cpu).logical_cores), needs=[Cpu]),
        ],
        5,
        nobody,
    ).examine()
    assert found["memory"] == Memory(total_bytes=1)
    assert missing["limits"].kind == "depends"


def test_probe_that_hangs_is_given_up_and_the_rest_is_kept() -> None:
    stop = threading.Event()

    def hangs(facts: Facts) -> Fact:
        stop.wait(30)
        return Limits()

    found, missing = Examiner([Task("limits", hangs), Task("host", lambda f: HOST)], 0.3, nobody).examine()
    stop.set()
    assert found == {"host": HOST}
    assert missing["limits"].kind == "timed-out"


def test_interruption_keeps_what_was_known() -> None:
    def ctrl_c(event: Event) -> None:
        if event.kind == "probe-ended":
            import _thread

            _thread.interrupt_main()

    def hangs(facts: Facts) -> Fact:
        time.sleep(3)
        return Limits()

    with pytest.raises(Interrupted) as stopped:
        Examiner([Task("host", lambda f: HOST), Task("limits", hangs)], 10, ctrl_c).examine()
    assert "limits" not in stopped.value.found


def test_known_sections_seed_a_second_look_and_are_replaced_by_it() -> None:
    newer = Host(system="linux", kernel="7", machine="x86_64")
    found, _ = Examiner([Task("host", lambda f: newer)], 5, nobody, seed={"host": HOST, "cpu": Cpu()}).examine()
    assert found == {"host": newer, "cpu": Cpu()}
