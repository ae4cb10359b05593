"""Checks of the Python environment: what is installed, whether it is whole, and whether its programs can be started."""

import re
from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    DsConfig,
    Environment,
    Evidence,
    Finding,
    Packages,
    Prescriber,
    Python,
    Remedy,
    Severity,
    Torch,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.pairs import pair_findings
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, series

_ONE_BIT = {"onebitadam", "onebitlamb", "zerooneadam"}
_SHOWN = 5  # damaged files named one by one; the rest is counted


@check(
    "PY001",
    "distutils can be imported, by Python itself or through setuptools",
    causes=["distutils-missing-py312"],
    guards=["cpp-build", "cuda-build"],
)
def distutils_there(
    python: Python, packages: Packages, prescriber: Prescriber, deepspeed: DeepSpeed | None
) -> Iterator[Finding]:
    """Python 3.12 dropped distutils. torch's extension builder and DeepSpeed's probes live on the copy in setuptools."""
    if before(python.version, "3.12"):
        not_applicable(f"Python {python.version} still has distutils")
    if not known(packages.lacks("setuptools"), "whether setuptools is installed"):
        return
    bound = table("deepspeed_releases")["distutils"]["import_fixed_in"]
    dies = deepspeed is not None and before(deepspeed.version, bound)
    effect = "`import deepspeed` fails" if dies else "ds_report and every build of an op fail"
    yield Finding(
        message=f"Python is {python.version}, which has no distutils, and setuptools is not installed: {effect}",
        cause="distutils-missing-py312",
        remedy=Remedy(
            order="Install setuptools into this environment",
            commands=(prescriber.pip("setuptools<82"),),
            verify=run_python(prescriber, "import distutils"),
        ),
    )


