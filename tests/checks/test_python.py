"""The Python environment: what a user is told about broken packages, hidden modules and releases that do not fit."""

from typing import Any

import pytest
from dsdoctor_checks import python as family

from dsdoctor import healthy as h
from dsdoctor.facts import Damage, DeepSpeed, Distribution, DsConfig, Environment, Host, Packages, Python, Shadow, Torch
from dsdoctor.model import Check, Severity, Status, Verdict
from dsdoctor.registry import checks_of
from dsdoctor.testing import machine, verdict

HOST = Host(system="linux", kernel="6.1", machine="x86_64", package_manager="apt")


def env_python(version: str = "3.11.7", **changes: Any) -> Python:
    return Python(
        executable="/env/bin/python", chosen_because="--python", version=version, prefix="/env", base_prefix="/usr",
        environment="venv", **changes,
    )  # fmt: skip


def packages(**versions: str) -> Packages:
    names = {name.replace("_", "-"): version for name, version in versions.items()}
    return Packages(distributions={n: Distribution(name=n, version=v, location="/env/lib") for n, v in names.items()})


def deepspeed(version: str = "0.19.8") -> DeepSpeed:
    return DeepSpeed(version=version, path="/env/lib/deepspeed")


def torch(version: str = "2.13.0+cu130", cuda: str | None = "13.0") -> Torch:
    return Torch(version=version, cuda=cuda, path="/env/lib/torch")


def only(found: Verdict) -> Any:
    assert found.status is Status.FAILED, found.reason
    (finding,) = found.findings
    return finding


def test_python_312_without_setuptools_is_told_what_dies() -> None:
    sick = machine(env_python("3.12.1"), packages(deepspeed="0.17.6"), deepspeed("0.17.6"), HOST)
    finding = only(verdict(family.distutils_there, sick))
    assert finding.cause == "distutils-missing-py312"
    assert "3.12.1" in finding.message
    assert "`import deepspeed` fails" in finding.message
    assert finding.remedy.commands == ("/env/bin/python -m pip install 'setuptools<82'",)


def test_python_312_with_setuptools_is_quiet_and_311_is_not_judged() -> None:
    healthy = machine(env_python("3.12.1"), packages(setuptools="81.0.0"), HOST)
    assert verdict(family.distutils_there, healthy).status is Status.PASSED
    older = machine(env_python("3.11.7"), packages(), HOST)
    assert verdict(family.distutils_there, older).status is Status.NOT_APPLICABLE


def test_a_cut_library_names_file_sizes_and_the_exact_reinstall() -> None:
    cut = Damage(
        distribution="torch", file="torch/lib/libtorch_cpu.so", kind="size", expected_bytes=4_000, actual_bytes=1_024
    )
    sick = bent(packages(torch="2.13.0"), damaged=(cut,), integrity_checked=("torch",))
    finding = only(verdict(family.files_whole, machine(sick, env_python(), HOST)))
    assert "torch/lib/libtorch_cpu.so" in finding.message
    assert "1,024" in finding.message
    assert "4,000" in finding.message
    assert finding.remedy.commands == (
        "/env/bin/python -m pip install --force-reinstall --no-deps --no-cache-dir torch==2.13.0",
    )


def test_files_that_nobody_compared_are_not_called_whole() -> None:
    assert verdict(family.files_whole, machine(packages(torch="2.13.0"), env_python())).status is Status.NOT_APPLICABLE


def test_two_versions_side_by_side_and_the_rest_of_a_broken_pip() -> None:
    sick = bent(packages(torch="2.13.0"), duplicates={"torch": ("2.12.0", "2.13.0")}, leftovers=("~orch",))
    found = verdict(family.installed_once, machine(sick, env_python(), HOST))
    assert found.status is Status.FAILED
    assert "2.12.0, 2.13.0" in found.findings[0].message
    assert "~orch" in found.findings[1].message


def test_a_script_called_deepspeed_is_named() -> None:
    sick = bent(packages(), shadows=(Shadow(module="deepspeed", path="/home/me/deepspeed.py"),))
    finding = only(verdict(family.nothing_shadowed, machine(sick)))
    assert "/home/me/deepspeed.py" in finding.message
    assert finding.cause == "local-file-shadows-deepspeed"


def test_packages_of_another_python_on_pythonpath() -> None:
    sick = env_python("3.11.7", sys_path_extra=("/usr/lib/python3.10/site-packages", "/home/me/src"))
    finding = only(verdict(family.path_is_own, machine(sick, HOST)))
    assert "3.10" in finding.message
    assert finding.remedy.commands == ("unset PYTHONPATH",)


