"""From what texts tell to the sections of a snapshot. A section that a text does not fill is left out."""

from dsdoctor.facts import (
    Compiler,
    Compilers,
    Cpu,
    DeepSpeed,
    DeepSpeedLive,
    Distribution,
    Fact,
    Gpu,
    Gpus,
    Host,
    Import,
    Memory,
    Packages,
    Python,
    RunPlan,
    Toolkit,
    Toolkits,
    Torch,
)
from dsdoctor.facts.host import PackageManager
from dsdoctor.readers import regex
from dsdoctor.readers.nvcc import UNKNOWN_ROOT
from dsdoctor.readers.told import Told, first

UNTOLD = "(not in the text)"
HOME_ROOT = "(CUDA_HOME of the run)"
_LINUX = regex.compile(
    r"^Linux-(.+?)-(x86_64|aarch64|ppc64le|i686|riscv64|s390x|armv7l)-with-?(?:(glibc|musl)(\d+\.\d+))?"
)
_MAC = regex.compile(r"^(?:macOS|Darwin)-([\d.]+)-(arm64|x86_64)")
_WINDOWS = regex.compile(r"^Windows-\w+-([\d.]+)")
_MACHINE = regex.compile(r"\((x86_64|aarch64|ppc64le|arm64|AMD64)\)\s*$")
_RELEASE = regex.compile(r"\bv?(\d+(?:\.\d+)*)")
_DISTRIBUTIONS: tuple[tuple[str, str, PackageManager], ...] = (
    ("Ubuntu", "ubuntu", "apt"), ("Debian", "debian", "apt"), ("Pop!_OS", "pop", "apt"), ("Linux Mint", "linuxmint", "apt"),
    ("Red Hat Enterprise Linux", "rhel", "dnf"), ("Rocky Linux", "rocky", "dnf"), ("AlmaLinux", "almalinux", "dnf"),
    ("Fedora", "fedora", "dnf"), ("CentOS Linux 7", "centos", "yum"), ("CentOS", "centos", "dnf"), ("Amazon Linux 2023", "amzn", "dnf"),
    ("Amazon Linux", "amzn", "yum"), ("SUSE", "sles", "zypper"), ("openSUSE", "opensuse", "zypper"), ("Arch Linux", "arch", "pacman"),
    ("Alpine", "alpine", "apk"),
)  # fmt: skip
_NAMED = regex.compile(r"/cuda-(\d+\.\d+)(?:\.\d+)?/?$")
_CONDA = regex.compile(r"(?:mini|ana|micro|mamba)(?:conda|forge|mamba)?\d?(?:/|$)|/conda(?:/|$)|/envs/[^/]+$")


def sections(told: Told) -> dict[str, Fact]:
    """All sections that ``told`` fills, by their name in a Snapshot."""
    made: dict[str, Fact | None] = {
        "torch": _torch(told),
        "deepspeed": _deepspeed(told),
        "deepspeed_live": _live(told),
        "python": _python(told),
        "packages": _packages(told),
        "host": _host(told),
        "cpu": _cpu(told),
        "memory": Memory(total_bytes=told.ram_bytes) if told.ram_bytes else None,
        "compilers": _compilers(told),
        "toolkits": _toolkits(told),
        "gpus": _gpus(told),
        "run_plan": _run_plan(told),
    }
    return {name: fact for name, fact in made.items() if fact is not None}


def _torch(told: Told) -> Torch | None:
    """None when only the version is told: whether it is a CUDA build decides nearly everything."""
    if told.torch is None or told.build is None:
        return None
    path = told.torch_path or (f"{told.site_packages}/torch" if told.site_packages else UNTOLD)
    cuda = told.build.version if told.build.kind == "cuda" else None
    hip = told.build.version if told.build.kind == "hip" else None
    return Torch(version=told.torch, cuda=cuda, hip=hip, path=path, from_text=True)


def _deepspeed(told: Told) -> DeepSpeed | None:
    if told.deepspeed is None:
        return None
    path = f"{told.site_packages}/deepspeed" if told.site_packages else UNTOLD
    return DeepSpeed(version=told.deepspeed, path=path, from_text=True)


def _live(told: Told) -> DeepSpeedLive | None:
    """An engine that began is an import that worked."""
    if not told.engine or told.accelerator is None:
        return None
    return DeepSpeedLive(imported=Import(outcome="ok"), version=told.deepspeed, accelerator=told.accelerator)


def _python(told: Told) -> Python | None:
    if told.python is None:
        return None
    prefix = told.prefix or UNTOLD
    conda = told.prefix is not None and _CONDA.search(told.prefix) is not None
    venv = told.prefix is not None and "venv" in told.prefix
    return Python(
        executable=f"{told.prefix}/bin/python" if conda or venv else "python",
        chosen_because="the pasted text speaks of it",
        version=told.python,
        prefix=prefix,
        base_prefix=UNTOLD,
        environment="conda" if conda else "venv" if venv else "system",
        site_packages=(told.site_packages,) if told.site_packages else (),
    )


