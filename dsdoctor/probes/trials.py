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
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System

LIMIT_S = 25.0  # of one program; the longest takes two seconds on a slow core
AT_ONCE = max(1, min(4, (os.cpu_count() or 2) - 1))  # one processor is left to the import of torch
TAIL_LINES = 12
TAIL_CHARACTERS = 4000
LINE = 500
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
#if __cplusplus > 201703L
#include <concepts>
#include <span>
#endif
extern "C" int dsdoctor_answer(void) {
    std::vector<std::string> words(3, "ds");
    std::optional<double> root = std::sqrt(1764.0);
    return (int) *root + (int) words.size() - 3;
}
"""
_OPENMP = """#include <omp.h>
extern "C" int dsdoctor_answer(void) {
    int sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (int i = 0; i < 21; i++) sum += 2;
    return sum;
}
"""
_KERNEL = "#include <functional>\n#include <tuple>\n__global__ void dsdoctor(float *x) { x[threadIdx.x] += 1.0f; }\n"
_NOTHING = 'extern "C" int dsdoctor_nothing(void) { return 0; }\n'
_NOEXEC = "failed to map segment from shared object"  # glibc's word for a library on a filesystem mounted noexec
_LOAD = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).dsdoctor_answer())"


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What torch would compile with here."""

    cxx: tuple[str, ...]  # CXX may hold options too
    standard: str = "17"
    includes: tuple[str, ...] = ()
    nvcc: tuple[str, ...] = ()  # PYTORCH_NVCC may be "ccache nvcc"; none without a toolkit
    library_folders: tuple[str, ...] = ()
    ccbin: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()  # "9.0"


def probe(
    system: System,
    python: Python,
    torch: Torch | None,
    toolkits: Toolkits | None,
    gpus: Gpus | None,
    *,
    limit_s: float = LIMIT_S,
) -> Trials:
    """Make all trials. Raises ProbeFailed when there is no folder to compile in, or the platform is not Linux or macOS."""
    if system.platform == "win32":
        raise ProbeFailed("not-examined", "trials are written for Linux and macOS compilers")
    flags = flags_of(system, python, torch, toolkits, gpus)
    try:
        with tempfile.TemporaryDirectory(prefix="dsdoctor-", ignore_cleanup_errors=True) as folder:
            return _try_all(_Bench(system, python, flags, folder, limit_s), torch)
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
        cxx=_words(system.env.get("CXX") or "c++") or ("c++",),
        standard=standard.group(1) if standard else "17",
        includes=tuple(includes),
        nvcc=_words(system.env.get("PYTORCH_NVCC") or "") or (f"{root}/bin/nvcc",) if root else (),
        library_folders=tuple(folders),
        ccbin=_words(system.env.get("CC") or ""),
        architectures=_architectures(system, gpus),
    )


def _architectures(system: System, gpus: Gpus | None) -> tuple[str, ...]:
    """TORCH_CUDA_ARCH_LIST where its entries are numbers, else what the GPUs are."""
    listed = [e.split("+")[0] for e in system.env.get("TORCH_CUDA_ARCH_LIST", "").replace(" ", ";").split(";") if e]
    numbers = [e for e in listed if re.fullmatch(r"\d+\.\d", e)]
    here = [g.compute_capability for g in gpus.devices if g.compute_capability] if gpus else []
    return tuple(dict.fromkeys(numbers or here))


def _try_all(bench: "_Bench", torch: Torch | None) -> Trials:
    cuda = bool(bench.flags.nvcc)
    why = "torch is not a CUDA build" if torch else "torch is not installed"
    why = "torch finds no CUDA toolkit" if torch and torch.cuda else why
    left_out = [] if cuda else [Trial(name=n, outcome="not-tried", error=why) for n in (*_NVCC, *_CUDA)]
    names = ["cxx", "openmp", *(_NVCC if cuda else ()), *_HEADERS, *_LIBRARIES]
    if torch is None:
        left_out.append(Trial(name="torch-headers", outcome="not-tried", error="torch is not installed"))
    skipped = {trial.name for trial in left_out}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = list(pool.map(bench.attempt, [n for n in names if n not in skipped]))
    return Trials(tried=(*tried, *left_out))


