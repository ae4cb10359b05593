"""Checks of the link step of an op: CUDA's runtime library, cuRAND, and the CPU ops of older DeepSpeed that need both."""

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    DsConfig,
    Environment,
    Finding,
    Gpus,
    Host,
    Prescriber,
    Purpose,
    Remedy,
    Toolkit,
    Toolkits,
    Torch,
    Trials,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.cuda_toolkit import malformed, need_choice, need_cuda, need_files, provide
from dsdoctor_checks.op_specs import needing
from dsdoctor_checks.tables import table
from dsdoctor_checks.trials import mildness, refusals, tried
from dsdoctor_checks.versions import before, release, series

_PACKAGE_MANAGERS = ("apt", "dnf", "yum", "zypper")


def _need_linker(toolkits: Toolkits, host: Host | None) -> Toolkit:
    """The chosen toolkit, where a library is found by its folder."""
    kit = need_files(toolkits)
    if host is not None and host.system == "windows":
        not_applicable("on Windows torch names the library folder itself")
    return kit


def _folder(kit: Toolkit) -> str:
    return f"{kit.root.rstrip('/')}/{kit.lib_dir or ('lib' if kit.found_by in ('pip', 'conda') else 'lib64')}"


def _listed(environment: Environment | None) -> list[str]:
    """The folders of LIBRARY_PATH."""
    listed = environment.get("LIBRARY_PATH").split(":") if environment is not None else []
    return [folder.rstrip("/") for folder in listed if folder]


def _install(kit: Toolkit, name: str, prescriber: Prescriber, note: str | None = None) -> Remedy:
    """The development package of one library, or the missing name for pip's file."""
    version, folder = series(known(kit.version, f"the version of the toolkit in {kit.root}")), _folder(kit)
    verify = prescriber.shell(f"ls {shlex.quote(folder)}/lib{name}.so")
    if kit.found_by == "pip":
        number = "10" if name == "curand" else str(release(version)[0])  # libcurand.so.10 in CUDA 11 to 13
        link = f"ln -s lib{name}.so.{number} {shlex.quote(folder)}/lib{name}.so"
        order = f"Give pip's lib{name} the name that the linker looks for"
        return Remedy(order=order, commands=(prescriber.shell(link),), safety="careful", verify=verify, note=note)
    package = {"cudart": "cuda-cudart-dev"}.get(name, f"lib{name}-dev")
    conda = prescriber.conda(package, f"cuda-version={version}") if kit.found_by == "conda" else None
    commands: tuple[str, ...] = (conda,) if conda else ()
    manager = prescriber.host.package_manager if prescriber.host is not None else None
    if not conda and manager in _PACKAGE_MANAGERS:
        named = package if manager == "apt" else f"{package}el"  # NVIDIA calls the RPM packages -devel
        commands = prescriber.system(f"{named}-{version.replace('.', '-')}")
    return Remedy(
        order=f"Install the development files of lib{name} for CUDA {version}",
        commands=commands,
        safety="careful" if commands else "manual",
        verify=verify,
        note=note,
    )


def _name_folder(folder: str, name: str, prescriber: Prescriber) -> Remedy:
    command = prescriber.set("LIBRARY_PATH", f"{folder}:$LIBRARY_PATH")
    verify = prescriber.shell(f"ls {shlex.quote(folder)}/lib{name}.so")
    return Remedy(order="Name the folder for the linker", commands=(command,), verify=verify)


