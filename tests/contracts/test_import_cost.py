"""What is loaded for a small question stays small; the patient's packages are never loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
HEAVY = ("rich", "textual", "msgspec", "pynvml", "cpuinfo", "tomllib", "asyncio", "dsdoctor.examination")


def loaded(*arguments: str) -> set[str]:
    """What the program loads beyond what Python itself did at its start (an editable install brings some)."""
    code = (
        "import sys\nbefore = set(sys.modules)\n"
        f"sys.argv = ['dsdoctor', *{list(arguments)!r}]\n"
        "from dsdoctor.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *(sys.modules.keys() - before), file=sys.stderr)"
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


_NOT_FOR_A_LINT = ("textual", "rich", "pynvml", "cpuinfo", "asyncio", "importlib.metadata", "importlib.resources", "email", "zipfile",
                   "tempfile", "subprocess", "dsdoctor.examination", "dsdoctor.probes", "dsdoctor.smoke", "dsdoctor.survey", "dsdoctor.incident",
                   "dsdoctor.capabilities", "dsdoctor.op_verdicts", "dsdoctor.triage", "dsdoctor.render.text", "dsdoctor.render.quantity")  # fmt: skip


@pytest.mark.parametrize("file", ["zero2_fp16.json", "many_mistakes.json"])
def test_a_lint_of_a_config_loads_the_checks_of_configs_and_no_machinery(file: str) -> None:
    modules = loaded("config", str(CONFIGS / file), "--gpus", "8")
    assert not [m for m in modules if m in _NOT_FOR_A_LINT]
    checks = {m.removeprefix("dsdoctor_checks.") for m in modules if m.startswith("dsdoctor_checks.")}
    beside = {"knowledge", "tables", "versions", "huggingface", "op_specs"}  # the last: which ops a config wants
    assert {name for name in checks - beside if not name.startswith("config")} == set()
    assert "config" in checks