@pytest.mark.parametrize(
    ("check", "name", "found", "release", "cause"),
    [
        (family.pydantic_fits, "pydantic", "2.5.0", "0.9.5", "pydantic-v2-break"),
        (family.pydantic_fits, "pydantic", "1.10.2", "0.19.8", "pydantic-v2-break"),
        (family.numpy_fits, "numpy", "2.0.1", "0.12.6", "numpy2-break"),
        (family.packaging_new, "packaging", "19.2", "0.19.8", "packaging-too-old"),
    ],
)
def test_pairs_that_do_not_fit_name_both_versions(check: Any, name: str, found: str, release: str, cause: str) -> None:
    finding = only(verdict(check, machine(packages(**{name: found}), deepspeed(release), env_python(), HOST)))
    assert finding.cause == cause
    assert found in finding.message
    assert finding.remedy.commands


@pytest.mark.parametrize(
    ("check", "name", "found", "release"),
    [
        (family.pydantic_fits, "pydantic", "2.13.4", "0.19.8"),
        (family.pydantic_fits, "pydantic", "1.10.2", "0.9.5"),
        (family.pydantic_fits, "pydantic", "2.0", "0.11.2"),
        (family.numpy_fits, "numpy", "2.0.0", "0.14.4"),
        (family.numpy_fits, "numpy", "1.26.4", "0.12.6"),
        (family.packaging_new, "packaging", "20.0", "0.19.8"),
    ],
)
def test_pairs_that_fit_are_quiet_at_the_very_bound(check: Any, name: str, found: str, release: str) -> None:
    healthy = machine(packages(**{name: found}), deepspeed(release), env_python(), HOST)
    assert verdict(check, healthy).status is Status.PASSED


def test_numpy_that_is_not_listed_is_unknown_and_not_fine() -> None:
    assert verdict(family.numpy_fits, machine(packages(), deepspeed(), env_python())).status is Status.UNKNOWN


def test_setuptools_70_breaks_an_old_torch_and_82_worries_torch_212() -> None:
    old = machine(packages(setuptools="75.0"), torch("2.1.2", "12.1"), env_python(), HOST)
    assert only(verdict(family.setuptools_fits, old)).remedy.commands == (
        "/env/bin/python -m pip install 'setuptools<70'",
    )
    new = verdict(family.setuptools_fits, machine(packages(setuptools="82.0"), torch("2.12.1"), env_python(), HOST))
    assert new.severity is Severity.WARNING
    fine = machine(packages(setuptools="81.0.0"), torch("2.11.0"), env_python(), HOST)
    assert verdict(family.setuptools_fits, fine).status is Status.PASSED


def test_setuptools_77_matters_only_before_deepspeed_is_installed() -> None:
    before = machine(packages(setuptools="77.0.1"), env_python(), HOST)
    assert only(verdict(family.setuptools_builds, before)).cause == "setuptools-new-breaks-sdist"
    after = machine(packages(setuptools="77.0.1", deepspeed="0.19.8"), env_python(), HOST)
    assert verdict(family.setuptools_builds, after).status is Status.NOT_APPLICABLE


def test_a_one_bit_optimizer_gets_the_cupy_of_torchs_cuda() -> None:
    config = DsConfig(path="ds.json", values={"optimizer": {"type": "OneBitAdam"}}, places={"optimizer.type": (3, 7)})
    finding = only(verdict(family.cupy_there, machine(config, packages(), torch(cuda="12.8"), env_python(), HOST)))
    assert "ds.json:3:7" in finding.message
    assert finding.remedy.commands == ("/env/bin/python -m pip install cupy-cuda12x",)
    there = machine(config, packages(cupy_cuda12x="13.0"), torch(), env_python())
    assert verdict(family.cupy_there, there).status is Status.PASSED


def test_conda_and_venv_at_once() -> None:
    both = Environment(variables={"CONDA_PREFIX": "/conda", "VIRTUAL_ENV": "/env"})
    finding = only(verdict(family.one_environment, machine(both, env_python())))
    assert "/conda" in finding.message
    assert "/env" in finding.message


def bent(facts: Packages, **changes: Any) -> Packages:
    return Packages(distributions=facts.distributions, **changes)


@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check) -> None:
    found = verdict(check, h.healthy())
    assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.status, found.reason, found.findings)
