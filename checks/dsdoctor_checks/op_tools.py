"""Checks of what a build of an op takes: tiny programs tell (Trials), the file system where none could be tried."""

from collections.abc import Iterator, Sequence

from dsdoctor.api import (
    Compilers,
    DsConfig,
    Environment,
    Finding,
    Prescriber,
    Python,
    Remedy,
    Toolkit,
    Toolkits,
    Trial,
    Trials,
    check,
    known,
    not_applicable,
    unknown,
)
from dsdoctor_checks.op_specs import needing
from dsdoctor_checks.rows import run_python
from dsdoctor_checks.trials import BUILD_CAUSES, failure, looked, mildness, refusals, tried

_HOST = ("cpp-build", "cuda-build")


@check("OPS050", "The C++ compiler builds a library that Python can load", causes=BUILD_CAUSES, guards=_HOST)
def compiler_works(trials: Trials | None, prescriber: Prescriber) -> Iterator[Finding]:
    """A small library in torch's C++ standard is compiled, linked and loaded into the patient."""
    trial = tried(trials, "cxx")
    if trial is None:
        not_applicable("no program was compiled here")
    if trial.outcome != "ok":
        yield failure(trial, "a small C++ library could not be built and loaded", prescriber)


@check("OPS055", "The C++ compiler has OpenMP", causes=BUILD_CAUSES, guards=["openmp"])
def openmp_there(compilers: Compilers, trials: Trials | None, prescriber: Prescriber) -> Iterator[Finding]:
    """The CPU ops and async_io are compiled with -fopenmp. gcc brings OpenMP; clang finds it in a package of its own."""
    trial, plain = tried(trials, "openmp"), tried(trials, "cxx")
    if trial is None:
        cxx = known(compilers.cxx, "the C++ compiler")
        if cxx.family != "gcc" and cxx.path is not None:
            not_applicable(f"whether {cxx.command} finds omp.h was not tried")
        return
    if trial.outcome != "ok" and (plain is None or plain.outcome == "ok"):
        yield failure(trial, f"{', '.join(needing('openmp'))} are compiled with OpenMP", prescriber)


@check("OPS051", "torch's headers can be included", causes=BUILD_CAUSES, guards=_HOST)
def torch_headers(trials: Trials | None, prescriber: Prescriber) -> Iterator[Finding]:
    """Every op includes torch's headers, pybind11's among them."""
    trial = tried(trials, "torch-headers")
    if trial is None:
        not_applicable("torch's headers were not tried")
    if trial.outcome == "ok":
        return
    if _same(trial, tried(trials, "python-headers")):
        not_applicable("Python's own headers are missing; see OPS007")
    yield failure(trial, "torch's headers cannot be included", prescriber)


def _same(trial: Trial, other: Trial | None) -> bool:
    """Both stumble over the same thing: told once, where it belongs."""
    return other is not None and other.outcome == "failed" and "Python.h" in (trial.error or "")


@check(
    "OPS052", "nvcc and its host compiler build a kernel for this machine", causes=BUILD_CAUSES, guards=["cuda-build"]
)
def nvcc_works(trials: Trials | None, prescriber: Prescriber) -> Iterator[Finding]:
    """A tiny kernel is compiled for the architectures of this machine, with the host compiler that torch would hand to nvcc."""
    trial = tried(trials, "nvcc")
    if trial is None:
        not_applicable("no CUDA op is compiled here")
    if trial.outcome != "ok":
        yield failure(trial, "nvcc could not compile a tiny kernel", prescriber)


@check("OPS053", "nvcc finds the headers of the CUDA libraries", causes=BUILD_CAUSES, guards=["cuda-build"])
def nvcc_headers(trials: Trials | None, prescriber: Prescriber) -> Iterator[Finding]:
    """torch's CUDA headers include those of cuBLAS, cuSPARSE and cuSOLVER. Every CUDA source includes some of them."""
    trial = tried(trials, "nvcc-headers")
    if trial is None:
        not_applicable("no CUDA op is compiled here")
    if trial.outcome == "ok":
        return
    nvcc = tried(trials, "nvcc")
    if nvcc is not None and nvcc.outcome != "ok":
        not_applicable("nvcc compiles nothing at all; see OPS052")
    yield failure(trial, "nvcc cannot include the CUDA headers that torch includes", prescriber)


@check(
    "OPS054", "The C++ compiler finds the headers of the CUDA libraries", causes=BUILD_CAUSES, guards=["cuda-headers"]
)
def cuda_headers(trials: Trials | None, config: DsConfig | None, prescriber: Prescriber) -> Iterator[Finding]:
    """Half of the CUDA ops include them in C++ sources too, where nvcc's own folders do not count."""
    trial = tried(trials, "cuda-headers")
    if trial is None:
        not_applicable("no CUDA op is compiled here")
    if trial.outcome != "ok":
        ops = ", ".join(needing("cuda-headers"))
        what = f"the C++ compiler cannot include the headers that {ops} include"
        yield failure(trial, what, prescriber, mildness("cuda-headers", config))


@check("OPS007", "Python's headers are there", causes=["python-h-missing"], guards=_HOST)
def python_headers(python: Python, trials: Trials | None, prescriber: Prescriber) -> Iterator[Finding]:
    """Every op includes Python.h. Distributions put it in a package of its own."""
    trial = tried(trials, "python-headers")
    missed = trial is not None and trial.outcome != "ok" and "Python.h" in (trial.error or "")
    seen = trial is not None and trial.outcome == "ok"
    if seen or (not missed and known(python.python_h, "whether Python.h is there")):
        return
    distribution = python.environment == "system" or python.base_prefix in ("/usr", "/usr/local")
    yield Finding(
        message=f"Python.h is not in {python.include_dir or 'the include folder'} of Python {python.version}",
        cause="python-h-missing",
        evidence=refusals(trial) if missed else (),
        remedy=Remedy(
            order="Install Python's headers"
            if distribution
            else "Use a Python that brings its headers, such as conda's or uv's",
            commands=prescriber.system("python3-dev") if distribution else (),
            safety="safe" if distribution else "manual",
            verify=run_python(prescriber, "import sysconfig, os; print(os.listdir(sysconfig.get_paths()['include']))"),
        ),
    )


