"""Programs on PATH, and hostfiles as DeepSpeed's launcher reads them."""

import importlib.util
from collections.abc import Callable

import pytest

from dsdoctor.facts import Hostfile
from dsdoctor.probes import programs
from dsdoctor.probes.system import System

Built = Callable[..., System]


def read(built: Built, text: str) -> Hostfile:
    found = programs.probe(built({"/etc/hostfile": text}), "/etc/hostfile").hostfile
    assert found is not None
    return found


def test_programs_that_are_there(built: Built) -> None:
    found = programs.probe(built(programs={"pdsh": "", "ssh": "", "unrelated": ""}), None)
    assert set(found.paths) == {"pdsh", "ssh"}
    assert "mpirun" not in found
    assert found.hostfile is None


def test_a_hostfile_with_comments_and_empty_lines(built: Built) -> None:
    found = read(built, "# two nodes\n\nnode1 slots=8\n  node2\tslots=4  \n")
    assert found.hosts == {"node1": 8, "node2": 4}
    assert found.bad_lines == ()


@pytest.mark.parametrize(
    "line", ["node1 slot=8", "node1 slots = 8", "node1", "node1 slots=all", "node1:8", "node1 slots=-1"]
)
def test_a_line_that_the_launcher_refuses_is_shown_with_its_number(built: Built, line: str) -> None:
    found = read(built, f"node0 slots=8\n{line}\n")
    assert found.bad_lines == (f"2: {line}",)
    assert found.hosts == {"node0": 8}


@pytest.mark.parametrize("line", ["node1 slots=8 # the fast one", "node1 slots=8 max_slots=8"])
def test_text_behind_the_slots_is_ignored_as_the_launcher_does(built: Built, line: str) -> None:
    found = read(built, line)
    assert (found.hosts, found.bad_lines) == ({"node1": 8}, ())


def test_a_host_twice(built: Built) -> None:
    found = read(built, "node1 slots=8\nnode1 slots=4\n")
    assert found.hosts == {"node1": 8}
    assert found.bad_lines[0].startswith("2: node1 slots=4")


def test_what_the_launcher_itself_says_of_the_same_lines(built: Built) -> None:
    """The launcher is in the patient, so its rule is repeated here; this holds the copy against the original's words."""
    source = importlib.util.find_spec("deepspeed")
    if source is None or not source.submodule_search_locations:
        pytest.skip("needs deepspeed's files")
    with open(f"{source.submodule_search_locations[0]}/launcher/runner.py", encoding="utf-8") as file:
        assert r"pattern = r'^(\S+)\s+slots=(\d+)'" in file.read()


def test_a_named_hostfile_that_is_not_there(built: Built) -> None:
    found = programs.probe(built(), "hostfile").hostfile
    assert found is not None
    assert (found.path, found.exists) == ("hostfile", False)


def test_the_default_hostfile_is_taken_when_it_lies_there(built: Built) -> None:
    found = programs.probe(built({"/job/hostfile": "worker-0 slots=16\n"}), None).hostfile
    assert found is not None
    assert (found.path, found.hosts) == ("/job/hostfile", {"worker-0": 16})


def test_a_relative_hostfile_is_looked_up_in_the_working_folder(built: Built) -> None:
    found = programs.probe(built({"/project/hosts": "a slots=1\n"}, cwd="/project"), "hosts").hostfile
    assert found is not None
    assert found.hosts == {"a": 1}
