"""What the checks of toolkits and compilers share: when they apply, which toolkit would be better, how one is installed."""

from dsdoctor.api import Prescriber, Purpose, Remedy, Toolkit, Toolkits, Torch, not_applicable
from dsdoctor_checks.versions import release, series

BASE_HEADER = "cuda_runtime_api.h"
_DOWNLOADS = "https://developer.nvidia.com/cuda-downloads"
_DISTRIBUTION = ("/usr/bin/", "/usr/lib/nvidia-cuda-toolkit/")


def need_cuda_builds(torch: Torch, purpose: Purpose | None) -> None:
    """End the check where no CUDA op is ever built."""
    if torch.cuda is None:
        not_applicable(f"torch {torch.version} is not a CUDA build: no CUDA op is built")
    if purpose is not None and purpose.name == "ci-cpu":
        not_applicable("the purpose is ci-cpu: DeepSpeed takes the CPU accelerator, which builds no CUDA op")


def chosen_nvcc(kits: Toolkits) -> Toolkit:
    """The toolkit that torch picks, with a working nvcc; else the check ends, for CUDA001 tells why."""
    kit = kits.selected
    if kit is None or not usable(kit):
        not_applicable("no working nvcc is chosen; see CUDA001")
    return kit


def usable(kit: Toolkit) -> bool:
    """True when its nvcc is there and answered."""
    return kit.nvcc is not None and kit.nvcc_problem is None


def of_distribution(kit: Toolkit) -> bool:
    """True for the toolkit of Debian's and Ubuntu's package nvidia-cuda-toolkit."""
    return kit.root == "/usr" or (kit.nvcc or "").startswith(_DISTRIBUTION)


def better_toolkit(kits: Toolkits, torch: Torch) -> Toolkit | None:
    """Another toolkit here that goes with torch: same CUDA release before same major version. None when there is none."""
    wanted = torch.cuda or ""
    fits = [
        kit
        for kit in kits.found
        if kit.root != kits.chosen and usable(kit) and kit.version and BASE_HEADER in kit.headers
        if release(kit.version)[0] == release(wanted)[0]
    ]
    return next(iter(sorted(fits, key=lambda kit: series(kit.version or "") != series(wanted))), None)


def point_at(kit: Toolkit, prescriber: Prescriber) -> Remedy:
    """Set CUDA_HOME to a toolkit that is here."""
    commands = [prescriber.set("CUDA_HOME", kit.root)]
    if not prescriber.windows and not prescriber.notebook:
        commands.append(prescriber.set("PATH", f"{kit.root}/bin:$PATH"))
    return Remedy(
        order=f"Point CUDA_HOME at {kit.root} (CUDA {kit.version})",
        commands=tuple(commands),
        verify=_verify(kit.root, prescriber),
    )


def _verify(root: str, prescriber: Prescriber) -> str:
    return f'"{root}\\bin\\nvcc" --version' if prescriber.windows else prescriber.shell(f"{root}/bin/nvcc --version")


def install_toolkit(cuda: str, prescriber: Prescriber, note: str | None = None, *packages: str) -> Remedy:
    """Install NVIDIA's toolkit of release ``cuda``, or only its ``packages`` (named as conda names them)."""
    cuda, host, python = series(cuda), prescriber.host, prescriber.python_facts
    names = packages or ("cuda-toolkit",)
    what = f"CUDA toolkit {cuda}" if not packages else f"CUDA {cuda}'s {', '.join(packages)}"
    if python is not None and python.environment == "conda":
        wanted = " ".join(f"{name}={cuda}" if name == "cuda-toolkit" else name for name in names)
        channel = "nvidia" if not packages else f"nvidia/label/cuda-{cuda}.0"
        return Remedy(
            order=f"Install the {what} into the conda environment",
            commands=(
                prescriber.shell(f"conda install -y -p {python.prefix} -c {channel} {wanted}"),
                prescriber.set("CUDA_HOME", python.prefix),
            ),
            safety="careful",
            verify=_verify(python.prefix, prescriber),
            note=note,
        )
    if host is None or host.package_manager not in ("apt", "dnf", "yum", "zypper"):
        order = f"Install the {what} from {_DOWNLOADS} and set CUDA_HOME to its folder"
        return Remedy(order=order, safety="manual", note=note)
    root = f"/usr/local/cuda-{cuda}"
    hints = [f"the package is in NVIDIA's repository, see {_DOWNLOADS}"]
    if host.scheduler == "slurm":
        hints.insert(0, "a cluster often has it as a module: module avail cuda")
    elif host.container is not None:
        hints.insert(0, f"better still, build the image from nvidia/cuda with tag {cuda}.x-devel")
    elif host.wsl:
        hints.append("never install a driver inside WSL")
    dashed = cuda.replace(".", "-")
    rpm = host.package_manager != "apt"  # NVIDIA calls the RPM packages -devel
    names = tuple(f"{name}el" if rpm and name.endswith("-dev") else name for name in names)
    return Remedy(
        order=f"Install the {what} and set CUDA_HOME to it",
        commands=(*prescriber.system(*(f"{name}-{dashed}" for name in names)), prescriber.set("CUDA_HOME", root)),
        safety="careful",
        verify=_verify(root, prescriber),
        note="; ".join([*hints, *([note] if note else [])]),
    )
