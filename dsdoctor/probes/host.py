"""Which operating system, and in what kind of place: container, WSL, notebook service, scheduler."""

import os
import platform
import re
import shlex
from typing import Literal

from dsdoctor.facts import Host
from dsdoctor.facts.host import HostedOn, PackageManager, Scheduler
from dsdoctor.probes.system import System

_MANAGERS: tuple[tuple[PackageManager, str], ...] = (
    ("apt", "apt-get"), ("dnf", "dnf"), ("yum", "yum"), ("zypper", "zypper"), ("pacman", "pacman"), ("apk", "apk"),
    ("brew", "brew"), ("winget", "winget"),
)  # fmt: skip
_INSIDE = ("SLURM_JOB_ID", "RAY_JOB_ID", "LSB_JOBID", "PBS_JOBID")


def probe(system: System) -> Host:
    """Facts of the host. Reads files and variables; runs nothing on Linux."""
    words = system.read("/proc/version") or ""
    kind = "linux" if system.linux else "darwin" if system.platform == "darwin" else "windows"
    release = _os_release(system) if system.linux else {}
    return Host(
        system=kind,  # type: ignore[arg-type]
        kernel=_kernel(system),
        machine=platform.machine() or "unknown",
        distribution=release.get("ID") if system.linux else {"darwin": "macos"}.get(kind, kind),
        distribution_version=release.get("VERSION_ID") if system.linux else _version(system),
        distribution_name=release.get("PRETTY_NAME") if system.linux else f"{_name(kind)} {_version(system)}",
        libc=_libc(system),
        container=_container(system) if system.linux else None,
        wsl=_wsl(system, words) if system.linux else None,
        hosted_on=_hosted_on(system),
        scheduler=_scheduler(system),
        inside_job=any(system.env.get(name) for name in _INSIDE),
        package_manager=next((name for name, program in _MANAGERS if system.which(program)), None),
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
    if any(n.startswith("ld-musl") for n in system.names("/lib")):
        return "musl"
    name, version = platform.libc_ver() if system.real else ("", "")
    return f"{name} {version}" if name else None


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
    return named.get(found.group(), found.group()) if found else None


def _wsl(system: System, words: str) -> Literal[1, 2] | None:
    if "microsoft" not in words.lower() and not system.env.get("WSL_DISTRO_NAME"):
        return None
    return 2 if "WSL2" in words or "microsoft-standard" in words or system.exists("/run/WSL") else 1


def _hosted_on(system: System) -> HostedOn | None:
    env = system.env
    if env.get("COLAB_RELEASE_TAG") or env.get("COLAB_GPU") or system.is_dir("/opt/google/colab"):
        return "colab"
    if env.get("KAGGLE_KERNEL_RUN_TYPE"):
        return "kaggle"
    if env.get("DATABRICKS_RUNTIME_VERSION"):
        return "databricks"
    if env.get("SM_CURRENT_HOST") or env.get("SAGEMAKER_INTERNAL_IMAGE_URI"):
        return "sagemaker"
    return None


def _scheduler(system: System) -> Scheduler | None:
    env = system.env
    if env.get("RAY_JOB_ID") or env.get("RAY_ADDRESS"):
        return "ray"
    if env.get("SLURM_JOB_ID") or system.which("sinfo") or system.which("squeue"):
        return "slurm"
    if env.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    if env.get("LSB_JOBID") or system.which("bjobs"):
        return "lsf"
    return "pbs" if env.get("PBS_JOBID") else None
