"""Which operating system, and in what kind of place: container, WSL, notebook service, scheduler."""

import os
import platform
import re
import shlex
from typing import Literal

from dsdoctor.facts import Host
from dsdoctor.facts.host import HostedOn, PackageManager, Scheduler
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.system import System

_MANAGERS: tuple[tuple[PackageManager, str, frozenset[str]], ...] = (  # name, program, words of os-release
    ("apt", "apt-get", frozenset({"debian", "ubuntu"})),
    ("dnf", "dnf", frozenset({"fedora", "rhel", "centos"})),
    ("yum", "yum", frozenset({"fedora", "rhel", "centos"})),
    ("zypper", "zypper", frozenset({"suse", "opensuse"})),
    ("pacman", "pacman", frozenset({"arch"})),
    ("apk", "apk", frozenset({"alpine"})),
    ("brew", "brew", frozenset({"darwin"})),
    ("winget", "winget", frozenset({"windows"})),
)
_INSIDE: tuple[tuple[str, Scheduler], ...] = (
    ("SLURM_JOB_ID", "slurm"), ("LSB_JOBID", "lsf"), ("PBS_JOBID", "pbs"), ("RAY_JOB_ID", "ray"),
)  # fmt: skip
_GLIBC = re.compile(rb"GNU C Library [^\n]*release version (\d+\.\d+)")
_RUNTIMES = {"/docker/": "docker", "/containers/storage/": "podman", "containerd": "container"}


def probe(system: System) -> Host:
    """Facts of the host. Reads files and variables; runs nothing on Linux. Raises ProbeFailed on any other system."""
    words = system.read("/proc/version") or ""
    kind = "linux" if system.linux else {"darwin": "darwin", "win32": "windows"}.get(system.platform)
    if kind is None:
        raise ProbeFailed("not-examined", f"{system.platform} is not a system that DeepSpeed or dsdoctor knows")
    release = _os_release(system) if system.linux else {}
    return Host(
        system=kind,  # type: ignore[arg-type]
        kernel=_kernel(system),
        machine=platform.machine() or "unknown",
        distribution=release.get("ID") if system.linux else {"darwin": "macos"}.get(kind, kind),
        distribution_version=release.get("VERSION_ID") if system.linux else _version(system),
        distribution_name=release.get("PRETTY_NAME")
        if system.linux
        else f"{_name(kind)} {_version(system) or ''}".strip(),
        libc=_libc(system),
        container=_container(system) if system.linux else None,
        wsl=_wsl(system, words) if system.linux else None,
        hosted_on=_hosted_on(system),
        scheduler=_scheduler(system),
        inside_job=any(system.env.get(name) for name, _ in _INSIDE),
        package_manager=_package_manager(system, kind, release),
        is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
        has_sudo=system.which("sudo") is not None,
    )


def _kernel(system: System) -> str:
    recorded = (system.read("/proc/sys/kernel/osrelease") or "").strip() if system.linux else ""
    return recorded or platform.release() or "unknown"


def _os_release(system: System) -> dict[str, str]:
    text = system.read("/etc/os-release") or system.read("/usr/lib/os-release") or ""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, mark, value = line.partition("=")
        if mark:
            try:
                values[name.strip()] = " ".join(shlex.split(value))
            except ValueError:
                values[name.strip()] = value.strip('"')
    return values


def _name(kind: str) -> str:
    return {"darwin": "macOS", "windows": "Windows"}[kind]


def _version(system: System) -> str | None:
    if system.platform == "darwin":
        return platform.mac_ver()[0] or None
    return platform.version() or None


def _libc(system: System) -> str | None:
    if not system.linux:
        return None
    name, version = platform.libc_ver() if system.real else ("", "")
    if name:  # before musl: a glibc system may have musl's loader too
        return f"{name} {version}".strip()
    for folder in ("/lib64", "/lib", "/usr/lib", *(f"/lib/{n}" for n in system.names("/lib") if "-linux-" in n)):
        banner = _GLIBC.search(system.read_bytes(f"{folder}/libc.so.6") or b"")
        if banner:
            return f"glibc {banner.group(1).decode()}"
    return "musl" if any(n.startswith("ld-musl") for n in system.names("/lib")) else None


def _package_manager(system: System, kind: str, release: dict[str, str]) -> PackageManager | None:
    """The distribution's own if it is there, else (on Linux) the first that is."""
    words = {kind, release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    own = [m for m in _MANAGERS if m[2] & words]
    others = [m for m in _MANAGERS if m not in own] if kind == "linux" else []
    return next((name for name, program, _ in own + others if system.which(program)), None)


def _container(system: System) -> str | None:
    if "gVisor" in (system.read("/proc/version") or "") or _kernel(system) == "4.4.0":
        return "gvisor"
    if system.env.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    if system.env.get("APPTAINER_CONTAINER") or system.env.get("SINGULARITY_CONTAINER"):
        return "singularity"
    if system.exists("/run/.containerenv"):
        return "podman"
    if system.exists("/.dockerenv"):
        return "docker"
    cgroup = system.read("/proc/1/cgroup") or ""
    found = re.search(r"docker|kubepods|containerd|lxc|libpod", cgroup)
    named = {"kubepods": "kubernetes", "libpod": "podman", "containerd": "container"}
    return named.get(found.group(), found.group()) if found else _container_by_root(system)


def _container_by_root(system: System) -> str | None:
    """With a cgroup namespace /proc/1/cgroup is bare; the folders of the overlay that is mounted on / still tell."""
    for line in (system.read("/proc/self/mountinfo") or "").splitlines():
        fields, _, tail = line.partition(" - ")
        if fields.split()[4:5] == ["/"] and tail.startswith("overlay "):
            return next((name for folder, name in _RUNTIMES.items() if folder in tail), None)
    return None


def _wsl(system: System, words: str) -> Literal[1, 2] | None:
    if "microsoft" not in words.lower() and not system.env.get("WSL_DISTRO_NAME"):
        return None
    # WSL 1 has no kernel of its own and always calls itself -Microsoft; WSL 2 may run any kernel
    return 1 if "-Microsoft" in words and "WSL2" not in words else 2


def _hosted_on(system: System) -> HostedOn | None:
    env = system.env
    if env.get("KAGGLE_KERNEL_RUN_TYPE"):  # before Colab: Kaggle's image is built on Colab's
        return "kaggle"
    if env.get("COLAB_RELEASE_TAG") or env.get("COLAB_GPU") or system.is_dir("/opt/google/colab"):
        return "colab"
    libraries = system.names("/usr/local/lib") if system.is_dir("/content") else ()
    if any(system.is_dir(f"/usr/local/lib/{name}/dist-packages/google/colab") for name in libraries):
        return "colab"  # a terminal there has none of the variables
    if env.get("DATABRICKS_RUNTIME_VERSION"):
        return "databricks"
    if env.get("SM_CURRENT_HOST") or env.get("SAGEMAKER_INTERNAL_IMAGE_URI"):
        return "sagemaker"
    return None


def _scheduler(system: System) -> Scheduler | None:
    """The one that gave us an allocation, else the one whose programs are here."""
    env = system.env
    inside = next((scheduler for name, scheduler in _INSIDE if env.get(name)), None)
    if inside:
        return inside
    if env.get("RAY_ADDRESS"):
        return "ray"
    if any(system.which(program) for program in ("srun", "sinfo", "squeue")):
        return "slurm"
    if env.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    return "lsf" if system.which("bjobs") else None
