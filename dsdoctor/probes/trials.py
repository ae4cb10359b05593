"""Tiny programs that fail exactly where a build of an op would: compile, include, link and load, side by side.

The flags are those of torch.utils.cpp_extension (2.13, read 2026-11-30): host compiler CXX or c++; nvcc under CUDA_HOME
with -ccbin when CC is set; torch's include folders; -L of torch's lib folder and of the toolkit's lib64, or lib where
there is no lib64. -laio, -lcuda, -lcufile and -lcurand come from DeepSpeed's builders.
"""

import os
import re
import shlex
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from dsdoctor.facts import Gpus, Python, Toolkits, Torch, Trial, Trials
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.compiler_output import first_error
from dsdoctor.probes.system import System

LIMIT_S = 25.0  # of one program; the longest takes two seconds on a slow core
AT_ONCE = 4
TAIL_LINES = 12
_STANDARD = re.compile(r"-std=c\+\+(\d\d)")
_HEADERS = {
    "python-headers": "#include <Python.h>\n",
    # not torch/extension.h: it takes two seconds and finds nothing that these do not
    "torch-headers": "#include <c10/util/Exception.h>\n#include <torch/csrc/python_headers.h>\n#include <pybind11/pybind11.h>\n",
    # what ATen/cuda/CUDAContextLight.h includes
    "cuda-headers": "".join(
        f"#include <{h}>\n" for h in ("cuda_runtime_api.h", "cusparse.h", "cublas_v2.h", "cublasLt.h", "cusolverDn.h")
    ),
    "curand-headers": "#include <curand_kernel.h>\n",
    "nccl-headers": "#include <nccl.h>\n",
    "aio-headers": "#include <libaio.h>\n",
    "cufile-headers": "#include <cufile.h>\n",
}
_LIBRARIES = {
    "link-cudart": "cudart",
    "link-curand": "curand",
    "link-cuda": "cuda",
    "link-aio": "aio",
    "link-cufile": "cufile",
}
_NVCC = ("nvcc", "nvcc-headers")
_CUDA = ("cuda-headers", "curand-headers", "nccl-headers", "cufile-headers", "link-cudart", "link-curand", "link-cuda", "link-cufile")  # fmt: skip
_PROGRAM = """#include <cmath>
#include <optional>
#include <string>
#include <vector>
#include <omp.h>
#if __cplusplus > 201703L
#include <concepts>
#include <span>
#endif
extern "C" int dsdoctor_answer(void) {
    std::vector<std::string> words(3, "ds");
    double sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (int i = 0; i < 21; i++) sum += std::sqrt(4.0);
    return (int) sum + (int) words.size() - 3;
}
"""
_KERNEL = "#include <functional>\n#include <tuple>\n__global__ void dsdoctor(float *x) { x[threadIdx.x] += 1.0f; }\n"
_LOAD = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).dsdoctor_answer())"


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What torch would compile with here."""

    cxx: tuple[str, ...]  # CXX may hold options too
    standard: str = "17"
    includes: tuple[str, ...] = ()
    cuda_root: str | None = None
    library_folders: tuple[str, ...] = ()
    ccbin: str | None = None
    architectures: tuple[str, ...] = ()  # "9.0"


def probe(system: System, python: Python, torch: Torch | None, toolkits: Toolkits | None, gpus: Gpus | None) -> Trials:
    """Make all trials. Raises ProbeFailed when there is no folder to compile in, or the platform is not Linux or macOS."""
    if system.platform == "win32":
        raise ProbeFailed("not-examined", "trials are written for Linux and macOS compilers")
    flags = flags_of(system, python, torch, toolkits, gpus)
    try:
        with tempfile.TemporaryDirectory(prefix="dsdoctor-", ignore_cleanup_errors=True) as folder:
            return _try_all(_Bench(system, python, flags, folder), torch)
    except OSError as error:
        raise ProbeFailed(
            "failed", f"nothing can be compiled: no temporary folder ({error.strerror or error})"
        ) from None


def flags_of(
    system: System, python: Python, torch: Torch | None, toolkits: Toolkits | None, gpus: Gpus | None
) -> Flags:
    """The flags of torch.utils.cpp_extension, from its file and the facts."""
    toolkit = toolkits.selected if toolkits and torch and torch.cuda else None
    root = toolkit.root if toolkit else None
    includes = [f"{torch.path}/include", f"{torch.path}/include/torch/csrc/api/include"] if torch else []
    includes += [f"{root}/include"] if root else []
    includes += [python.include_dir] if python.include_dir else []
    folders = [f"{torch.path}/lib"] if torch else []
    if root:
        lone_lib = not system.is_dir(f"{root}/lib64") and system.is_dir(f"{root}/lib")
        folders += [root, f"{root}/{'lib' if lone_lib else 'lib64'}"]
    text = system.read(f"{torch.path}/utils/cpp_extension.py") if torch else None
    standard = _STANDARD.search(text) if text else None
    return Flags(
        cxx=tuple(shlex.split(system.env.get("CXX") or "c++")) or ("c++",),
        standard=standard.group(1) if standard else "17",
        includes=tuple(includes),
        cuda_root=root,
        library_folders=tuple(folders),
        ccbin=system.env.get("CC") or None,
        architectures=_architectures(system, gpus),
    )


def _architectures(system: System, gpus: Gpus | None) -> tuple[str, ...]:
    """TORCH_CUDA_ARCH_LIST where its entries are numbers, else what the GPUs are."""
    listed = [e.split("+")[0] for e in system.env.get("TORCH_CUDA_ARCH_LIST", "").replace(" ", ";").split(";") if e]
    numbers = [e for e in listed if re.fullmatch(r"\d+\.\d", e)]
    here = [g.compute_capability for g in gpus.devices if g.compute_capability] if gpus else []
    return tuple(dict.fromkeys(numbers or here))


def _try_all(bench: "_Bench", torch: Torch | None) -> Trials:
    cuda = bench.flags.cuda_root is not None
    why = "torch finds no CUDA toolkit" if torch and torch.cuda else "torch is not a CUDA build"
    left_out = [] if cuda else [Trial(name=n, outcome="not-tried", error=why) for n in (*_NVCC, *_CUDA)]
    names = ["cxx", *(_NVCC if cuda else ()), *_HEADERS, *_LIBRARIES]
    if torch is None:
        left_out.append(Trial(name="torch-headers", outcome="not-tried", error="torch is not installed"))
    skipped = {trial.name for trial in left_out}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = list(pool.map(bench.attempt, [n for n in names if n not in skipped]))
    return Trials(tried=(*tried, *left_out))


class _Bench:
    """A folder to compile in, and the flags."""

    def __init__(self, system: System, python: Python, flags: Flags, folder: str) -> None:
        self._system, self._python, self.flags, self._folder = system, python, flags, folder

    def attempt(self, name: str) -> Trial:
        if name == "cxx":
            return self._cxx()
        if name == "nvcc":
            return self._nvcc()
        if name == "nvcc-headers":
            return self._nvcc_headers()
        if name in _HEADERS:
            return self._include(name)
        return self._link(name)

    def _cxx(self) -> Trial:
        """Compile with OpenMP, link, and load into the patient: its libstdc++ must be new enough for this compiler."""
        source, library = self._write("cxx.cpp", _PROGRAM), os.path.join(self._folder, "cxx.so")
        built = self._run("cxx", [*self._compile(), "-fopenmp", "-shared", source, "-o", library])
        if built.outcome != "ok":
            return built
        loaded = self._run("cxx", [self._python.executable, "-c", _LOAD, library])
        command = f"{built.command} && {shlex.quote(self._python.executable)} -c '{_LOAD}' cxx.so"
        return msgspec.structs.replace(
            loaded, command=command, seconds=round((built.seconds or 0) + (loaded.seconds or 0), 2)
        )

    def _include(self, name: str) -> Trial:
        """Preprocess only: a missing header and an #error for the wrong C++ standard both show, in a second."""
        source = self._write(f"{name}.cpp", _HEADERS[name])
        return self._run(name, [*self._compile(), "-E", source, "-o", os.devnull])

    def _link(self, name: str) -> Trial:
        source = self._write(f"{name}.cpp", 'extern "C" int dsdoctor_nothing(void) { return 0; }\n')
        folders = [f"-L{folder}" for folder in self.flags.library_folders]
        library = os.path.join(self._folder, f"{name}.so")
        return self._run(name, [*self._compile(), "-shared", source, *folders, f"-l{_LIBRARIES[name]}", "-o", library])

    def _nvcc(self) -> Trial:
        source, built = self._write("kernel.cu", _KERNEL), os.path.join(self._folder, "kernel.o")
        ccbin = ["-ccbin", self.flags.ccbin] if self.flags.ccbin else []
        numbers = [a.replace(".", "") for a in self.flags.architectures]
        archs = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in numbers]
        options = ["--compiler-options", "-fPIC", f"-std=c++{self.flags.standard}", "-c"]
        return self._run("nvcc", [f"{self.flags.cuda_root}/bin/nvcc", *ccbin, *archs, *options, source, "-o", built])

    def _nvcc_headers(self) -> Trial:
        """The headers of "cuda-headers" as a .cu file sees them: nvcc adds its own folders to those that torch names."""
        source = self._write("headers.cu", _HEADERS["cuda-headers"])
        system = [part for folder in self.flags.includes for part in ("-isystem", folder)]
        ccbin = ["-ccbin", self.flags.ccbin] if self.flags.ccbin else []
        nvcc = f"{self.flags.cuda_root}/bin/nvcc"
        return self._run(
            "nvcc-headers", [nvcc, *ccbin, *system, f"-std=c++{self.flags.standard}", "-E", source, "-o", os.devnull]
        )

    def _compile(self) -> list[str]:
        system = [part for folder in self.flags.includes for part in ("-isystem", folder)]
        return [*self.flags.cxx, *system, "-fPIC", f"-std=c++{self.flags.standard}"]

    def _write(self, name: str, text: str) -> str:
        path = Path(self._folder, name)
        path.write_text(text, "utf-8")
        return str(path)

    def _run(self, name: str, argv: list[str]) -> Trial:
        ran = self._system.run(argv, LIMIT_S)
        shown = shlex.join(argv).replace(f"{self._folder}{os.sep}", "")
        output = "\n".join(part for part in (ran.stdout.strip(), ran.stderr.strip()) if part)
        output = output.replace(f"{self._folder}{os.sep}", "")
        fields = {"name": name, "command": shown, "seconds": round(ran.seconds, 2)}
        if ran.ok:
            return Trial(outcome="ok", **fields)  # type: ignore[arg-type]
        if ran.ending == "timed-out":
            return Trial(outcome="timed-out", error=f"no answer within {LIMIT_S:.0f} s", **fields)  # type: ignore[arg-type]
        error = (
            f"{argv[0]}: {ran.problem}"
            if ran.problem
            else first_error(output) or output.splitlines()[-1:] or f"exit code {ran.code}"
        )
        error = error[0] if isinstance(error, list) else error
        tail = "\n".join(output.splitlines()[-TAIL_LINES:]) or None
        return Trial(outcome="failed", error=error, output=tail, **fields)  # type: ignore[arg-type]
