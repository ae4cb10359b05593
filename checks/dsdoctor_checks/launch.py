"""Checks of the launch: hostfile, launcher programs, and the variables that tell a process its rank."""

from collections.abc import Iterator

from dsdoctor.api import (
    DeepSpeed,
    Environment,
    Finding,
    Gpus,
    Host,
    Network,
    Prescriber,
    Programs,
    Purpose,
    Remedy,
    Severity,
    TorchLive,
    check,
    known,
    not_applicable,
)
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before

DEFAULT_HOSTFILE = "/job/hostfile"  # deepspeed/launcher/runner.py, DLTS_HOSTFILE
RANK_VARIABLES = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)  # deepspeed/comm/comm.py, required_env


@check("NET010", "MASTER_ADDR leads to an address", causes=["master-addr-empty"], guards=["many-gpus", "many-nodes"])
def address_found(environment: Environment, network: Network, prescriber: Prescriber) -> Iterator[Finding]:
    """All ranks connect to MASTER_ADDR. Empty or unknown, they wait until the time limit ends them."""
    value = environment.variables.get("MASTER_ADDR")
    if value is None:
        not_applicable("MASTER_ADDR is not set; the launcher will set it")
    empty = not value.strip()
    if empty or known(network.master_resolves, f"whether {value} resolves") is False:
        yield Finding(
            message="MASTER_ADDR is set and empty" if empty else f"MASTER_ADDR is {value}, which does not resolve",
            cause="master-addr-empty",
            subject="MASTER_ADDR",
            remedy=Remedy(
                order="Name the address of the first node; 127.0.0.1 for one machine",
                commands=(prescriber.set("MASTER_ADDR", "127.0.0.1"),),
            ),
        )


@check(
    "NET011",
    "The rank variables are set together",
    causes=["mpi4py-missing", "hostname-I-unsupported"],
    severity=Severity.WARNING,
)
def ranks_complete(environment: Environment, network: Network | None, prescriber: Prescriber) -> Iterator[Finding]:
    """When one of the five is missing, DeepSpeed asks MPI instead: it imports mpi4py, or calls `hostname -I`."""
    there = [name for name in RANK_VARIABLES if name in environment.variables]
    missing = [name for name in RANK_VARIABLES if name not in environment.variables]
    if not missing or not there or there in (["MASTER_PORT"], ["MASTER_ADDR"], ["MASTER_ADDR", "MASTER_PORT"]):
        not_applicable("the rank variables are left to the launcher" if missing else "all five are set")
    mpi = any(name.startswith("OMPI_COMM_WORLD") for name in environment.variables)
    stuck = mpi and network is not None and network.hostname_i_works is False
    values = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    yield Finding(
        message=f"{', '.join(there)} set, {', '.join(missing)} not: DeepSpeed then tries MPI"
        + (", and `hostname -I` does not work here" if stuck else " and stops with No module named 'mpi4py'"),
        cause="hostname-I-unsupported" if stuck else "mpi4py-missing",
        remedy=Remedy(
            order="Set what is missing (the values are those of a single process), or start through deepspeed or torchrun",
            commands=tuple(prescriber.set(name, values[name]) for name in missing),
        ),
    )


@check(
    "NET012",
    "Every local rank has a GPU",
    causes=["ray-hostname-local-rank"],
    severity=Severity.WARNING,
)
def ranks_fit_gpus(environment: Environment, live: TorchLive, prescriber: Prescriber) -> Iterator[Finding]:
    """A process takes the GPU whose number is its LOCAL_RANK. Ray and schedulers often show it one GPU only."""
    rank = environment.get("LOCAL_RANK")
    if not rank.isdigit() or not live.cuda_available:
        not_applicable("LOCAL_RANK is not set, or torch sees no GPU")
    count = known(live.device_count, "how many GPUs torch sees")
    if int(rank) < count:
        return
    yield Finding(
        message=f"LOCAL_RANK is {rank}, but this process sees {count} GPU(s): there is no cuda:{rank}",
        cause="ray-hostname-local-rank",
        subject="LOCAL_RANK",
        remedy=Remedy(
            order="Count LOCAL_RANK within the GPUs that the process sees",
            commands=(prescriber.set("LOCAL_RANK", "0"),) if count == 1 else (),
            safety="careful",
        ),
    )


@check(
    "NET013",
    "Every line of the hostfile can be read",
    causes=["hostfile-syntax", "hostfile-missing-silent-fallback"],
    guards=["many-nodes"],
)
def hostfile_readable(programs: Programs) -> Iterator[Finding]:
    """A line reads `host slots=N`. A missing file is only a warning: the run goes on with this machine alone."""
    hostfile = programs.hostfile
    if hostfile is None or (not hostfile.exists and hostfile.path == DEFAULT_HOSTFILE):
        not_applicable("no hostfile was named")
    if not hostfile.exists:
        yield Finding(
            message=f"the hostfile {hostfile.path} does not exist: DeepSpeed would train on this machine alone",
            cause="hostfile-missing-silent-fallback",
            subject=hostfile.path,
            remedy=Remedy(order="Name the file with --hostfile, before the script's name", safety="manual"),
        )
    for line in hostfile.bad_lines:
        yield Finding(
            message=f"{hostfile.path}:{line} is not of the form `host slots=N`",
            cause="hostfile-syntax",
            subject=hostfile.path,
            remedy=Remedy(order="Write each line as: host slots=N", safety="manual"),
        )


