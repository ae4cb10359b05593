"""One coherent healthy machine to bend in tests: a Linux box with one H200, as recorded, in a virtual environment.

Every function takes ``**changes`` for the fields that are odd. ``healthy(*sections)`` is the whole machine with some
sections replaced; ``machine`` of dsdoctor.testing holds only what it is given.
"""

from typing import Any, TypeVar

import msgspec

from dsdoctor.facts import (
    UNLIMITED,
    CacheFolder,
    Caches,
    Compiler,
    Compilers,
    Cpu,
    DeepSpeed,
    DeepSpeedLive,
    Distribution,
    DsConfig,
    DsOp,
    DsReport,
    Environment,
    Fact,
    Gpu,
    GpuLink,
    Gpus,
    Host,
    Import,
    Interface,
    Limit,
    Limits,
    Memory,
    Network,
    Ninja,
    OpBuild,
    OpBuilder,
    OpBuilders,
    OpBuilds,
    Packages,
    Place,
    Programs,
    Purpose,
    Python,
    Smoke,
    SmokeAftermath,
    SmokePhase,
    SmokeRank,
    SmokeRun,
    SmokeStep,
    Snapshot,
    StandardLibrary,
    Storage,
    Toolkit,
    Toolkits,
    Torch,
    TorchLive,
    Trial,
    Trials,
    Unavailable,
)
from dsdoctor.facts.ops import TRIALS
from dsdoctor.facts.snapshot import SECTIONS
from dsdoctor.facts.toolkit import HEADERS, LIBRARIES

F = TypeVar("F", bound=Fact)
GIB = 1 << 30
SITE = "/home/user/env/lib/python3.12/site-packages"
_UNLIMITED = Limit(soft=UNLIMITED, hard=UNLIMITED)
_OPS = ("async_io", "fused_adam", "cpu_adam", "cpu_adagrad", "cpu_lion", "pin_memory", "fused_lamb", "fused_lion", "quantizer",
        "random_ltd", "spatial_inference", "transformer", "stochastic_transformer", "transformer_inference", "utils",
        "inference_core_ops", "ragged_ops", "dc", "gds")  # fmt: skip


def _bent(fact: F, changes: dict[str, Any]) -> F:
    return msgspec.structs.replace(fact, **changes) if changes else fact


def host(**changes: Any) -> Host:
    fact = Host(
        system="linux",
        kernel="6.8.0-60-generic",
        machine="x86_64",
        distribution="ubuntu",
        distribution_version="24.04",
        distribution_name="Ubuntu 24.04.3 LTS",
        libc="glibc 2.39",
        package_manager="apt",
        has_sudo=True,
    )
    return _bent(fact, changes)


def cpu(**changes: Any) -> Cpu:
    fact = Cpu(
        model="Intel(R) Xeon(R) Platinum 8480C",
        vendor="GenuineIntel",
        architecture="X86_64",
        logical_cores=16,
        usable_cores=16,
        flags=("avx", "avx2", "avx512f", "fma"),
        simd="avx512",
    )
    return _bent(fact, changes)


def memory(**changes: Any) -> Memory:
    fact = Memory(
        total_bytes=128 * GIB,
        available_bytes=120 * GIB,
        swap_total_bytes=0,
        swap_free_bytes=0,
        cgroup_version=2,
        cgroup_oom_kills=0,
        shm_bytes=64 * GIB,
        shm_free_bytes=64 * GIB,
    )
    return _bent(fact, changes)


def limits(**changes: Any) -> Limits:
    fact = Limits(
        memlock_bytes=_UNLIMITED,
        open_files=Limit(soft=65536, hard=1048576),
        processes=Limit(soft=500000, hard=500000),
        aio_max_nr=1048576,
        aio_nr=0,
    )
    return _bent(fact, changes)


def gpu(**changes: Any) -> Gpu:
    fact = Gpu(
        index=0,
        name="NVIDIA H200",
        compute_capability="9.0",
        total_bytes=143771 << 20,
        free_bytes=143155 << 20,
        used_bytes=616 << 20,
        mig_enabled=False,
        compute_mode="default",
        persistence=True,
        ecc_uncorrected=0,
        rows_pending=False,
        pcie_generation=5,
        pcie_width=16,
        fabric_state="completed",
    )
    return _bent(fact, changes)


