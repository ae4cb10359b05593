"""The layer rule of the map, enforced by import-linter (contracts in pyproject.toml)."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0, capsys.readouterr().out


@pytest.mark.parametrize("file", sorted((ROOT / "checks/dsdoctor_checks").glob("**/*.py")), ids=lambda p: p.stem)
def test_check_modules_import_the_api_and_the_standard_library_only(file: Path) -> None:
    allowed = {"dsdoctor", "dsdoctor_checks", *sys.stdlib_module_names, "tomli", "packaging"}
    for node in ast.walk(ast.parse(file.read_text())):
        names = (
            [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        for name in names:
            assert name.split(".")[0] in allowed, f"{file.name} imports {name}"
            assert not name.startswith("dsdoctor.") or name == "dsdoctor.api", f"{file.name} imports {name}"


def test_broad_except_stays_where_isolation_is_the_job() -> None:
    allowed = {"registry.py", "judge.py", "examiner.py"}
    broad = [
        str(file.relative_to(ROOT))
        for folder in ("dsdoctor", "checks")
        for file in (ROOT / folder).glob("**/*.py")
        if file.name not in allowed
        and "scripts" not in file.parts
        and file.name != "channel.py"  # of the patient: tells whatever ends a rank
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")))
    ]
    assert broad == [], "only registry, judge and the examiner may catch everything"


def test_scripts_for_the_patient_run_on_python_3_8() -> None:
    for file in [*(ROOT / "dsdoctor/probes/scripts").glob("*.py"), *(ROOT / "dsdoctor/smoke/patient").glob("*.py")]:
        if file.name in ("nvml.py", "nvml_watch.py", "cpuinfo.py", "__init__.py"):  # run in dsdoctor's own interpreter
            continue
        tree = ast.parse(file.read_text(), feature_version=(3, 8))
        imported = {
            (a.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for a in node.names
        }
        foreign = (
            imported
            - set(sys.stdlib_module_names)
            - {"torch", "deepspeed", "accelerate", "transformers", "dsdoctor_smoke"}
        )
        assert not foreign, f"{file.name} imports {foreign}: the patient may not have it"
