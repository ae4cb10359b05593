"""Where are we? Files as real systems write them, and the answer that a user would give."""

from collections.abc import Callable

import pytest

from dsdoctor.probes import ProbeFailed, host
from dsdoctor.probes.system import System

Built = Callable[..., System]
WSL1 = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0 (GCC) ) #1237-Microsoft Sat Sep 11 14:32:00 PST 2021\n"
WSL2 = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1) (gcc (GCC) 11.2.0, GNU ld 2.37) #1 SMP Fri Mar 29 23:14:13 UTC 2024\n"
PLAIN = "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0) #1 SMP\n"
GVISOR = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n"
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'
ROCKY = 'NAME="Rocky Linux"\nVERSION_ID="9.4"\nID="rocky"\nID_LIKE="rhel centos fedora"\n'


def test_a_plain_debian(built: Built) -> None:
    files = {"/etc/os-release": DEBIAN, "/proc/version": PLAIN, "/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n"}
    found = host.probe(built(files, {"apt-get": "", "sudo": ""}))
    assert (found.system, found.kernel, found.distribution) == ("linux", "6.1.0-18-amd64", "debian")
    assert (found.distribution_version, found.distribution_name) == ("12", "Debian GNU/Linux 12 (bookworm)")
    assert (found.package_manager, found.has_sudo) == ("apt", True)
    assert (found.container, found.wsl, found.hosted_on, found.scheduler) == (None, None, None, None)
    assert found.inside_job is False


def test_without_os_release_the_distribution_is_not_known(built: Built) -> None:
    found = host.probe(built())
    assert (found.distribution, found.distribution_version, found.distribution_name) == (None, None, None)


def test_os_release_with_a_broken_quote_still_gives_its_words(built: Built) -> None:
    found = host.probe(built({"/usr/lib/os-release": 'ID=alpine\nPRETTY_NAME="Alpine v3.20\nVERSION_ID=3.20\n'}))
    assert (found.distribution, found.distribution_version) == ("alpine", "3.20")


@pytest.mark.parametrize(
    ("files", "env", "container"),
    [
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": 'engine="podman-4.9.3"\n'}, {}, "podman"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, "kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "/images/torch.sif"}, "singularity"),
        ({}, {"SINGULARITY_CONTAINER": "/images/torch.sif"}, "singularity"),
        ({"/proc/version": GVISOR, "/proc/sys/kernel/osrelease": "4.4.0\n"}, {}, "gvisor"),
        ({"/proc/1/cgroup": "12:memory:/docker/0123abc\n"}, {}, "docker"),
        ({"/proc/1/cgroup": "5:cpu:/kubepods/besteffort/pod1/0123abc\n"}, {}, "kubernetes"),
        ({"/proc/1/cgroup": "1:name=systemd:/lxc/work\n"}, {}, "lxc"),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, None),
    ],
)
def test_kind_of_container(built: Built, files: dict[str, str], env: dict[str, str], container: str | None) -> None:
    assert host.probe(built(files, **env)).container == container


def test_a_container_with_a_cgroup_namespace_is_told_by_its_root_mount(built: Built) -> None:
    mounts = "1034 912 0:93 / / rw,relatime master:369 - overlay overlay rw,upperdir=/var/lib/{}/overlay2/ab/diff\n"
    files = {"/proc/1/cgroup": "0::/\n", "/proc/self/mountinfo": mounts.format("docker")}
    assert host.probe(built(files)).container == "docker"
    files["/proc/self/mountinfo"] = mounts.format("containers/storage")
    assert host.probe(built(files)).container == "podman"


def test_docker_s_folder_on_a_disk_of_the_host_is_no_container(built: Built) -> None:
    mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 8:2 / /var/lib/docker rw - ext4 /dev/sda2 rw\n"
    assert host.probe(built({"/proc/1/cgroup": "0::/\n", "/proc/self/mountinfo": mounts})).container is None