def _packages(told: Told) -> Packages | None:
    own = {name: version for name, version in (("torch", told.torch), ("deepspeed", told.deepspeed)) if version}
    named = told.packages | own
    if not named:
        return None
    location = told.site_packages or UNTOLD
    found = {name: Distribution(name=name, version=version, location=location) for name, version in named.items()}
    return Packages(distributions=found, partial=not told.whole)


def _host(told: Told) -> Host | None:
    """The operating system, by ``platform.platform()`` and by the name that it gives itself."""
    shown, name = told.platform or "", _MACHINE.sub("", told.os or "").strip() or None
    machine = _MACHINE.search(told.os or "")
    if (mac := _MAC.match(shown)) or (name or "").lower().startswith(("macos", "mac os")):
        release = mac.group(1) if mac else first(_RELEASE, name)
        arch = mac.group(2) if mac else machine.group(1) if machine else UNTOLD
        return Host(
            system="darwin", kernel=release or UNTOLD, machine=arch, distribution="macos", distribution_name=name
        )
    if (windows := _WINDOWS.match(shown)) or "Windows" in (name or ""):
        kernel = windows.group(1) if windows else UNTOLD
        return Host(system="windows", kernel=kernel, machine="AMD64", distribution="windows", distribution_name=name)
    linux = _LINUX.match(shown)
    known = next((row for row in _DISTRIBUTIONS if name and row[0].lower() in name.lower()), None)
    if linux is None and known is None:
        return None
    kernel = linux.group(1) if linux else UNTOLD
    libc = (
        f"{linux.group(3)} {linux.group(4)}"
        if linux and linux.group(3)
        else (told.libc or "").replace("-", " ") or None
    )
    return Host(
        system="linux",
        kernel=kernel,
        machine=linux.group(2) if linux else machine.group(1) if machine else UNTOLD,
        distribution=known[1] if known else None,
        distribution_version=first(_RELEASE, name) if known else None,
        distribution_name=name,
        libc=libc,
        wsl=2 if "WSL2" in kernel else 1 if kernel.endswith("-Microsoft") else None,
        package_manager=known[2] if known else None,
    )


def _cpu(told: Told) -> Cpu | None:
    """Rows of lscpu."""
    rows = told.cpu or {}
    kind = {"x86_64": "X86_64", "aarch64": "ARM_8", "ppc64le": "PPC_64"}.get(rows.get("Architecture", ""))
    if kind is None or "Model name" not in rows:
        return None
    cores = rows.get("CPU(s)", "")
    return Cpu(
        model=rows["Model name"],
        vendor=rows.get("Vendor ID"),
        architecture=kind,
        logical_cores=int(cores) if cores.isascii() and cores.isdigit() and len(cores) < 6 else None,
        flags=tuple(rows.get("Flags", "").split()),
    )


def _compilers(told: Told) -> Compilers | None:
    """gcc on PATH is what nvcc takes; which c++ torch would take is not told."""
    gcc = Compiler(command="gcc", path="gcc", selected_by="PATH", family="gcc", version=told.gcc) if told.gcc else None
    clang = (
        Compiler(command="clang", path="clang", selected_by="PATH", family="clang", version=told.clang)
        if told.clang
        else None
    )
    found = tuple(compiler for compiler in (gcc, clang) if compiler is not None)
    return Compilers(nvcc_host=gcc, found=found, from_text=True) if found else None


def _toolkits(told: Told) -> Toolkits | None:
    """The toolkit that torch picks when a build tells it, else that of the nvcc on PATH."""
    root = told.toolkit or (HOME_ROOT if told.home_nvcc else None)
    if root is not None:
        version = told.home_nvcc or first(_NAMED, root)
        kit = Toolkit(root=root, found_by="CUDA_HOME", nvcc=f"{root}/bin/nvcc", version=version, from_text=True)
        return Toolkits(found=(kit,), chosen=root, chosen_by="CUDA_HOME")
    if told.nvcc is None:
        return None
    nvcc = f"{UNKNOWN_ROOT}/bin/nvcc"
    kit = Toolkit(root=UNKNOWN_ROOT, found_by="PATH", nvcc=nvcc, version=told.nvcc, from_text=True)
    return Toolkits(found=(kit,), chosen=UNKNOWN_ROOT, chosen_by="nvcc on PATH", nvcc_on_path=nvcc)


def _gpus(told: Told) -> Gpus | None:
    """nvidia-smi's list, or the one device that a framework names: how many there are is not told then."""
    names = told.gpus or {}
    others = told.other_gpus + tuple(name for name in names.values() if name.startswith(("AMD ", "Intel", "Apple")))
    devices = tuple(Gpu(index=n, name=name) for n, name in sorted(names.items()) if name not in others)
    if not devices and not others:
        return None
    return Gpus(
        nvml="ok",
        driver_version=told.driver,
        devices=devices,
        others=others,
        read_from="text" if told.listed else "torch",
    )


def _run_plan(told: Told) -> RunPlan | None:
    """Ranks that all of the nodes have, when each has as many as the one whose launcher wrote this."""
    if told.ranks is None or not all(told.ranks):
        return None
    nodes, here = told.ranks
    return RunPlan(gpus_per_node=here, nodes=nodes, named_by=f"the launcher's nnodes={nodes}, num_local_procs={here}")
