"""What the CUDA checks share: when they apply, the toolkit that torch picks, and how another one is installed or chosen."""

from dsdoctor.api import Gpus, Prescriber, Purpose, Remedy, Toolkit, Toolkits, Torch, known, not_applicable, unknown
from dsdoctor_checks.versions import release, series

BASE_HEADER = "cuda_runtime_api.h"  # every toolkit that compiles an op has it
_NO_TOOLKITS = ("/usr/local", "/opt")  # a toolkit is a folder in them
_PACKAGE_MANAGERS = ("apt", "dnf", "yum", "zypper")  # NVIDIA has a repository for these


def need_cuda(torch: Torch, gpus: Gpus | None, purpose: Purpose | None) -> str:
    """The CUDA of torch, such as "13.0"; ends the check where no CUDA op is wanted."""
    if torch.cuda is None:
        not_applicable(f"torch {torch.version} is not a CUDA build")
    builds = purpose is not None and (purpose.wants_gpu or purpose.name == "builder")
    if not builds and not (gpus is not None and gpus.devices):
        not_applicable("no GPU is here and none is wanted" + (f" (purpose {purpose.name})" if purpose else ""))
    return torch.cuda


def need_choice(toolkits: Toolkits) -> Toolkit:
    """The toolkit that torch picks."""
    if toolkits.chosen is None:
        if toolkits.found and all(kit.from_text for kit in toolkits.found):
            unknown("the pasted text does not show which toolkit torch picks")
        not_applicable("no toolkit is chosen; see CUDA001")
    return known(toolkits.selected, f"what is in {toolkits.chosen}")


def several(root: str) -> bool:
    """True for a root written like a PATH, with ``:`` in it. The ``:`` of a Windows drive is none."""
    return ":" in (root[2:] if root[:1].isalpha() else root)


def malformed(kit: Toolkit) -> bool:
    """True when the root itself cannot be right, whatever lies there."""
    return (
        not kit.exists or several(kit.root) or (kit.nvcc is None and kit.root.rstrip("/\\").endswith(("/bin", "\\bin")))
    )


def need_nvcc(toolkits: Toolkits) -> Toolkit:
    """The chosen toolkit, when it has an nvcc that answers."""
    kit = need_choice(toolkits)
    if malformed(kit):
        not_applicable(f"{kit.root} is no toolkit; see CUDA002")
    if kit.nvcc is None or (kit.nvcc_problem and kit.version is None):
        if kit.from_text and kit.version is not None:
            return kit
        not_applicable("the chosen toolkit has no nvcc that works; see CUDA003")
    return kit


def need_files(toolkits: Toolkits) -> Toolkit:
    """The chosen toolkit, when its files were looked at and are there."""
    kit = need_nvcc(toolkits)
    if kit.from_text:
        unknown("pasted text does not show the files of the toolkit")
    if lone_nvcc(toolkits, kit):
        not_applicable(f"{kit.root} has an nvcc and nothing else of a toolkit; see CUDA016")
    return kit


def lone_nvcc(toolkits: Toolkits, kit: Toolkit) -> bool:
    """True when torch went by the place of an nvcc that is only a link or a script of a toolkit elsewhere."""
    if kit.from_text or kit.nvcc is None or BASE_HEADER in kit.headers:
        return False
    return kit.root in _NO_TOOLKITS or (toolkits.chosen_by == "nvcc on PATH" and whole(toolkits, kit) is not None)


def whole(toolkits: Toolkits, kit: Toolkit) -> Toolkit | None:
    """The toolkit with headers that the nvcc of ``kit`` may belong to: it has the same release."""
    others = (
        k for k in toolkits.found if k.root != kit.root and k.nvcc and not k.nvcc_problem and BASE_HEADER in k.headers
    )
    return next((k for k in others if k.version and kit.version and series(k.version) == series(kit.version)), None)


def major(version: str) -> int:
    """13 for "13.0"."""
    return release(version)[0]


def better(toolkits: Toolkits, cuda: str) -> Toolkit | None:
    """Another toolkit on this machine with an nvcc for ``cuda``: the same release, else the same major version."""
    others = [k for k in toolkits.found if k.root != toolkits.chosen and k.nvcc and not k.nvcc_problem and k.version]
    others.sort(key=lambda k: BASE_HEADER not in k.headers and not k.from_text)
    same = [k for k in others if k.version and series(k.version) == series(cuda)]
    alike = [k for k in others if k.version and major(k.version) == major(cuda)]
    return next(iter(same + alike), None)


def verify(prescriber: Prescriber) -> str:
    """Asks the nvcc of CUDA_HOME for its version."""
    return prescriber.shell(
        '"%CUDA_HOME%\\bin\\nvcc" --version' if prescriber.windows else '"$CUDA_HOME"/bin/nvcc --version'
    )


def choose(kit: Toolkit, prescriber: Prescriber) -> Remedy:
    """Take a toolkit that is already here."""
    return Remedy(
        order=f"Use the CUDA {kit.version} toolkit that is already in {kit.root}",
        commands=(prescriber.set("CUDA_HOME", kit.root),),
        verify=verify(prescriber),
        note="add the line to the shell's profile, so that it holds for the next session",
    )


def install(cuda: str, prescriber: Prescriber, note: str | None = None) -> Remedy:
    """Install the toolkit of CUDA ``cuda`` and point CUDA_HOME to it."""
    release_of = series(cuda)
    commands, more = _install_commands(release_of, prescriber)
    return Remedy(
        order=f"Install the CUDA {release_of} toolkit and point CUDA_HOME to it",
        commands=commands,
        safety="careful" if commands else "manual",
        verify=verify(prescriber),
        note="; ".join(part for part in (more, note) if part) or None,
    )


def _install_commands(cuda: str, prescriber: Prescriber) -> tuple[tuple[str, ...], str]:
    conda = prescriber.conda("cuda-toolkit", f"cuda-version={cuda}") if major(cuda) >= 12 else None
    if conda is not None and prescriber.python_facts is not None:
        return (conda, prescriber.set("CUDA_HOME", prescriber.python_facts.prefix)), "about 5 GB"
    archive = "NVIDIA's installers are at https://developer.nvidia.com/cuda-toolkit-archive"
    if prescriber.host is None or prescriber.host.package_manager not in _PACKAGE_MANAGERS:
        return (), archive
    packages = prescriber.system(f"cuda-toolkit-{cuda.replace('.', '-')}")
    return (
        (*packages, prescriber.set("CUDA_HOME", f"/usr/local/cuda-{cuda}")),
        f"about 5 GB; the package comes from NVIDIA's repository, which must be set up; {archive}",
    )


def provide(toolkits: Toolkits, cuda: str, prescriber: Prescriber, note: str | None = None) -> Remedy:
    """A toolkit for ``cuda``: the one that is here, else an installation."""
    other = better(toolkits, cuda)
    return choose(other, prescriber) if other is not None else install(cuda, prescriber, note)
