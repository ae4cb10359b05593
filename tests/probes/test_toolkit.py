"""Toolkits in constructed folders with programs that behave as real and as broken nvccs do."""

import ast
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.facts import Python, Torch
from dsdoctor.probes import nvcc, toolkit
from dsdoctor.probes.system import System

VERSION = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2025 NVIDIA Corporation
Built on Wed_Aug_20_01:58:59_PM_PDT_2025
Cuda compilation tools, release {version}, V{version}.88
Build cuda_{version}.r{version}/compiler.36424714_0"""
CODES = "sm_75\\nsm_80\\nsm_90\\nsm_90a\\nsm_100\\nsm_100f\\nsm_120"
HOST_CONFIG = """
#if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > 20))
#if defined(__GNUC__)
#if __GNUC__ > 15
#error -- unsupported GNU version! gcc versions later than 15 are not supported!
#if (__clang_major__ >= 21) || (__clang_major__ < 3) || ((__clang_major__ == 3) &&  (__clang_minor__ < 3))
"""


def write(path: Path, text: str = "", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def nvcc_program(root: Path, version: str = "13.0", body: str | None = None) -> Path:
    answer = (
        f"if [ \"$1\" = --version ]; then cat <<'X'\n{VERSION.format(version=version)}\nX\nelse printf '{CODES}\\n'; fi"
    )
    return write(root / "bin/nvcc", f"#!/bin/sh\n{body or answer}\n", 0o755)


def full_toolkit(root: Path, libraries: str = "lib64", version: str = "13.0") -> Path:
    nvcc_program(root, version)
    for name in ("cuda_runtime_api.h", "cublas_v2.h", "curand_kernel.h"):
        write(root / "include" / name)
    write(root / "include/crt/host_config.h", HOST_CONFIG)
    for name in ("libcudart.so", "libcurand.so", "libcublas.so.13"):
        write(root / libraries / name)
    return root


def system(tmp_path: Path, **variables: str) -> System:
    return System({"PATH": "/usr/bin:/bin", **variables}, cwd=str(tmp_path), platform="linux")


def torch_of(cuda: str | None) -> Torch:
    return Torch(version="2.13.0", cuda=cuda, path="/x/torch")


@pytest.mark.parametrize("kind", ["link", "script"])
def test_the_toolkit_behind_a_link_or_a_script_is_found(tmp_path: Path, kind: str) -> None:
    root = full_toolkit(tmp_path / "cuda-13.0")
    (tmp_path / "local/bin").mkdir(parents=True)
    if kind == "link":
        (tmp_path / "local/bin/nvcc").symlink_to(root / "bin/nvcc")
    else:
        write(tmp_path / "local/bin/nvcc", f'#!/bin/sh\nexec {root}/bin/nvcc "$@"\n', 0o755)
    found = toolkit.probe(system(tmp_path, PATH=f"{tmp_path}/local/bin:/usr/bin:/bin"), None, torch_of("13.0"))
    assert (found.chosen, found.chosen_by) == (f"{tmp_path}/local", "nvcc on PATH"), "torch follows neither"
    kits = {kit.root: kit for kit in found.found}
    assert kits[f"{tmp_path}/local"].headers == ()
    assert "cuda_runtime_api.h" in kits[str(root)].headers
    assert kits[str(root)].version == kits[f"{tmp_path}/local"].version == "13.0"


def test_a_whole_toolkit_is_described(tmp_path: Path) -> None:
    root = full_toolkit(tmp_path / "cuda")
    write(root / "lib64/stubs/libcuda.so")
    found = toolkit.probe(system(tmp_path, CUDA_HOME=str(root)), None, torch_of("13.0"))
    assert (found.chosen, found.chosen_by) == (str(root), "CUDA_HOME")
    kit = found.selected
    assert kit is not None
    assert (kit.version, kit.nvcc, kit.nvcc_problem) == ("13.0", str(root / "bin/nvcc"), None)
    assert kit.headers == ("cuda_runtime_api.h", "cublas_v2.h", "curand_kernel.h")
    assert kit.libraries["curand"] == str(root / "lib64/libcurand.so")
    assert "cublas" not in kit.libraries  # only libcublas.so.13, which -lcublas does not find
    assert (kit.lib_dir, kit.stubs) == ("lib64", True)
    assert (kit.gcc_max, kit.clang_max) == (15, 20)
    assert kit.architectures == ("7.5", "8.0", "9.0", "10.0", "12.0")


def test_the_linker_is_sent_to_lib_and_never_to_targets(tmp_path: Path) -> None:
    root = full_toolkit(tmp_path / "cuda", "lib")
    write(root / "targets/x86_64-linux/lib/libcusparse.so")
    write(root / "targets/x86_64-linux/include/nccl.h")
    kit = toolkit.probe(system(tmp_path, CUDA_HOME=str(root)), None, None).selected
    assert kit is not None
    assert kit.lib_dir == "lib"
    assert "cusparse" not in kit.libraries  # on an H200 without lib64/libcudart.so: cannot find -lcudart
    assert "nccl.h" in kit.headers


def test_library_path_serves_the_linker(tmp_path: Path) -> None:
    root = full_toolkit(tmp_path / "cuda")
    write(tmp_path / "elsewhere/libcufile.so")
    variables = {"CUDA_HOME": str(root), "LIBRARY_PATH": f"/nowhere:{tmp_path / 'elsewhere'}"}
    kit = toolkit.probe(system(tmp_path, **variables), None, None).selected
    assert kit is not None
    assert kit.libraries["cufile"] == str(tmp_path / "elsewhere/libcufile.so")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda root: write(root / "bin/nvcc/x"), "is a directory"),
        (lambda root: write(root / "bin/nvcc", "#!/bin/sh\n"), "is not executable"),
        (lambda root: nvcc_program(root, body="echo hello"), "printed no version: hello"),
        (lambda root: nvcc_program(root, body="echo no licence >&2; exit 3"), "ended with exit code 3: no licence"),
        (lambda root: nvcc_program(root, body="kill -SEGV $$"), "was ended by SIGSEGV"),
        (lambda root: nvcc_program(root, body="sleep 30"), "gave no answer within 1 s"),
        (lambda root: write(root / "bin/nvcc", "\x7fELF garbage", 0o755), "does not start: Exec format error"),
    ],
)
def test_an_nvcc_that_is_broken(tmp_path: Path, make: Callable[[Path], Any], says: str) -> None:
    root = tmp_path / "cuda"
    make(root)
    kit = toolkit.probe(system(tmp_path, CUDA_HOME=str(root)), None, None, 1.0).selected
    assert kit is not None
    assert kit.nvcc == str(root / "bin/nvcc")
    assert kit.version is None
    assert kit.nvcc_problem == says


@pytest.mark.parametrize(
    ("value", "exists", "says"),
    [
        ("{0}/missing", False, "CUDA_HOME names a folder that does not exist"),
        ("{0}/cuda:{0}/other", False, "CUDA_HOME holds several folders joined by ':': it must name one"),
        ("{0}/cuda/bin", True, "CUDA_HOME ends in /bin: it must name the folder above"),
        ("{0}/cuda/bin/nvcc", False, "CUDA_HOME is a file, not a folder"),
    ],
)
def test_a_malformed_cuda_home_is_kept_and_named(tmp_path: Path, value: str, exists: bool, says: str) -> None:
    full_toolkit(tmp_path / "cuda")
    found = toolkit.probe(system(tmp_path, CUDA_HOME=value.format(tmp_path)), None, None)
    kit = found.selected
    assert kit is not None
    assert (kit.exists, kit.nvcc, kit.nvcc_problem) == (exists, None, says)


def test_a_runtime_without_nvcc_still_has_its_version(tmp_path: Path) -> None:
    root = tmp_path / "cuda"
    write(root / "version.json", '{"cuda" : {"name" : "CUDA SDK", "version" : "12.4.1"}}')
    kit = toolkit.probe(system(tmp_path, CUDA_HOME=str(root)), None, None).selected
    assert kit is not None
    assert (kit.version, kit.nvcc, kit.nvcc_problem) == ("12.4", None, None)


def test_a_cpu_build_of_torch_takes_no_toolkit(tmp_path: Path) -> None:
    root = full_toolkit(tmp_path / "cuda")
    found = toolkit.probe(system(tmp_path, CUDA_HOME=str(root)), None, torch_of(None))
    assert (found.chosen, found.chosen_by, found.selected) == (None, None, None)
    assert str(root) in [kit.root for kit in found.found]


def test_nvcc_on_path_makes_its_grandparent_the_choice(tmp_path: Path) -> None:
    real = full_toolkit(tmp_path / "toolkit")
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/nvcc").symlink_to(real / "bin/nvcc")
    found = toolkit.probe(system(tmp_path, PATH=f"{tmp_path}/usr/bin:/usr/bin:/bin"), None, None)
    assert (found.chosen, found.chosen_by) == (str(tmp_path / "usr"), "nvcc on PATH")
    kits = {kit.root: kit for kit in found.found}
    assert kits[str(tmp_path / "usr")].headers == ()
    assert "cuda_runtime_api.h" in kits[str(real)].headers


def test_one_folder_under_two_names_is_listed_once_and_asked_once(tmp_path: Path) -> None:
    root = tmp_path / "cuda-13.0"
    nvcc_program(root, body=f"echo asked >> {tmp_path}/count; echo release 13.0,")
    (tmp_path / "cuda").symlink_to(root)
    variables = {"CUDA_HOME": f"{tmp_path}/cuda", "CUDA_PATH": str(root)}
    found = toolkit.probe(system(tmp_path, **variables), None, None)
    mine = [kit for kit in found.found if kit.root.startswith(str(tmp_path))]
    assert [(kit.root, kit.real_path) for kit in mine] == [(f"{tmp_path}/cuda", str(root))]
    assert (tmp_path / "count").read_text().splitlines() == ["asked", "asked"]  # --version, --list-gpu-code


def test_usr_local_is_the_last_resort(tmp_path: Path) -> None:
    full_toolkit(tmp_path / "usr/local/cuda-12.4", version="12.4")
    (tmp_path / "usr/local/cuda").symlink_to("cuda-12.4")
    found = toolkit.probe(
        System({"PATH": "/usr/bin:/bin"}, root=tmp_path, cwd=str(tmp_path), platform="linux"), None, None
    )
    assert (found.chosen, found.chosen_by) == ("/usr/local/cuda", "/usr/local/cuda")
    assert [(kit.root, kit.version) for kit in found.found] == [("/usr/local/cuda", "12.4")]


def test_conda_and_pip_layouts(tmp_path: Path) -> None:
    prefix = tmp_path / "conda"
    nvcc_program(prefix, "12.6")
    write(prefix / "conda-meta/history")
    write(prefix / "targets/x86_64-linux/include/cuda_runtime_api.h")
    packages = prefix / "lib/python3.11/site-packages"
    write(packages / "nvidia/cu13/include/cuda.h", "#define CUDA_VERSION 13000\n")
    write(packages / "nvidia/cublas/lib/libcublas.so.12")
    patient = Python(
        executable=str(prefix / "bin/python"), chosen_because="--python", version="3.11.7", prefix=str(prefix),
        base_prefix=str(prefix), environment="conda", site_packages=(str(packages),),
    )  # fmt: skip
    found = toolkit.probe(system(tmp_path), patient, None)
    mine = {kit.found_by: kit for kit in found.found if kit.root.startswith(str(tmp_path))}
    assert mine.keys() == {"conda", "pip"}
    assert (mine["conda"].version, mine["conda"].headers) == ("12.6", ("cuda_runtime_api.h",))
    assert (mine["pip"].root, mine["pip"].version, mine["pip"].nvcc) == (f"{packages}/nvidia/cu13", "13.0", None)


def test_skip_check_is_seen(tmp_path: Path) -> None:
    assert toolkit.probe(system(tmp_path, DS_SKIP_CUDA_CHECK="1"), None, None).skip_check
    assert not toolkit.probe(system(tmp_path, DS_SKIP_CUDA_CHECK="true"), None, None).skip_check  # DeepSpeed wants "1"


def test_older_host_configs() -> None:
    cuda10 = "#if __GNUC__ > 8\n\n#error -- unsupported GNU version! gcc versions later than 8 are not supported!\n"
    assert (match := toolkit._GCC_MAX.search(cuda10))
    assert match.group(1) == "8"
    assert nvcc.architectures("sm_35\nsm_37\nsm_50\nsm_103\n") == ("3.5", "3.7", "5.0", "10.3")


def torchs_own_rule() -> str | None:
    """The source of _find_cuda_home in the torch that is installed here, if one is."""
    import importlib.util

    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "utils/cpp_extension.py"
    tree = ast.parse(path.read_text())
    return next(ast.unparse(n) for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "_find_cuda_home")


@pytest.mark.parametrize(
    "variables",
    [
        {"CUDA_HOME": "/a"},
        {"CUDA_PATH": "/b"},
        {"CUDA_HOME": "/a", "CUDA_PATH": "/b"},
        {"CUDA_HOME": ""},
        {"CUDA_HOME": "", "CUDA_PATH": ""},
        {"CUDA_HOME": "", "CUDA_PATH": "/b"},
        {"PATH": "{0}/bin"},
        {"PATH": "/nowhere"},
    ],
)
def test_the_choice_is_torchs(tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = torchs_own_rule()
    if source is None:
        pytest.skip("torch is not installed")
    nvcc_program(tmp_path)
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))

    class Torch:
        class cuda:
            is_available = staticmethod(lambda: True)

    space: dict[str, Any] = {"os": os, "shutil": shutil, "IS_WINDOWS": False, "torch": Torch}
    exec(source, space)
    mine = toolkit._choose(System(platform="linux"), shutil.which("nvcc"))
    assert mine.root == (space["_find_cuda_home"]() or None)
