"""Checks of DeepSpeed: that it is there, whole, importable, made for this torch, and that it chooses the right accelerator."""

from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpus,
    Packages,
    Prescriber,
    Purpose,
    Python,
    Remedy,
    Severity,
    Toolkits,
    Torch,
    TorchLive,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.frameworks import no_sync_fits, optimizer_train_fits, upper_bounds, wanted_minimum
from dsdoctor_checks.imports import IMPORT_CAUSES, import_findings
from dsdoctor_checks.launcher import launcher_executable, launcher_on_path, launcher_shebang
from dsdoctor_checks.prebuild import default_archs, ops_can_be_built, prebuilt_ops_fit, wheel_is_fresh
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.torch import torch_imports
from dsdoctor_checks.versions import before, release

__all__ = [
    "default_archs", "launcher_executable", "launcher_on_path", "launcher_shebang", "no_sync_fits", "ops_can_be_built",
    "optimizer_train_fits", "prebuilt_ops_fit", "upper_bounds", "wanted_minimum", "wheel_is_fresh",
]  # fmt: skip
_SHOW = "from deepspeed.accelerator import get_accelerator; print(get_accelerator().device_name())"


@check(
    "DS001",
    "DeepSpeed is installed",
    causes=["pip-needs-torch-first"],
    guards=["import"],
)
def deepspeed_installed(packages: Packages, deepspeed: DeepSpeed | None, python: Python | None, toolkits: Toolkits | None,
                        torch: Torch | None, prescriber: Prescriber) -> Iterator[Finding]:  # fmt: skip
    """DeepSpeed comes as a source package, so its install needs torch, and a CUDA toolkit only for ops built in advance."""
    if deepspeed is not None or not known(packages.lacks("deepspeed"), "whether DeepSpeed is installed"):
        return
    if torch is None and packages.version("torch") is None:
        not_applicable("torch comes first; see TORCH001")
    bare = torch is not None and torch.cuda and toolkits is not None and toolkits.selected is None
    yield Finding(
        message=f"DeepSpeed is not installed for {python.executable if python else 'the examined Python'}",
        cause="pip-needs-torch-first",
        remedy=Remedy(
            order="Install DeepSpeed, now that torch is there",
            commands=(prescriber.pip("deepspeed"),),
            verify=run_python(prescriber, "import deepspeed; print(deepspeed.__version__)"),
            note="there is no CUDA toolkit: the install works, ops that need nvcc will not build" if bare else None,
        ),
    )


@check("DS002", "DeepSpeed can be imported", causes=IMPORT_CAUSES, guards=["import"])
def deepspeed_import(live: DeepSpeedLive, torch: TorchLive | None, prescriber: Prescriber) -> Iterator[Finding]:
    """Imported in a child process after torch. Only what is DeepSpeed's own failure is judged here."""
    if not torch_imports(torch):
        not_applicable("torch cannot be imported; see TORCH002")
    said = live.imported.error or ""
    if live.imported.outcome == "error" and "No module named 'deepspeed'" in said:
        not_applicable("DeepSpeed is not installed; see DS001")
    yield from import_findings("deepspeed", live.imported, prescriber)