def _toolkit(toolkits: Toolkits) -> Toolkit:
    """The toolkit that torch takes, or the end of the check."""
    if toolkits.selected is None or not toolkits.selected.nvcc:
        not_applicable("no CUDA op can be built here; the CUDA checks say why")
    return toolkits.selected


def _name_folder(folder: str, there: bool, library: str, prescriber: Prescriber) -> Remedy:
    return Remedy(
        order="Name the library folder for the linker"
        if there
        else f"Install the toolkit's {library} development files, then name their folder",
        commands=(prescriber.set("LIBRARY_PATH", f"{folder}:$LIBRARY_PATH"),),
        safety="safe" if there else "careful",
    )


@check("OPS016", "The linker finds libcuda", causes=["libcuda-link-failure"], guards=["libcuda"])
def libcuda_links(
    toolkits: Toolkits, compilers: Compilers, trials: Trials | None, config: DsConfig | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """async_io and gds are linked with -lcuda, the driver's library. Where there is no driver the toolkit's stub serves."""
    toolkit, trial = _toolkit(toolkits), tried(trials, "link-cuda")
    if trial.outcome == "ok" if trial else looked(compilers.libcuda_link, "libcuda.so", "libcuda", config):
        return
    folder = f"{toolkit.root}/{toolkit.lib_dir or 'lib64'}/stubs"
    yield Finding(
        message="the linker does not find libcuda.so: async_io and gds cannot be linked",
        cause="libcuda-link-failure",
        evidence=refusals(trial),
        severity=mildness("libcuda", config),
        remedy=_name_folder(folder, toolkit.stubs, "driver", prescriber),
    )


@check("OPS017", "cuFile's header and library are there", causes=["cufile-missing"], guards=["cufile"])
def cufile_links(
    toolkits: Toolkits, trials: Trials | None, config: DsConfig | None, environment: Environment | None, prescriber: Prescriber
) -> Iterator[Finding]:  # fmt: skip
    """GPUDirect Storage (the gds op) includes cufile.h and is linked with -lcufile, which DeepSpeed looks for in lib64 only."""
    toolkit, blind = _toolkit(toolkits), None
    trial = [t for t in (tried(trials, "cufile-headers"), tried(trials, "link-cufile")) if t is not None]
    if toolkit.from_text and not trial:
        unknown("pasted text does not show the files of the toolkit")
    static = "cufile.h" in toolkit.headers and "cufile" in toolkit.libraries
    if all(t.outcome == "ok" for t in trial) if trial else static:
        blind = _outside_lib64(toolkit, environment)
        if blind is None:
            return
    yield Finding(
        message=f"libcufile.so lies in {blind}, and DeepSpeed looks into {toolkit.root}/lib64 for it: gds cannot be built"
        if blind
        else f"{toolkit.root} has no cuFile that the compiler and linker find: gds cannot be built",
        cause="cufile-missing",
        evidence=refusals(*trial),
        severity=mildness("cufile", config),
        remedy=_name_folder(blind or "", there=True, library="cuFile", prescriber=prescriber)
        if blind
        else Remedy(order="Install the toolkit's cuFile development files (libcufile-dev)", safety="manual"),
    )


def _outside_lib64(toolkit: Toolkit, environment: Environment | None) -> str | None:
    """The toolkit's folder of libcufile.so when GDSBuilder's probe does not look there (gds.py of 0.19.8; torch's link does)."""
    root, folder = toolkit.root.rstrip("/"), toolkit.libraries.get("cufile", "").rpartition("/")[0]
    listed = environment.get("LIBRARY_PATH").split(":") if environment is not None else []
    seen = {f"{root}/lib64", *(name.rstrip("/") for name in listed)}
    own = folder.startswith(f"{root}/") and root not in ("", "/usr")
    return folder if own and folder not in seen else None


@check("OPS018", "nccl.h is there", causes=["nccl-header-missing"], guards=["nccl-headers"])
def nccl_header(
    toolkits: Toolkits, compilers: Compilers, trials: Trials | None, python: Python, config: DsConfig | None, prescriber: Prescriber
) -> Iterator[Finding]:  # fmt: skip
    """The deep-compile op includes torch's NCCL header, which includes nccl.h. torch's wheels do not put it where a compiler looks."""
    toolkit, trial = _toolkit(toolkits), tried(trials, "nccl-headers")
    in_toolkit = trial is None and "nccl.h" in toolkit.headers
    if in_toolkit or (
        trial.outcome == "ok" if trial else looked(compilers.nccl_header, "nccl.h", "nccl-headers", config)
    ):
        return
    places: Sequence[str] = python.site_packages or ("site-packages",)
    yield Finding(
        message="the compiler does not find nccl.h: dc (compile.deepcompile) cannot be built",
        cause="nccl-header-missing",
        evidence=refusals(trial),
        severity=mildness("nccl-headers", config),
        remedy=Remedy(
            order="Name the folder of the nvidia-nccl wheel for the compiler",
            commands=(prescriber.set("CPATH", f"{places[0]}/nvidia/nccl/include:$CPATH"),),
            safety="careful",
        ),
    )
