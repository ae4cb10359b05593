"""CUDA toolkits on this machine, and the one that torch's cpp_extension will take."""

from typing import Literal

from dsdoctor.facts.base import Fact

# Headers and libraries without which torch's CUDA headers don't compile or DeepSpeed's ops don't link.
HEADERS = ("cuda_runtime_api.h", "cublas_v2.h", "cusparse.h", "cusolverDn.h", "curand_kernel.h", "cufile.h", "nccl.h")
LIBRARIES = ("cudart", "cublas", "cusparse", "cusolver", "curand", "cufile")

FoundBy = Literal["CUDA_HOME", "CUDA_PATH", "PATH", "/usr/local", "conda", "pip"]


class Toolkit(Fact, frozen=True, kw_only=True):
    root: str
    found_by: FoundBy
    exists: bool = True
    nvcc: str | None = None  # path of bin/nvcc; None: not there
    nvcc_problem: str | None = None  # "is a directory", "is not executable", "printed no version", ...
    version: str | None = None  # "13.0": nvcc's, else version.json's
    headers: tuple[str, ...] = ()  # those of HEADERS found under root/include (or targets/*/include)
    libraries: dict[str, str] = {}  # name without lib -> path of the unversioned .so that -lNAME would find
    lib_dir: str | None = None  # "lib64", "lib": where the libraries lie
    stubs: bool = False  # lib64/stubs/libcuda.so is there
    gcc_max: int | None = None  # from crt/host_config.h
    clang_max: int | None = None
    architectures: tuple[str, ...] = ()  # nvcc --list-gpu-code, as "7.5", "9.0", ...
    real_path: str | None = None  # what a link such as /usr/local/cuda points to
    from_text: bool = False  # read in pasted text: only root, nvcc and version are known, the rest was not looked at


class Toolkits(Fact, frozen=True, kw_only=True):
    found: tuple[Toolkit, ...] = ()
    chosen: str | None = None  # root that torch.utils.cpp_extension picks by its rules; None: it finds none
    chosen_by: str | None = None  # "CUDA_HOME", "CUDA_PATH", "nvcc on PATH", "/usr/local/cuda"
    nvcc_on_path: str | None = None
    skip_check: bool = False  # DS_SKIP_CUDA_CHECK is set

    @property
    def selected(self) -> Toolkit | None:
        """The toolkit that torch picks, if it was looked at."""
        return next((t for t in self.found if t.root == self.chosen), None)
