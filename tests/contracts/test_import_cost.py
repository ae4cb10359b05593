"""What is loaded for a small question stays small; the patient's packages are never loaded."""

import subprocess
import sys

import pytest

HEAVY = ("rich", "textual", "msgspec", "pynvml", "cpuinfo", "tomllib", "asyncio", "dsdoctor.examination")


def loaded(*arguments: str) -> set[str]:
    code = (
        "import sys\n"
        f"sys.argv = ['dsdoctor', *{list(arguments)!r}]\n"
        "from dsdoctor.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    line = next(line for line in done.stderr.splitlines() if line.startswith("MODULES"))
    return set(line.split()[1:])


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_load_nothing_heavy(option: str) -> None:
    modules = loaded(option)
    assert not [m for m in modules if m in HEAVY]


def test_a_check_loads_neither_torch_nor_textual() -> None:
    modules = loaded("check", "--static", "--json")
    assert not [m for m in modules if m.split(".")[0] in ("torch", "deepspeed", "textual")]


def test_a_question_of_fit_loads_no_examination_and_draws_without_rich() -> None:
    modules = loaded("fit", "--params", "70B", "--snapshot", "fixtures/machines/h200")
    assert "dsdoctor.render.fit" in modules
    heavy = {
        "rich",
        "textual",
        "torch",
        "dsdoctor.examination",
        "dsdoctor.registry",
        "dsdoctor.redact",
        "dsdoctor_checks",
    }
    assert not heavy & modules
    assert not [name for name in modules if name.startswith("dsdoctor.probes")]