def gpus(count: int = 1, **changes: Any) -> Gpus:
    """``count`` H200s; with several, NVLink between each pair."""
    fact = Gpus(
        nvml="ok",
        driver_version="580.159.04",
        driver_cuda="13.0",
        kernel_module_version="580.159.04",
        libcuda="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        device_nodes=(*(f"/dev/nvidia{i}" for i in range(count)), "/dev/nvidiactl", "/dev/nvidia-uvm"),
        pci_nvidia=count,
        devices=tuple(gpu(index=i) for i in range(count)),
        links=tuple(
            GpuLink(first=i, second=j, path="NVLINK", p2p_read=True) for i in range(count) for j in range(i + 1, count)
        ),
    )
    return _bent(fact, changes)


def no_gpus(**changes: Any) -> Gpus:
    """A machine without any NVIDIA part."""
    fact = Gpus(nvml="library-missing", nvml_detail="NVML Shared Library Not Found", pci_nvidia=0)
    return _bent(fact, changes)


def toolkit(**changes: Any) -> Toolkit:
    fact = Toolkit(
        root="/usr/local/cuda",
        found_by="CUDA_HOME",
        nvcc="/usr/local/cuda/bin/nvcc",
        version="13.0",
        headers=HEADERS,
        libraries={name: f"/usr/local/cuda/lib64/lib{name}.so" for name in LIBRARIES},
        lib_dir="lib64",
        stubs=True,
        gcc_max=15,
        clang_max=20,
        architectures=("7.5", "8.0", "8.6", "8.7", "8.8", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1"),
        real_path="/usr/local/cuda-13.0",
    )
    return _bent(fact, changes)


def toolkits(*found: Toolkit, **changes: Any) -> Toolkits:
    """The given toolkits, the first of them chosen; without any, one healthy CUDA 13.0."""
    kits = found or (toolkit(),)
    fact = Toolkits(found=kits, chosen=kits[0].root, chosen_by=kits[0].found_by, nvcc_on_path=kits[0].nvcc)
    return _bent(fact, changes)


def compiler(**changes: Any) -> Compiler:
    fact = Compiler(command="c++", path="/usr/bin/c++", selected_by="default", family="gcc", version="13.3.0")
    return _bent(fact, changes)


def compilers(**changes: Any) -> Compilers:
    fact = Compilers(
        cxx=compiler(),
        cc=compiler(command="cc", path="/usr/bin/cc"),
        nvcc_host=compiler(command="g++", path="/usr/bin/g++", selected_by="PATH"),
        found=(compiler(command="g++-13", path="/usr/bin/g++-13", selected_by="PATH"),),
        ninja=Ninja(path="/home/user/env/bin/ninja", version="1.13.0", in_environment="/home/user/env/bin/ninja"),
        standard_libraries=(
            StandardLibrary(path="/usr/lib/x86_64-linux-gnu/libstdc++.so.6", owner="system", glibcxx="3.4.33"),
        ),
        libaio_header="/usr/include/libaio.h",
        libaio_link="/usr/lib/x86_64-linux-gnu/libaio.so",
        libcuda_link="/usr/lib/x86_64-linux-gnu/libcuda.so",
        nccl_header="/usr/include/nccl.h",
        libaio_runtime="/usr/lib/x86_64-linux-gnu/libaio.so.1t64",
        libc_headers=True,
    )
    return _bent(fact, changes)


def python(**changes: Any) -> Python:
    fact = Python(
        executable="/home/user/env/bin/python",
        chosen_because="the active virtual environment",
        version="3.12.3",
        prefix="/home/user/env",
        base_prefix="/usr",
        environment="venv",
        site_packages=(SITE,),
        include_dir="/usr/include/python3.12",
        python_h=True,
        scripts_dir="/home/user/env/bin",
        scripts_on_path=True,
        cwd="/home/user/project",
    )
    return _bent(fact, changes)


def packages(versions: dict[str, str | None] | None = None, **changes: Any) -> Packages:
    """A healthy set of distributions; ``versions`` adds or changes some, None takes one away."""
    listed: dict[str, str | None] = {
        "torch": "2.11.0+cu130",
        "deepspeed": "0.19.8",
        "triton": "3.6.0",
        "numpy": "2.3.0",
        "pydantic": "2.12.0",
        "packaging": "25.0",
        "setuptools": "80.9.0",
        "ninja": "1.13.0",
        "hjson": "3.1.0",
        "py-cpuinfo": "9.0.0",
        "transformers": "5.17.0",
        "accelerate": "1.15.0",
        **(versions or {}),
    }
    fact = Packages(
        distributions={
            name: Distribution(name=name, version=version, location=SITE, installer="pip")
            for name, version in listed.items()
            if version is not None
        },
        integrity_checked=("torch", "deepspeed", "triton"),
    )
    return _bent(fact, changes)


def torch(**changes: Any) -> Torch:
    fact = Torch(version="2.11.0+cu130", cuda="13.0", path=f"{SITE}/torch", nccl="2.28.9")
    return _bent(fact, changes)


def imported(**changes: Any) -> Import:
    return _bent(Import(outcome="ok", seconds=2.6), changes)


def torch_live(count: int = 1, **changes: Any) -> TorchLive:
    fact = TorchLive(
        imported=imported(),
        version="2.11.0+cu130",
        cuda="13.0",
        cuda_available=True,
        device_count=count,
        devices=("NVIDIA H200",) * count,
        capabilities=("9.0",) * count,
        architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"),
        nccl="2.28.9",
        cudnn="9.19.0",
        bf16=True,
        mps=False,
        cuda_home="/usr/local/cuda",
        cpp_extension=imported(seconds=0.2),
        cxx11_abi=True,
        kernel=imported(seconds=0.3),
    )
    return _bent(fact, changes)


def deepspeed(**changes: Any) -> DeepSpeed:
    fact = DeepSpeed(
        version="0.19.8",
        path=f"{SITE}/deepspeed",
        built_torch="0.0",
        built_cuda="0.0",
        has_accelerator_package=True,
        has_op_builder=True,
        launcher="/home/user/env/bin/deepspeed",
        launcher_executable=True,
        launcher_interpreter="/home/user/env/bin/python",
        launcher_interpreter_exists=True,
        launcher_on_path="/home/user/env/bin/deepspeed",
    )
    return _bent(fact, changes)


def deepspeed_live(**changes: Any) -> DeepSpeedLive:
    fact = DeepSpeedLive(
        imported=imported(seconds=1.0),
        version="0.19.8",
        accelerator="cuda",
        accelerator_why="detected",
        communication_backend="nccl",
        bf16=True,
        fp16=True,
    )
    return _bent(fact, changes)


def ds_report(**changes: Any) -> DsReport:
    fact = DsReport(
        source="ran in the patient",
        ninja=True,
        ops=tuple(DsOp(name=name, installed=False, compatible=True) for name in _OPS),
        torch_path=f"{SITE}/torch",
        torch_version="2.11.0+cu130",
        torch_cuda="13.0",
        nvcc_version="13.0",
        deepspeed_path=f"{SITE}/deepspeed",
        deepspeed_version="0.19.8",
        deepspeed_info="0.19.8, unknown, unknown",
        wheel_torch="0.0",
        wheel_cuda="0.0",
        shm_bytes=64 * GIB,
        accelerator="cuda",
        seconds=0.9,
    )
    return _bent(fact, changes)


def op_builders(**changes: Any) -> OpBuilders:
    """Every op of the report, asked and answering; ``errors`` maps an op to what asking it raised."""
    errors = changes.pop("errors", {})
    found = tuple(
        OpBuilder(
            name=name,
            builder=f"{name.title().replace('_', '')}Builder",
            cuda=not name.startswith(("cpu_", "pin_", "utils")),
            architectures=None if name.startswith(("cpu_", "pin_", "utils")) else ("9.0",),
            error=errors.get(name),
        )
        for name in _OPS
    )
    return _bent(OpBuilders(accelerator="cuda", builders=found), changes)


def trials(**failed: str) -> Trials:
    """All tiny programs worked, but for those named with their error line: ``trials(link_curand="cannot find -lcurand")``."""
    broken = {name.replace("_", "-"): error for name, error in failed.items()}
    return Trials(
        tried=tuple(
            Trial(
                name=name,
                outcome="failed",
                command=f"c++ {name}.cpp",
                error=broken[name],
                output=broken[name],
                seconds=0.2,
            )
            if name in broken
            else Trial(name=name, outcome="ok", command=f"c++ {name}.cpp", seconds=0.2)
            for name in TRIALS
        )
    )


def op_builds(*builds: OpBuild, **changes: Any) -> OpBuilds:
    return _bent(OpBuilds(cache="private", builds=builds, jobs=8), changes)


def environment(**variables: str) -> Environment:
    """The given variables over a plain set."""
    plain = {
        "PATH": "/home/user/env/bin:/usr/local/cuda/bin:/usr/bin:/bin",
        "HOME": "/home/user",
        "CUDA_HOME": "/usr/local/cuda",
    }
    return Environment(variables={k: v for k, v in {**plain, **variables}.items() if v is not None})


def caches(**changes: Any) -> Caches:
    def folder(path: str) -> CacheFolder:
        return CacheFolder(path=path, because="default", exists=True, writable=True, owner_uid=1000, filesystem="ext4")

    fact = Caches(
        extensions=folder("/home/user/.cache/torch_extensions/py312_cu130"), triton=folder("/home/user/.triton")
    )
    return _bent(fact, changes)


def place(**changes: Any) -> Place:
    fact = Place(
        path="/mnt/nvme",
        role="nvme",
        named_by="--nvme",
        writable=True,
        filesystem="ext4",
        device="nvme",
        total_bytes=2000 * GIB,
        free_bytes=1500 * GIB,
        free_inodes=10**8,
        o_direct=True,
        aio=True,
    )
    return _bent(fact, changes)


def storage(*places: Place) -> Storage:
    """The given places; without any, a working folder and /tmp on a local disk, and no place for NVMe offload."""
    plain = {"filesystem": "ext4", "device": "nvme", "named_by": "default"}
    return Storage(
        places=places
        or (place(path="/home/user/project", role="cwd", **plain), place(path="/tmp", role="tmp", **plain))
    )


def network(**changes: Any) -> Network:
    fact = Network(
        hostname_resolves=True,
        hostname_loopback=False,
        hostname_i_works=True,
        interfaces=(
            Interface(name="lo", up=True, addresses=("127.0.0.1",), loopback=True),
            Interface(name="eth0", up=True, addresses=("10.0.0.2",)),
        ),
        master_port_free=True,
    )
    return _bent(fact, changes)


def programs(*missing: str, **changes: Any) -> Programs:
    """All programs but ``missing``."""
    from dsdoctor.facts.programs import NAMES

    fact = Programs(paths={name: f"/usr/bin/{name}" for name in NAMES if name not in missing})
    return _bent(fact, changes)


def ds_config(values: dict[str, Any] | None = None, **changes: Any) -> DsConfig:
    """A parsed ds_config; a small good ZeRO-2 one by default. Places of keys are made up line by line."""
    given = values if values is not None else {
        "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
    }  # fmt: skip
    places: dict[str, tuple[int, int]] = {}

    def walk(here: dict[str, Any], prefix: str) -> None:
        for key, value in here.items():
            places[f"{prefix}{key}"] = (len(places) + 2, 3)
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")

    walk(given, "")
    return _bent(DsConfig(path="ds_config.json", values=given, places=places), changes)


def smoke_rank(rank: int = 0, world_size: int = 1, **changes: Any) -> SmokeRank:
    """A rank of a run that ended well: it holds its share of 16 384 master weights."""
    fact = SmokeRank(
        rank=rank,
        ending="ok",
        exit_code=0,
        last_phase="steps",
        device=f"cuda:{rank}",
        loss=0.2134,
        parameter_elements=16384,
        held_parameter_elements=16384,
        held_state_elements=16384 // world_size,
        state_bytes=12 * 16384 // world_size,
        peak_bytes=40 << 20,
        peak_reserved_bytes=44 << 20,
        peak_phase="first step",
        peak_host_bytes=1900 << 20,
    )
    return _bent(fact, changes)


_LOSSES = (1.1, 0.9, 0.7, 0.55, 0.44, 0.35, 0.28, 0.22)
_SMOKE_PHASES = (
    ("import torch", 2.6),
    ("import deepspeed", 1.1),
    ("initialize", 3.0),
    ("first step", 0.2),
    ("steps", 0.1),
)


def smoke_run(recipe: str = "zero2", **changes: Any) -> SmokeRun:
    """A run that ended well, of a ZeRO recipe if its name says so. ``losses`` stands for ``steps``; ``world_size`` makes
    the ranks, which ``rank`` (a mapping of fields) changes one and all."""
    count = changes.get("world_size", 1)
    losses = changes.pop("losses", _LOSSES)
    stage = int(recipe[4]) if recipe.startswith("zero") else None
    own = {"held_parameter_elements": 16384 // count} if stage == 3 else {}
    own |= changes.pop("rank", {})
    fact = SmokeRun(
        recipe=recipe,
        outcome="ok",
        accelerator="cuda",
        device="NVIDIA H200",
        stage=stage,
        dtype="bf16",
        phases=tuple(SmokePhase(name=name, seconds=seconds) for name, seconds in _SMOKE_PHASES),
        steps=tuple(SmokeStep(number=i + 1, loss=loss, ms=9.0 if i else 180.0) for i, loss in enumerate(losses)),
        ranks=tuple(smoke_rank(rank, count, **own) for rank in range(count)),
        seconds=9.0,
    )
    return _bent(fact, changes)


def fallen_run(recipe: str = "zero2", *, fell: int = 0, **changes: Any) -> SmokeRun:
    """A run that fell in "initialize": rank ``fell`` first, as ``rank`` (a mapping of fields) says; the others were torn down."""
    outcome, count, own = changes.pop("outcome", "failed"), changes.get("world_size", 1), changes.pop("rank", {})
    gone: dict[str, Any] = {"loss": None, "held_state_elements": None, "state_bytes": None, "last_phase": "initialize"}
    ranks = [smoke_rank(r, **gone, ending="torn-down", exit_code=None, signal="SIGTERM") for r in range(count)]
    ranks[fell] = smoke_rank(fell, **{**gone, "ending": outcome, "exit_code": None, **own})
    phases = (SmokePhase(name="import torch", seconds=2.6), SmokePhase(name="initialize", seconds=None))
    fallen = {"losses": (), "fell_first": fell, "ranks": tuple(ranks), "phases": phases, **changes}
    return smoke_run(recipe, outcome=outcome, **fallen)


def aftermath(**changes: Any) -> SmokeAftermath:
    """Of a run for which there was room enough of everything."""
    fact = SmokeAftermath(
        oom_kills=0,
        memory_limit_bytes=128 * GIB,
        least_available_bytes=110 * GIB,
        shm_total_bytes=64 * GIB,
        shm_least_free_bytes=62 * GIB,
    )
    return _bent(fact, changes)


def smoke(*runs: SmokeRun, **changes: Any) -> Smoke:
    """The given runs; without any, one ZeRO-2 run that ended well, with ``changes``."""
    return Smoke(runs=runs or (smoke_run(**changes),))


def purpose(**changes: Any) -> Purpose:
    return _bent(Purpose(name="single-gpu", because="one GPU is here"), changes)


def healthy(*replaced: Fact, **unavailable: Unavailable) -> Snapshot:
    """The whole machine, with ``replaced`` sections in place of the healthy ones and ``unavailable`` ones taken away."""
    sections: list[Fact] = [
        purpose(), host(), cpu(), memory(), limits(), gpus(), toolkits(), compilers(), python(), packages(), torch(),
        torch_live(), deepspeed(), deepspeed_live(), ds_report(), op_builders(), environment(), caches(), storage(), network(), programs(),
    ]  # fmt: skip
    fields = {SECTIONS[type(s)]: s for s in (*sections, *replaced)}
    for name in unavailable:
        fields.pop(name, None)
    not_asked = {
        "smoke": Unavailable(kind="not-asked", detail="no smoke run was asked for (--smoke)"),
        "op_builds": Unavailable(kind="not-asked", detail="no op was built (dsdoctor ops --build)"),
        "ds_config": Unavailable(kind="not-asked", detail="no ds_config was given (--config)"),
    }
    missing = {name: why for name, why in {**not_asked, **unavailable}.items() if name not in fields}
    return Snapshot(tool_version="0", origin="a healthy machine", unavailable=missing, **fields)  # type: ignore[arg-type]