class _Bench:
    """A folder to compile in, and the flags."""

    def __init__(self, system: System, python: Python, flags: Flags, folder: str, limit_s: float) -> None:
        self._system, self._python, self.flags = system, python, flags
        self._folder, self._limit_s = folder, limit_s
        # what a compiler leaves when it is ended goes with the folder; its words are those that are known here
        self._env = {**system.env, "TMPDIR": folder, "LC_ALL": "C.UTF-8", "LANGUAGE": ""}

    def attempt(self, name: str) -> Trial:
        if name == "cxx":
            return self._loaded("cxx", _PROGRAM)
        if name == "openmp":
            return self._loaded("openmp", _OPENMP, "-fopenmp")
        if name == "nvcc":
            return self._nvcc()
        if name == "nvcc-headers":
            return self._nvcc_headers()
        if name in _HEADERS:
            return self._include(name)
        return self._link(name)

    def _loaded(self, name: str, program: str, *options: str) -> Trial:
        """Compile, link, and load into the patient: its libstdc++ and libgomp must be new enough for this compiler."""
        source, library = self._write(f"{name}.cpp", program), self._path(f"{name}.so")
        build = [*self._compile(), *options, "-shared", source, "-o", library]
        load = [self._python.executable, "-c", _LOAD, library]
        shown = self._with_folder(f"{name}.cpp", program, build, load)
        built = self._run(name, build, shown)
        if built.outcome != "ok":
            return built
        loaded = self._run(name, load, shown)
        if _NOEXEC in (loaded.output or ""):
            why = "compiled, and not loaded: nothing may be executed in the temporary folder (noexec; see TMPDIR)"
            return Trial(name=name, outcome="not-tried", error=why)
        return msgspec.structs.replace(loaded, seconds=round((built.seconds or 0) + (loaded.seconds or 0), 2))

    def _include(self, name: str) -> Trial:
        """Preprocess only: a missing header and an #error for the wrong C++ standard both show, in a second."""
        source = self._write(f"{name}.cpp", _HEADERS[name])
        argv = [*self._compile(), "-x", "c++", source, "-E", "-o", os.devnull]
        return self._run(name, argv, self._with_pipe(_HEADERS[name], argv))

    def _link(self, name: str) -> Trial:
        source, library = self._write(f"{name}.cpp", _NOTHING), self._path(f"{name}.so")
        folders = [f"-L{folder}" for folder in self.flags.library_folders]
        wanted = [*folders, f"-l{_LIBRARIES[name]}"]
        argv = [*self._compile(), "-x", "c++", source, "-shared", *wanted, "-o", library]
        return self._run(name, argv, self._with_pipe(_NOTHING, argv))

    def _nvcc(self) -> Trial:
        source, built = self._write("kernel.cu", _KERNEL), self._path("kernel.o")
        numbers = [a.replace(".", "") for a in self.flags.architectures]
        archs = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in numbers]
        options = [*archs, "--compiler-options", "-fPIC", f"-std=c++{self.flags.standard}", "-c"]
        argv = [*self.flags.nvcc, *self._ccbin(), *options, source, "-o", built]
        return self._run("nvcc", argv, self._with_folder("kernel.cu", _KERNEL, argv))

    def _nvcc_headers(self) -> Trial:
        """The headers of "cuda-headers" as a .cu file sees them: nvcc adds its own folders to those that torch names."""
        source = self._write("headers.cu", _HEADERS["cuda-headers"])
        options = [*self._system_includes(), f"-std=c++{self.flags.standard}", "-E"]
        argv = [*self.flags.nvcc, *self._ccbin(), *options, source, "-o", os.devnull]
        return self._run("nvcc-headers", argv, self._with_folder("headers.cu", _HEADERS["cuda-headers"], argv))

    def _compile(self) -> list[str]:
        return [*self.flags.cxx, *self._system_includes(), "-fPIC", f"-std=c++{self.flags.standard}"]

    def _system_includes(self) -> list[str]:
        return [part for folder in self.flags.includes for part in ("-isystem", folder)]

    def _ccbin(self) -> list[str]:
        return ["-ccbin", *self.flags.ccbin] if self.flags.ccbin else []

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _write(self, name: str, text: str) -> str:
        Path(self._path(name)).write_text(text, "utf-8")
        return self._path(name)

    def _with_pipe(self, text: str, argv: list[str]) -> str:
        """The command for a shell, its source on standard input: a compiler of C++ that writes nothing."""
        own = f"{self._folder}{os.sep}"
        kept = [("-" if arg.endswith(".cpp") else os.devnull) if arg.startswith(own) else arg for arg in argv]
        return f"printf {_printf(text)} | {shlex.join(kept)}"

    def _with_folder(self, name: str, text: str, *commands: list[str]) -> str:
        """The commands for a shell, in a folder of their own: nvcc reads its source several times."""
        prefix = f"{self._folder}{os.sep}"
        lines = [
            " ".join(f'"$d/{arg[len(prefix) :]}"' if arg.startswith(prefix) else shlex.quote(arg) for arg in argv)
            for argv in commands
        ]
        return " && ".join(["d=$(mktemp -d)", f'printf {_printf(text)} > "$d/{name}"', *lines])

    def _run(self, name: str, argv: list[str], shown: str) -> Trial:
        ran = self._system.run(argv, self._limit_s, env=self._env, polite=True)
        output = "\n".join(part for part in (ran.stdout.strip(), ran.stderr.strip()) if part)
        for folder in (self._folder, os.path.realpath(self._folder)):
            output = output.replace(f"{folder}{os.sep}", "").replace(folder, ".")
        fields = {"name": name, "command": shown, "seconds": round(ran.seconds, 2)}
        if ran.ok:
            return Trial(outcome="ok", **fields)  # type: ignore[arg-type]
        lines = [line for line in output.splitlines() if line.strip()]
        tail = "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARACTERS:] or None
        if ran.ending == "timed-out":
            late = f"no answer within {self._limit_s:g} s"
            return Trial(outcome="timed-out", error=late, output=tail, **fields)  # type: ignore[arg-type]
        return Trial(outcome="failed", error=_error(argv[0], ran, output), output=tail, **fields)  # type: ignore[arg-type]


def _error(program: str, ran: Ran, output: str) -> str:
    """One line that says why it failed."""
    if ran.problem:
        return f"{program}: {ran.problem}"
    ended = f"{program} died of {ran.signal}" if ran.signal else f"{program} ended with exit code {ran.code}"
    said = first_error(output)
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), None)
    return said or (f"{ended}: {last[:LINE]}" if last else f"{ended}, without a word")


def _printf(text: str) -> str:
    """``text`` as the quoted format of printf(1), on one line."""
    return shlex.quote(text.replace("\\", "\\\\").replace("%", "%%").replace("\n", "\\n"))


def _words(value: str) -> tuple[str, ...]:
    """A variable's value as the shell that ninja starts would split it; at blanks when its quotes do not match."""
    try:
        return tuple(shlex.split(value))
    except ValueError:
        return tuple(value.split())
