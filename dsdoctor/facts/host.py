"""Operating system, distribution, and where we are running (container, WSL, notebook service, scheduler)."""

from typing import Literal

from dsdoctor.facts.base import Fact

HostedOn = Literal["colab", "kaggle", "databricks", "sagemaker"]
Scheduler = Literal["slurm", "ray", "kubernetes", "lsf", "pbs"]
PackageManager = Literal["apt", "dnf", "yum", "zypper", "pacman", "apk", "brew", "winget"]


class Host(Fact, frozen=True, kw_only=True):
    system: Literal["linux", "darwin", "windows"]
    kernel: str  # "6.1.0-18-amd64", "23.4.0", "10.0.22631"
    machine: str  # "x86_64", "aarch64", "arm64", "AMD64"
    distribution: str | None = None  # os-release ID: "debian", "ubuntu"; "macos", "windows"
    distribution_version: str | None = None  # "12", "24.04", "14.4"
    distribution_name: str | None = None  # pretty name for people
    libc: str | None = None  # "glibc 2.36", "musl 1.2"
    container: str | None = None  # "docker", "podman", "kubernetes", "singularity", "lxc", "gvisor", "container"
    wsl: Literal[1, 2] | None = None
    hosted_on: HostedOn | None = None
    scheduler: Scheduler | None = None
    inside_job: bool = False  # a scheduler has given this process an allocation (SLURM_JOB_ID, ...)
    package_manager: PackageManager | None = None
    is_root: bool = False
    has_sudo: bool = False
