"""Environment variables that torch, CUDA, NCCL and DeepSpeed read. Values are redacted before they leave the machine."""

from dsdoctor.facts.base import Fact

PREFIXES = ("CUDA_", "NCCL_", "DS_", "DEEPSPEED_", "PYTORCH_", "TORCH_", "TRITON_", "NVCC_", "OMP_", "GLOO_", "SLURM_",
            "OMPI_", "RAY_", "ACCELERATE_", "NVIDIA_", "ROCM_", "HIP_", "XLA_", "UCX_")  # fmt: skip
NAMES = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
         "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME",
         "XDG_CACHE_HOME", "TMPDIR", "MAX_JOBS", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "CUDAHOSTCXX", "CUTLASS_PATH", "CUTLASS_ROOT", "CUTLASS_HOME", "CCL_ROOT", "PDSH_RCMD_TYPE", "LANG", "LC_ALL", "PYTHONIOENCODING",
         "HF_HOME", "UV_PYTHON", "USE_LIBUV", "CI")  # fmt: skip


class Environment(Fact, frozen=True, kw_only=True):
    variables: dict[str, str] = {}

    def get(self, name: str, default: str = "") -> str:
        return self.variables.get(name, default)

    def on(self, name: str) -> bool:
        """True when the variable is set to something that programs read as yes."""
        return self.get(name).strip().lower() not in ("", "0", "false", "no", "off")