@check("DS003", "The installed DeepSpeed has all its folders", causes=["offline-install-layout"], guards=["import"])
def layout_whole(deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """A checkout keeps accelerator/ and op_builder/ beside the package; setup.py puts them in. A plain copy lacks them."""
    if deepspeed.has_accelerator_package is None and deepspeed.has_op_builder is None:
        unknown("DeepSpeed's folders were not looked at")
    parts = {
        "deepspeed/accelerator": deepspeed.has_accelerator_package,
        "deepspeed/ops/op_builder": deepspeed.has_op_builder,
    }
    gone = [name for name, there in parts.items() if there is False]
    if gone:
        yield Finding(
            message=f"{deepspeed.path} lacks {' and '.join(gone)}",
            cause="offline-install-layout",
            remedy=Remedy(
                order="Install DeepSpeed from its package, or with pip from a checkout",
                commands=(
                    prescriber.pip(
                        f"deepspeed=={deepspeed.version.split('+')[0]}", options="--force-reinstall --no-deps"
                    ),
                ),
                verify=run_python(prescriber, "import deepspeed"),
            ),
        )


@check(
    "DS004",
    "DeepSpeed chooses the GPU where there is one",
    causes=["cpu-accelerator-on-gpu-host", "ipex-import-forces-cpu"],
    guards=["gpu"],
)
def accelerator_is_gpu(live: DeepSpeedLive, gpus: Gpus, torch: Torch | None, environment: Environment, packages: Packages | None,
                       purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:  # fmt: skip
    """DeepSpeed falls back to its CPU accelerator with one line in the log. Training then runs, very slowly."""
    if not gpus.devices or live.accelerator is None:
        not_applicable("no NVIDIA GPU was found" if not gpus.devices else "DeepSpeed could not be imported; see DS002")
    if live.accelerator != "cpu" or (purpose is not None and not purpose.guessed and not purpose.wants_gpu):
        return
    if torch is not None and torch.cuda is None:
        not_applicable("torch is a CPU-only build; see TORCH004")
    why, remedy, cause = _why_cpu(environment, packages, prescriber)
    yield Finding(
        message=f"DeepSpeed chose its CPU accelerator although the driver lists {len(gpus.devices)} GPU(s): {why}",
        cause=cause,
        remedy=remedy,
    )


def _why_cpu(environment: Environment, packages: Packages | None, prescriber: Prescriber) -> tuple[str, Remedy, str]:
    verify, cause = run_python(prescriber, _SHOW), "cpu-accelerator-on-gpu-host"
    hidden = environment.variables.get("CUDA_VISIBLE_DEVICES")
    for name in ("DS_ACCELERATOR", "CUDA_VISIBLE_DEVICES"):
        value = environment.variables.get(name)
        if value == "cpu" or (name == "CUDA_VISIBLE_DEVICES" and hidden is not None and hidden.strip() in ("", "-1")):
            remedy = Remedy(order=f"Take {name} away", commands=(prescriber.unset(name),), verify=verify)
            return f'{name} is "{value}"', remedy, cause
    if packages is not None and packages.version("intel-extension-for-pytorch"):
        remedy = Remedy(
            order="Name the accelerator, or remove intel-extension-for-pytorch",
            commands=(prescriber.set("DS_ACCELERATOR", "cuda"),),
            verify=verify,
        )
        return "intel-extension-for-pytorch is installed", remedy, "ipex-import-forces-cpu"
    order = "Mend CUDA in torch first (TORCH005); then DeepSpeed finds the GPU by itself"
    return "torch.cuda is not available", Remedy(order=order, safety="manual", verify=verify), cause


@check(
    "DS005",
    "DS_ACCELERATOR names an accelerator that DeepSpeed knows",
    causes=["ds-accelerator-invalid"],
    guards=["import"],
)
def accelerator_name(environment: Environment, prescriber: Prescriber) -> Iterator[Finding]:
    """The value is compared letter by letter: CUDA in capitals is refused when deepspeed is imported."""
    value = environment.variables.get("DS_ACCELERATOR")
    if value is None:
        not_applicable("DS_ACCELERATOR is not set")
    names = table("deepspeed_releases")["accelerators"]["names"]
    if value in names:
        return
    lower = value.strip().lower()
    command = prescriber.set("DS_ACCELERATOR", lower) if lower in names else prescriber.unset("DS_ACCELERATOR")
    yield Finding(
        message=f'DS_ACCELERATOR is "{value}"; DeepSpeed takes {", ".join(names)}, in lower case',
        cause="ds-accelerator-invalid",
        subject="DS_ACCELERATOR",
        remedy=Remedy(
            order="Correct or remove the variable", commands=(command,), verify=run_python(prescriber, _SHOW)
        ),
    )


@check(
    "DS006",
    "This DeepSpeed release is not known to be broken",
    causes=["sdist-release-broken", "ds-build-parallel-race", "import-crashes"],
    severity=Severity.WARNING,
)
def release_not_broken(
    deepspeed: DeepSpeed, environment: Environment | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """A few releases were published with a defect of their own. Another one costs nothing."""
    accelerator = environment.get("DS_ACCELERATOR") if environment else ""
    for row in table("deepspeed_releases")["broken"]:
        named = any(release(deepspeed.version) == release(bad) for bad in row["releases"])
        idle = row.get("only_when_prebuilding") and not deepspeed.prebuilt_ops
        other = "only_with_accelerator" in row and accelerator != row["only_with_accelerator"]
        if named and not idle and not other:
            yield Finding(
                message=f"DeepSpeed {deepspeed.version} is a broken release: {row['why']}",
                cause=row["cause"],
                remedy=Remedy(
                    order=f"Install {row['use']} or newer",
                    commands=(prescriber.pip(f"deepspeed>={row['use']}", options="--upgrade"),),
                    verify=run_python(prescriber, "import deepspeed"),
                ),
            )


@check("DS007", "This DeepSpeed release is known to dsdoctor", causes=[], severity=Severity.INFO)
def deepspeed_known(deepspeed: DeepSpeed) -> Iterator[Finding]:
    """Tables end somewhere. A newer DeepSpeed may be fine; dsdoctor says that it cannot tell."""
    latest = table("deepspeed_releases")["meta"]["latest"]
    if before(latest, deepspeed.version):
        unknown(f"DeepSpeed {deepspeed.version} is newer than I know (up to {latest})")
    yield from ()


@check(
    "DS008",
    "DeepSpeed's import and its metadata tell the same version",
    causes=["local-file-shadows-deepspeed"],
    severity=Severity.WARNING,
)
def one_deepspeed(deepspeed: DeepSpeed, live: DeepSpeedLive) -> Iterator[Finding]:
    """When they differ, Python imports another copy than the one that pip manages."""
    imported = known(live.version, "the version that was imported")
    if release(imported) != release(deepspeed.version):
        yield Finding(
            message=f"`import deepspeed` gives {imported}, the metadata says {deepspeed.version} ({deepspeed.path})",
            cause="local-file-shadows-deepspeed",
            remedy=Remedy(order="Find the other copy and remove it from the path", safety="manual"),
        )
