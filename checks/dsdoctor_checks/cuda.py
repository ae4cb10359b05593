"""Checks of the CUDA toolkit that torch picks: it is there, it is whole, and it goes with torch.

What the toolkit holds and can compile is judged in toolkit_parts.py; those checks belong to this family too.
"""

from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    Finding,
    Gpus,
    Host,
    Prescriber,
    Purpose,
    Remedy,
    Severity,
    Toolkit,
    Toolkits,
    Torch,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.tables import table
from dsdoctor_checks.toolkit_parts import (
    cpu_adam_links,
    cudart_links,
    curand_headers,
    math_headers,
    nvcc_knows_arch_list,
    nvcc_knows_gpus,
    nvcc_standard,
)
from dsdoctor_checks.toolkits import (
    BASE_HEADER,
    better_toolkit,
    chosen_nvcc,
    install_toolkit,
    need_cuda_builds,
    of_distribution,
    point_at,
    usable,
)
from dsdoctor_checks.versions import before, release, series

__all__ = [
    "cpu_adam_links", "cudart_links", "curand_headers", "math_headers", "nvcc_knows_arch_list", "nvcc_knows_gpus",
    "nvcc_standard",
]  # fmt: skip


@check(
    "CUDA001",
    "torch finds a CUDA toolkit with nvcc",
    causes=[
        "cuda-home-missing",
        "cuda-home-malformed",
        "cuda-home-without-nvcc",
        "ds-report-nvcc-missing-but-on-path",
        "cuda-runtime-image",
    ],
    guards=["cuda-build"],
)
def toolkit_found(
    kits: Toolkits, torch: Torch, purpose: Purpose | None, deepspeed: DeepSpeed | None, host: Host | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """DeepSpeed compiles its CUDA ops with CUDA_HOME/bin/nvcc. torch says where CUDA_HOME is, and does not look inside."""
    need_cuda_builds(torch, purpose)
    better = better_toolkit(kits, torch)
    wrong = _wrong_with(kits, better, host)
    if wrong is None:
        return
    cause, message = wrong
    prebuilt = deepspeed.prebuilt_ops if deepspeed is not None else ()
    yield Finding(
        message=f"{message} (DeepSpeed holds {len(prebuilt)} ops that need no build)" if prebuilt else message,
        cause=cause,
        severity=Severity.WARNING if prebuilt else None,
        remedy=point_at(better, prescriber) if better else install_toolkit(torch.cuda or "", prescriber),
    )


def _wrong_with(kits: Toolkits, better: Toolkit | None, host: Host | None) -> tuple[str, str] | None:
    """Cause and message of the one thing that is wrong with torch's choice; None when it is fine."""
    kit, by = kits.selected, kits.chosen_by or "its rules"
    if kit is None:
        what = "CUDA_HOME and CUDA_PATH are not set, nvcc is not on PATH, and the default folder is not there"
        there = f"; {better.root} was not looked at by torch" if better else ""
        return "cuda-home-missing", f"torch finds no CUDA toolkit: {what}{there}"
    malformed = (
        kit.nvcc is None and kit.nvcc_problem is not None and kit.nvcc_problem.startswith(("CUDA_HOME", "CUDA_PATH"))
    )
    if malformed or not kit.exists:
        return "cuda-home-malformed", f'{by} is "{kit.root}": {kit.nvcc_problem or "no such folder"}'
    if kit.nvcc and kit.nvcc_problem:
        return "cuda-home-without-nvcc", f"{kit.nvcc} {kit.nvcc_problem}"
    if kit.nvcc:
        if better is None or kit.from_text or BASE_HEADER in kit.headers:
            return None
        return (
            "ds-report-nvcc-missing-but-on-path",
            f"torch takes {kit.root} ({by}), which has an nvcc but not {BASE_HEADER}; the toolkit is {better.root}",
        )
    if kits.nvcc_on_path:
        return (
            "ds-report-nvcc-missing-but-on-path",
            f"torch takes {kit.root} ({by}), which has no bin/nvcc; the nvcc on PATH is {kits.nvcc_on_path}",
        )
    bare = host is not None and host.container is not None and BASE_HEADER not in kit.headers and not kit.from_text
    where = f"{kit.root} ({by}) has no bin/nvcc"
    return ("cuda-runtime-image", f"{where} and no headers") if bare else ("cuda-home-without-nvcc", where)


@check(
    "CUDA002",
    "nvcc and torch have the same CUDA major version",
    causes=["torch-cuda-vs-nvcc-major", "distro-nvcc-ancient"],
    guards=["cuda-build"],
)
def same_major(
    kits: Toolkits, torch: Torch, purpose: Purpose | None, gpus: Gpus | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """An op compiled by another major version brings a second CUDA runtime. DeepSpeed and torch refuse it at install time."""
    need_cuda_builds(torch, purpose)
    kit = chosen_nvcc(kits)
    version, cuda = known(kit.version, f"the version of {kit.nvcc}"), torch.cuda or ""
    if release(version)[0] == release(cuda)[0]:
        return
    better = better_toolkit(kits, torch)
    remedy = point_at(better, prescriber) if better else _match(kit, version, cuda, gpus, prescriber)
    yield Finding(
        message=f"{kit.nvcc} is CUDA {version}, torch {torch.version} was built for CUDA {cuda}",
        cause="distro-nvcc-ancient" if of_distribution(kit) else "torch-cuda-vs-nvcc-major",
        remedy=remedy,
    )


def _match(kit: Toolkit, version: str, cuda: str, gpus: Gpus | None, prescriber: Prescriber) -> Remedy:
    """Bring the toolkit to torch; the note says how to bring torch to the toolkit."""
    releases, driver = table("torch_releases"), gpus.driver_cuda if gpus is not None else None
    fits = [
        v
        for v in releases["meta"]["variants"]
        if release(v)[0] == release(version)[0] and not (driver is not None and before(driver, v))
    ]
    note = None
    if of_distribution(kit):
        note = "the distribution's package nvidia-cuda-toolkit may stay; CUDA_HOME goes before it"
    elif fits:
        index = f"{releases['meta']['index']}/cu{fits[-1].replace('.', '')}"
        other = prescriber.pip("torch", options=f"--force-reinstall --index-url {index}")
        note = f"or keep the toolkit and install a torch for it: {other}"
    return install_toolkit(cuda, prescriber, note)


def interchangeable(deepspeed: str | None, first: str, second: str) -> bool:
    """True when this DeepSpeed release takes two minor versions of one CUDA major for one another."""
    rows = table("nvcc")["interchangeable"]
    row = next((r for r in rows if deepspeed is None or not before(deepspeed, r["since"])), None)
    if row is None:
        return False
    minors = row["minors"].get(str(release(first)[0]), [])
    return release(first)[1] in minors and release(second)[1] in minors


@check(
    "CUDA003",
    "nvcc and torch have the same CUDA minor version",
    causes=["torch-cuda-vs-nvcc-minor"],
    severity=Severity.WARNING,
)
def same_minor(
    kits: Toolkits, torch: Torch, purpose: Purpose | None, deepspeed: DeepSpeed | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """Minor versions of one CUDA go together. DeepSpeed keeps a list of them, and refuses others when it compiles at install time."""
    need_cuda_builds(torch, purpose)
    kit = chosen_nvcc(kits)
    version, cuda = known(kit.version, f"the version of {kit.nvcc}"), torch.cuda or ""
    if release(version)[0] != release(cuda)[0]:
        not_applicable("the major versions differ; see CUDA002")
    if series(version) == series(cuda):
        return
    accepted = interchangeable(deepspeed.version if deepspeed else None, version, cuda)
    who = f"DeepSpeed {deepspeed.version}" if deepspeed else "DeepSpeed"
    says = "accepts this pair" if accepted else "refuses this pair when ops are compiled at install time"
    yield Finding(
        message=f"{kit.nvcc} is CUDA {version}, torch {torch.version} was built for CUDA {cuda}; {who} {says}",
        cause="torch-cuda-vs-nvcc-minor",
        severity=Severity.INFO if accepted or kits.skip_check else None,
        remedy=_minor_remedy(accepted, better_toolkit(kits, torch), cuda, prescriber),
    )


def _minor_remedy(accepted: bool, better: Toolkit | None, cuda: str, prescriber: Prescriber) -> Remedy:
    if better is not None and better.version and series(better.version) == series(cuda):
        return point_at(better, prescriber)
    if accepted:
        return Remedy(order="Nothing need be done", note=f"nvcc {series(cuda)} would be the exact match")
    return Remedy(
        order="Tell DeepSpeed to accept the pair when it compiles at install time",
        commands=(prescriber.set("DS_SKIP_CUDA_CHECK", "1"),),
        note=f"ops that are compiled at first use are not checked; nvcc {series(cuda)} would be the exact match",
    )


@check(
    "CUDA004",
    "DS_SKIP_CUDA_CHECK hides no different major version",
    causes=["skip-cuda-check-not-enough"],
    severity=Severity.WARNING,
)
def skip_is_enough(kits: Toolkits, torch: Torch, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:
    """The variable silences DeepSpeed's own check only. torch has one too, and stops an install at another major version."""
    need_cuda_builds(torch, purpose)
    if not kits.skip_check:
        not_applicable("DS_SKIP_CUDA_CHECK is not set")
    kit = chosen_nvcc(kits)
    version = known(kit.version, f"the version of {kit.nvcc}")
    if release(version)[0] != release(torch.cuda or "")[0]:
        yield Finding(
            message=f"DS_SKIP_CUDA_CHECK=1 is set, but nvcc is CUDA {version} and torch CUDA {torch.cuda}: torch still refuses",
            cause="skip-cuda-check-not-enough",
            remedy=Remedy(
                order="Match the toolkit to torch, and take the variable away",
                commands=(prescriber.unset("DS_SKIP_CUDA_CHECK"),),
            ),
        )


@check("CUDA005", "One CUDA toolkit is installed", causes=["multiple-cuda-versions"], severity=Severity.INFO)
def one_toolkit(kits: Toolkits, torch: Torch, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:
    """With several toolkits the nvcc that you type and the nvcc that DeepSpeed runs may be two."""
    need_cuda_builds(torch, purpose)
    kit = chosen_nvcc(kits)
    there = {t.version: t.root for t in kits.found if usable(t) and t.version}
    if len(there) < 2:
        return
    listed = ", ".join(f"{version} in {root}" for version, root in sorted(there.items()))
    shell = next((t for t in kits.found if t.nvcc and t.nvcc == kits.nvcc_on_path), None)
    other = shell is not None and shell.version != kit.version
    typed = f"; the nvcc on PATH is {shell.version} ({shell.nvcc})" if shell is not None and other else ""
    yield Finding(
        message=f"CUDA {listed}: DeepSpeed takes {kit.version} ({kits.chosen_by}){typed}",
        cause="multiple-cuda-versions",
        remedy=Remedy(
            order="Put the toolkit that DeepSpeed takes first on PATH" if other else "Nothing need be done",
            commands=(prescriber.set("PATH", f"{kit.root}/bin:$PATH"),) if other and not prescriber.windows else (),
            verify="nvcc --version",
        ),
    )