@check(
    "CUDA018",
    "The linker finds CUDA's runtime library",
    causes=["libcudart-link-failure"],
    guards=["cuda-build"],
)
def cudart_linked(
    toolkits: Toolkits,
    torch: Torch,
    gpus: Gpus | None,
    purpose: Purpose | None,
    host: Host | None,
    trials: Trials | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:
    """torch links every CUDA op with -lcudart. The linker needs libcudart.so, without a number behind it."""
    need_cuda(torch, gpus, purpose)
    kit = _need_linker(toolkits, host)
    trial = tried(trials, "link-cudart")
    if trial.outcome != "ok" if trial else "cudart" not in kit.libraries:
        numbered = "; pip's package has it with a number only" if kit.found_by == "pip" else ""
        yield Finding(
            message=f"no libcudart.so in {_folder(kit)} nor in the linker's own folders{numbered}: no CUDA op can be linked",
            cause="libcudart-link-failure",
            evidence=refusals(trial),
            remedy=_install(kit, "cudart", prescriber)
            if "cudart" not in kit.libraries
            else _name_folder(_folder(kit), "cudart", prescriber),
        )


@check(
    "CUDA011",
    "The linker finds cuRAND for the ops that need it",
    causes=["libcurand-link-failure", "conda-lib-not-lib64"],
    guards=["curand"],
)
def curand_linked(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, host: Host | None,
    environment: Environment | None, deepspeed: DeepSpeed | None, trials: Trials | None, config: DsConfig | None,
    prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """Six ops are linked with -lcurand. pip's NVIDIA packages have only libcurand.so.10, which the linker does not take."""
    need_cuda(torch, gpus, purpose)
    kit = _need_linker(toolkits, host)
    ops, folder, trial = ", ".join(needing("curand")), _folder(kit), tried(trials, "link-curand")
    if trial is not None and trial.outcome == "ok":
        return
    if "curand" not in kit.libraries:
        if deepspeed is not None and _cpu_ops_need_cuda(deepspeed):
            not_applicable("CPU Adam of this DeepSpeed needs it too; see CUDA019")
        yield Finding(
            message=f"no libcurand.so in {folder} nor in the linker's own folders: {ops} cannot be linked",
            cause="libcurand-link-failure",
            severity=mildness("curand", config),
            evidence=refusals(trial),
            remedy=_install(kit, "curand", prescriber),
        )
    elif trial is not None or (_looks_into_lib64(kit, torch) and folder not in _listed(environment)):
        yield Finding(
            message=f"libcurand.so lies in {folder}, where the linker does not look: {ops} cannot be linked",
            cause="conda-lib-not-lib64" if kit.lib_dir == "lib" else "libcurand-link-failure",
            severity=mildness("curand", config),
            evidence=refusals(trial),
            remedy=_name_folder(folder, "curand", prescriber),
        )


def _looks_into_lib64(kit: Toolkit, torch: Torch) -> bool:
    """True when torch names a folder lib64 that this toolkit of conda does not have."""
    return (
        kit.lib_dir == "lib"
        and kit.found_by == "conda"
        and before(torch.version, table("nvcc")["lib_for_lib64"]["torch"])
    )


def _cpu_ops_need_cuda(deepspeed: DeepSpeed) -> bool:
    """True when CPU Adam is a CUDA builder in this release and is not compiled in."""
    row = table("nvcc")["cpu_ops"]
    old = before(deepspeed.version, row["cuda_before"]) and not before(deepspeed.version, row["since"])
    return old and not set(row["ops"]) <= set(deepspeed.prebuilt_ops)


@check(
    "CUDA019",
    "CPU Adam of an older DeepSpeed finds the CUDA toolkit that it links",
    causes=["cuda-home-missing", "cuda-home-malformed", "cuda-home-without-nvcc", "libcurand-link-failure"],
    guards=["cpp-build"],
)
def cpu_ops_linked(
    toolkits: Toolkits, torch: Torch, gpus: Gpus | None, purpose: Purpose | None, host: Host | None,
    environment: Environment | None, deepspeed: DeepSpeed, prescriber: Prescriber,
) -> Iterator[Finding]:  # fmt: skip
    """Before 0.19.8 the builders of the CPU optimizers ran nvcc and linked -lcurand as soon as torch saw a GPU."""
    cuda = need_cuda(torch, gpus, purpose)
    if not _cpu_ops_need_cuda(deepspeed):
        not_applicable(f"DeepSpeed {deepspeed.version} builds CPU Adam without CUDA, or it is compiled in")
    row = table("nvcc")["cpu_ops"]
    note = f"or update DeepSpeed to {row['cuda_before']}, whose CPU ops need no CUDA"
    lacking = _no_nvcc(toolkits)
    remedy = provide(toolkits, cuda, prescriber, note) if lacking else None
    if lacking is None:
        kit = _need_linker(toolkits, host)
        lacking = _no_curand(kit, deepspeed, environment)
        remedy = _let_curand_be_found(kit, prescriber, note)
    if lacking is not None:
        cause, said = lacking
        message = f"DeepSpeed {deepspeed.version} builds {', '.join(row['ops'])} with nvcc and -lcurand when torch sees a GPU: {said}"
        yield Finding(message=message, cause=cause, remedy=remedy)


def _no_nvcc(toolkits: Toolkits) -> tuple[str, str] | None:
    """Cause and words when torch's choice has no nvcc that runs."""
    if toolkits.chosen is None and not any(kit.from_text for kit in toolkits.found):
        return "cuda-home-missing", "torch finds no CUDA toolkit"
    kit = need_choice(toolkits)
    if malformed(kit):
        return "cuda-home-malformed", f"{toolkits.chosen_by} is {kit.root}, which is no toolkit"
    if not kit.from_text and (kit.nvcc is None or kit.nvcc_problem):
        return "cuda-home-without-nvcc", f"{kit.root} has no nvcc that runs"
    return None


def _no_curand(kit: Toolkit, deepspeed: DeepSpeed, environment: Environment | None) -> tuple[str, str] | None:
    """Cause and words when the link step of the CPU ops does not find libcurand."""
    path, bounds = kit.libraries.get("curand"), table("nvcc")["cpu_ops"]["no_folder"]
    if path is None:
        return "libcurand-link-failure", f"no libcurand.so in {_folder(kit)} nor in the linker's own folders"
    folder = path.rpartition("/")[0]
    blind = not before(deepspeed.version, bounds["from"]) and before(deepspeed.version, bounds["before"])
    inside = path.startswith(f"{kit.root.rstrip('/')}/") and kit.root not in ("/", "/usr")
    if blind and inside and folder not in _listed(environment):
        return "libcurand-link-failure", f"it names no folder for the linker, and libcurand.so is in {folder}"
    return None


def _let_curand_be_found(kit: Toolkit, prescriber: Prescriber, note: str) -> Remedy:
    path = kit.libraries.get("curand")
    if path is None:
        return _install(kit, "curand", prescriber, note)
    return _name_folder(path.rpartition("/")[0], "curand", prescriber)