@pytest.mark.parametrize(
    ("version", "env", "wsl"),
    [
        (WSL1, {"WSL_DISTRO_NAME": "Ubuntu"}, 1),
        (WSL1, {"WSL_INTEROP": "/run/WSL/8_interop"}, 1),
        (WSL2, {"WSL_DISTRO_NAME": "Ubuntu"}, 2),
        (WSL2, {}, 2),
        (PLAIN, {"WSL_DISTRO_NAME": "Ubuntu"}, 2),  # a kernel of the user's own
        (PLAIN, {}, None),
    ],
)
def test_wsl_one_and_two(built: Built, version: str, env: dict[str, str], wsl: int | None) -> None:
    assert host.probe(built({"/proc/version": version, "/run/WSL/8_interop": ""}, **env)).wsl == wsl


@pytest.mark.parametrize(
    ("env", "service"),
    [
        ({"COLAB_RELEASE_TAG": "release-colab_20250110"}, "colab"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}, "kaggle"),
        ({"KAGGLE_KERNEL_RUN_TYPE": "Batch", "COLAB_RELEASE_TAG": "release-colab_20250110"}, "kaggle"),
        ({"DATABRICKS_RUNTIME_VERSION": "15.4"}, "databricks"),
        ({"SM_CURRENT_HOST": "algo-1"}, "sagemaker"),
        ({"PATH": ""}, None),
    ],
)
def test_notebook_services(built: Built, env: dict[str, str], service: str | None) -> None:
    assert host.probe(built(**env)).hosted_on == service


def test_a_terminal_in_colab_has_none_of_its_variables(built: Built) -> None:
    files = {"/content/sample_data/x": "", "/usr/local/lib/python3.11/dist-packages/google/colab/__init__.py": ""}
    assert host.probe(built(files)).hosted_on == "colab"


def test_a_slurm_login_node_is_outside_any_job(built: Built) -> None:
    found = host.probe(built(programs={"srun": "", "sinfo": ""}))
    assert (found.scheduler, found.inside_job) == ("slurm", False)


def test_srun_alone_makes_a_slurm_node(built: Built) -> None:
    assert host.probe(built(programs={"srun": ""})).scheduler == "slurm"


@pytest.mark.parametrize(
    ("env", "scheduler"),
    [
        ({"SLURM_JOB_ID": "4711"}, "slurm"),
        ({"SLURM_JOB_ID": "4711", "RAY_ADDRESS": "10.0.0.1:6379"}, "slurm"),
        ({"RAY_JOB_ID": "01000000"}, "ray"),
        ({"LSB_JOBID": "12"}, "lsf"),
        ({"PBS_JOBID": "12.server"}, "pbs"),
    ],
)
def test_inside_a_job(built: Built, env: dict[str, str], scheduler: str) -> None:
    found = host.probe(built(**env))
    assert (found.scheduler, found.inside_job) == (scheduler, True)


def test_the_distribution_decides_between_two_package_managers(built: Built) -> None:
    programs = {"apt-get": "", "dnf": "", "brew": ""}
    assert host.probe(built({"/etc/os-release": ROCKY}, programs)).package_manager == "dnf"
    assert host.probe(built({"/etc/os-release": DEBIAN}, programs)).package_manager == "apt"


def test_a_package_manager_that_is_not_there_is_not_named(built: Built) -> None:
    assert host.probe(built({"/etc/os-release": DEBIAN})).package_manager is None


def test_musl_is_told_by_its_loader(built: Built) -> None:
    assert host.probe(built({"/lib/ld-musl-x86_64.so.1": ""})).libc == "musl"


def test_glibc_is_read_from_its_own_file_even_beside_musl(built: Built) -> None:
    banner = "GNU C Library (Debian GLIBC 2.36-9+deb12u4) stable release version 2.36.\n"
    files = {"/lib/x86_64-linux-gnu/libc.so.6": banner, "/lib/ld-musl-x86_64.so.1": ""}
    assert host.probe(built(files)).libc == "glibc 2.36"


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macos"), ("win32", "windows")])
def test_other_systems_answer_without_linux_files(built: Built, platform: str, name: str) -> None:
    found = host.probe(built(platform=platform))
    assert found.distribution == name
    assert (found.container, found.wsl, found.libc) == (None, None, None)
    assert "None" not in (found.distribution_name or "")


def test_a_system_that_deepspeed_does_not_know_is_not_called_windows(built: Built) -> None:
    with pytest.raises(ProbeFailed, match="freebsd14"):
        host.probe(built(platform="freebsd14"))