@check(
    "NET014",
    "The hostfile offers no more slots than there are GPUs",
    causes=["hostfile-slots-too-small"],
    severity=Severity.WARNING,
)
def hostfile_fits(programs: Programs, gpus: Gpus) -> Iterator[Finding]:
    """slots is the number of GPUs of a host; which of them to use is said with --include."""
    hostfile = programs.hostfile
    if hostfile is None or not gpus.devices:
        not_applicable("no hostfile was named, or no GPU is here")
    for host, slots in hostfile.hosts.items():
        if host in ("localhost", "127.0.0.1") and slots != len(gpus.devices):
            yield Finding(
                message=f"{hostfile.path} gives {host} {slots} slots, the driver lists {len(gpus.devices)} GPUs",
                cause="hostfile-slots-too-small",
                subject=host,
                remedy=Remedy(order=f"Write slots={len(gpus.devices)} and choose GPUs with --include", safety="manual"),
            )


@check(
    "NET015",
    "The programs that start other nodes are installed",
    causes=["pdsh-missing", "multinode-ssh-check-fails"],
    guards=["many-nodes"],
)
def launch_programs(programs: Programs, purpose: Purpose | None, prescriber: Prescriber) -> Iterator[Finding]:
    """The default launcher reaches other nodes through pdsh, and pdsh through ssh."""
    hosts = len(programs.hostfile.hosts) if programs.hostfile else 0
    if hosts < 2 and (purpose is None or purpose.name != "multi-node"):
        not_applicable("training on several nodes was not asked for")
    for program, package, cause in (
        ("pdsh", "pdsh", "pdsh-missing"),
        ("ssh", "openssh-client", "multinode-ssh-check-fails"),
    ):
        if program in programs:
            continue
        yield Finding(
            message=f"{program} is not on PATH; "
            + (f"the hostfile names {hosts} hosts" if hosts else "the purpose is multi-node"),
            cause=cause,
            subject=program,
            remedy=Remedy(
                order=f"Install {program}"
                + (", or choose another launcher (--launcher slurm, openmpi, ...)" if program == "pdsh" else ""),
                commands=prescriber.system(package),
                verify=f"command -v {program}",
            ),
        )


@check("NET016", "numactl is there for --bind_cores_to_rank", causes=["numactl-missing"], severity=Severity.INFO)
def numactl_there(programs: Programs, host: Host, prescriber: Prescriber) -> Iterator[Finding]:
    """Only runs that bind cores call it. Without it they stop with a FileNotFoundError."""
    if host.system != "linux":
        not_applicable("cores are bound on Linux only")
    if "numactl" not in programs:
        yield Finding(
            message="numactl is not on PATH; `deepspeed --bind_cores_to_rank` needs it, nothing else does",
            cause="numactl-missing",
            remedy=Remedy(
                order="Install numactl, if you bind cores",
                commands=prescriber.system("numactl"),
                verify="numactl --show",
            ),
        )


@check(
    "NET017",
    "The launcher of this DeepSpeed keeps CUDA_VISIBLE_DEVICES",
    causes=["cuda-visible-devices-launcher", "cuda-visible-devices-slurm"],
    severity=Severity.WARNING,
)
def visible_devices_kept(environment: Environment, deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """Before 0.15.2 the launcher took the numbers in the variable for slots, counted from 0."""
    value = environment.get("CUDA_VISIBLE_DEVICES").strip()
    fixed = table("deepspeed_releases")["launcher"]["visible_devices_fixed_in"]
    numbers = value.split(",")
    if not value or not before(deepspeed.version, fixed) or numbers == [str(i) for i in range(len(numbers))]:
        return
    slurm = any(name.startswith("SLURM_JOB") for name in environment.variables)
    yield Finding(
        message=f"CUDA_VISIBLE_DEVICES is {value}; the launcher of DeepSpeed {deepspeed.version} takes that for slot numbers",
        cause="cuda-visible-devices-slurm" if slurm else "cuda-visible-devices-launcher",
        subject="CUDA_VISIBLE_DEVICES",
        remedy=Remedy(
            order=f"Update DeepSpeed to {fixed} or newer, or give the list to --include",
            commands=(prescriber.pip(f"deepspeed>={fixed}", options="--upgrade"),),
            note=f"or: {prescriber.unset('CUDA_VISIBLE_DEVICES')}; deepspeed --include localhost:{value} train.py",
        ),
    )


@check("NET018", "The scheduler starts the nodes, not pdsh", causes=["slurm-venv-missing"], severity=Severity.INFO)
def slurm_launcher(host: Host, programs: Programs) -> Iterator[Finding]:
    """In a Slurm job pdsh opens shells without the job's modules and environment; srun keeps them."""
    hosts = len(programs.hostfile.hosts) if programs.hostfile else 0
    if host.scheduler != "slurm" or hosts < 2:
        not_applicable("this is not a Slurm job over several hosts")
    yield Finding(
        message=f"a hostfile with {hosts} hosts is used inside Slurm: pdsh starts shells without the job's environment",
        cause="slurm-venv-missing",
        remedy=Remedy(
            order="Start through Slurm", commands=("deepspeed --launcher slurm --hostfile hostfile train.py",)
        ),
    )