@check(
    "PY002",
    "The files of torch, DeepSpeed and Triton are whole",
    causes=["package-files-damaged"],
    guards=["import"],
)
def files_whole(packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """A cut download or a full disk leaves short files behind. The import then dies by a signal, without a message."""
    if not packages.integrity_checked:
        not_applicable("no file was compared with its RECORD here")
    for name in dict.fromkeys(damage.distribution for damage in packages.damaged):
        hurt = [damage for damage in packages.damaged if damage.distribution == name]
        first, version = hurt[0], packages.version(name)
        state = "is missing" if first.kind == "missing" else f"has {first.actual_bytes or 0:,} bytes"
        more = f", and {len(hurt) - 1} more files are damaged" if len(hurt) > 1 else ""
        wanted = f"{name}=={version}" if version else name
        yield Finding(
            message=f"{name}: {first.file} {state}, its RECORD says {first.expected_bytes or 0:,}{more}",
            cause="package-files-damaged",
            subject=name,
            evidence=tuple(
                Evidence(where=d.file, text=f"{d.kind}: {d.actual_bytes} of {d.expected_bytes} bytes")
                for d in hurt[:_SHOWN]
            ),
            remedy=Remedy(
                order=f"Reinstall {wanted}, after a look at the free disk space",
                commands=(prescriber.pip(wanted, options="--force-reinstall --no-deps --no-cache-dir"),),
                verify=run_python(prescriber, f"import {name if name in ('deepspeed', 'triton') else 'torch'}"),
            ),
        )


@check(
    "PY003",
    "Every distribution is installed once",
    causes=["package-files-damaged"],
    severity=Severity.WARNING,
)
def installed_once(packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """Two versions side by side, or `~name` folders, are what a pip that was interrupted leaves behind."""
    for name, versions in packages.duplicates.items():
        yield Finding(
            message=f"{name} has metadata of {len(versions)} versions side by side: {', '.join(versions)}",
            cause="package-files-damaged",
            subject=name,
            remedy=Remedy(
                order=f"Remove {name} until pip finds no more of it, then install it once",
                commands=(
                    *(prescriber.pip_uninstall(name) for _ in versions),
                    prescriber.pip(name, options="--no-cache-dir"),
                ),
                safety="careful",
            ),
        )
    if packages.leftovers:
        yield Finding(
            message=f"site-packages holds the remains of an interrupted pip: {', '.join(packages.leftovers)}",
            cause="package-files-damaged",
            severity=Severity.INFO,
            remedy=Remedy(order="Delete these folders", safety="careful"),
        )


@check(
    "PY004",
    "No file of yours hides torch, DeepSpeed or what they import",
    causes=["local-file-shadows-deepspeed"],
    guards=["import"],
)
def nothing_shadowed(packages: Packages) -> Iterator[Finding]:
    """Python looks into the working folder first. A script called deepspeed.py is then imported instead of the package."""
    for shadow in packages.shadows:
        yield Finding(
            message=f"`import {shadow.module}` takes {shadow.path} and not the installed package",
            cause="local-file-shadows-deepspeed",
            subject=shadow.module,
            remedy=Remedy(
                order=f"Rename {shadow.path}, or start Python in another folder; delete its __pycache__",
                safety="manual",
            ),
        )


@check(
    "PY005",
    "No folder of another Python's packages is on the path",
    causes=["local-file-shadows-deepspeed"],
    severity=Severity.WARNING,
)
def path_is_own(python: Python, prescriber: Prescriber) -> Iterator[Finding]:
    """Compiled packages of one Python version crash in another. PYTHONPATH often brings them in."""
    own = series(python.version)
    for folder in python.sys_path_extra:
        other = re.search(r"python(\d\.\d+)[/\\](?:site|dist)-packages", folder)
        if other and other.group(1) != own:
            yield Finding(
                message=f"{folder} is on the import path of Python {own}, but belongs to Python {other.group(1)}",
                cause="local-file-shadows-deepspeed",
                subject=folder,
                remedy=Remedy(
                    order="Take the folder off PYTHONPATH",
                    commands=(prescriber.unset("PYTHONPATH"),),
                    safety="careful",
                ),
            )


@check("PY006", "pydantic and DeepSpeed go together", causes=["pydantic-v2-break"], guards=["import"])
def pydantic_fits(packages: Packages, deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """DeepSpeed before 0.11.2 wants pydantic 1; from 0.15.0 on it wants pydantic 2."""
    found = known(packages.version("pydantic"), "pydantic's version")
    yield from pair_findings("pydantic-v2-break", found, deepspeed.version, prescriber)
    needs = table("deepspeed_releases")["requires"]["pydantic"]
    if before(found, needs["at_least"]) and not before(deepspeed.version, needs["since"]):
        yield Finding(
            message=f"pydantic is {found}; DeepSpeed {deepspeed.version} needs {needs['at_least']} or newer",
            cause="pydantic-v2-break",
            remedy=Remedy(
                order="Update pydantic",
                commands=(prescriber.pip("pydantic>=2", options="--upgrade"),),
                verify=run_python(prescriber, "import deepspeed"),
            ),
        )


@check("PY007", "NumPy and DeepSpeed go together", causes=["numpy2-break"], guards=["import"])
def numpy_fits(packages: Packages, deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """DeepSpeed before 0.14.4 imports a private constant that NumPy 2 removed."""
    found = known(packages.version("numpy"), "NumPy's version")
    yield from pair_findings("numpy2-break", found, deepspeed.version, prescriber)


@check("PY008", "The packaging library is new enough", causes=["packaging-too-old"], guards=["import"])
def packaging_new(packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """DeepSpeed compares versions by Version.major, which packaging before 20.0 lacks."""
    found = known(packages.version("packaging"), "packaging's version")
    wanted = table("deepspeed_releases")["requires"]["packaging"]["at_least"]
    if before(found, wanted):
        yield Finding(
            message=f"packaging is {found}; DeepSpeed needs {wanted} or newer",
            cause="packaging-too-old",
            remedy=Remedy(
                order="Update packaging",
                commands=(prescriber.pip(f"packaging>={wanted}", options="--upgrade"),),
                verify=run_python(prescriber, "import deepspeed"),
            ),
        )


@check(
    "PY009",
    "setuptools still carries what this torch imports",
    causes=["pkg-resources-packaging"],
    guards=["cpp-build", "cuda-build"],
)
def setuptools_fits(packages: Packages, torch: Torch, prescriber: Prescriber) -> Iterator[Finding]:
    """torch before 2.3 imports packaging from pkg_resources; setuptools 70 dropped it. torch 2.11 and 2.12 exclude setuptools 82."""
    if known(packages.lacks("setuptools"), "setuptools' version"):
        not_applicable("setuptools is not installed")
    found = packages.version("setuptools") or "0"
    old = table("torch_releases")["pkg_resources"]
    limit = table("torch_releases")["series"].get(series(torch.version), {}).get("setuptools_below")
    too_new = before(torch.version, old["torch_before"]) and not before(found, old["setuptools_from"])
    bound = old["setuptools_from"] if too_new else limit
    if bound is None or before(found, bound):
        return
    yield Finding(
        message=f"setuptools is {found}; torch {torch.version} needs one before {bound} to build extensions",
        cause="pkg-resources-packaging",
        severity=None if too_new else Severity.WARNING,
        remedy=Remedy(
            order=f"Install a setuptools before {bound}",
            commands=(prescriber.pip(f"setuptools<{bound}"),),
            verify=run_python(prescriber, "import torch.utils.cpp_extension"),
        ),
    )


@check(
    "PY010",
    "setuptools can build DeepSpeed's source package",
    causes=["setuptools-new-breaks-sdist"],
    severity=Severity.INFO,
)
def setuptools_builds(packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """setuptools 77 refused the metadata of DeepSpeed's source package for some users; 78.0.1 takes it."""
    found = packages.version("setuptools") or "0"
    if packages.version("deepspeed") is not None:
        not_applicable("DeepSpeed is installed already")
    if series(found).startswith("77."):
        yield Finding(
            message=f"setuptools is {found}; release 77 was seen to refuse DeepSpeed's source package",
            cause="setuptools-new-breaks-sdist",
            remedy=Remedy(
                order="Update setuptools before you install DeepSpeed",
                commands=(prescriber.pip("setuptools>=78.0.1,<82", options="--upgrade"),),
            ),
        )


@check(
    "PY011",
    "The optimizer of your ds_config finds the packages that it imports",
    causes=["onebit-cupy-missing"],
    guards=["config"],
)
def cupy_there(config: DsConfig, packages: Packages, torch: Torch, prescriber: Prescriber) -> Iterator[Finding]:
    """The 1-bit optimizers import cupy when they start. No default install brings it."""
    optimizer = str(config.get("optimizer.type", ""))
    if optimizer.lower() not in _ONE_BIT:
        not_applicable("no 1-bit optimizer is configured")
    if any(name.startswith("cupy") for name in packages.distributions):
        return
    known(packages.lacks("cupy"), "whether cupy is installed")
    wanted = f"cupy-cuda{torch.cuda.split('.')[0]}x" if torch.cuda else "cupy"
    yield Finding(
        message=f"optimizer.type is {optimizer} ({config.where('optimizer.type')}), which imports cupy; cupy is not installed",
        cause="onebit-cupy-missing",
        subject="optimizer.type",
        remedy=Remedy(
            order="Install cupy for torch's CUDA",
            commands=(prescriber.pip(wanted),),
            verify=run_python(prescriber, "import cupy"),
        ),
    )


@check(
    "PY012",
    "Only one kind of environment is active",
    causes=["deepspeed-not-on-path"],
    severity=Severity.INFO,
)
def one_environment(python: Python, environment: Environment) -> Iterator[Finding]:
    """With a conda and a virtual environment active at once, programs can come from one and packages from the other."""
    conda, venv = environment.get("CONDA_PREFIX"), environment.get("VIRTUAL_ENV")
    if conda and venv and conda != venv:
        yield Finding(
            message=f"CONDA_PREFIX is {conda} and VIRTUAL_ENV is {venv}; the examined Python lives in {python.prefix}",
            cause="deepspeed-not-on-path",
            remedy=Remedy(order="Deactivate the environment that you do not use", commands=("conda deactivate",)),
        )
