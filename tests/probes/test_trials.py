"""Trials against the compilers of this machine, healthy and broken on purpose."""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from dsdoctor.facts import Python, Torch, Trial, Trials
from dsdoctor.facts.ops import TRIALS
from dsdoctor.healthy import toolkit, toolkits
from dsdoctor.probes import ProbeFailed, trials
from dsdoctor.probes.system import System

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX compilers"),
    pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler here"),
]
PURE_PATH = os.pathsep.join(("/usr/local/bin", "/usr/bin", "/bin"))
PYTHON = Python(
    executable=sys.executable,
    chosen_because="-",
    version="3.11.7",
    prefix="/v",
    base_prefix="/usr",
    include_dir=sysconfig.get_path("include"),
)
CUDA = Path("/usr/local/cuda")
needs_nvcc = pytest.mark.skipif(not (CUDA / "bin" / "nvcc").exists(), reason="no CUDA toolkit here")
HEADERS = ("c10/util/Exception.h", "torch/csrc/python_headers.h", "pybind11/pybind11.h")


class Bench:
    """A machine whose temporary folder is watched."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temp, self.bin = folder, folder / "temp", folder / "bin"
        self.temp.mkdir()
        self.bin.mkdir()

    def torch(self, *headers: str, cuda: str | None = None, utils: str = "") -> Torch:
        root = self.folder / "torch"
        for header in headers:
            path = root / "include" / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        (root / "utils").mkdir(parents=True, exist_ok=True)
        (root / "utils" / "cpp_extension.py").write_text(utils)
        return Torch(version="2.13.0", cuda=cuda, path=os.fspath(root))

    def tool(self, name: str, script: str) -> str:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return os.fspath(path)

    def system(self, **env: str) -> System:
        return System({"PATH": PURE_PATH, "HOME": os.fspath(self.folder), **env}, cwd=os.fspath(self.folder))

    def attempt(
        self,
        torch: Torch | None = None,
        root: Path | None = None,
        *,
        python: Python = PYTHON,
        limit_s: float = 60.0,
        env: Mapping[str, str] | None = None,
        **more: str,
    ) -> Trials:
        found = toolkits(toolkit(root=os.fspath(root)), chosen=os.fspath(root)) if root else None
        made = trials.probe(self.system(**(env or {}), **more), python, torch, found, None, limit_s=limit_s)
        assert os.listdir(self.temp) == []
        assert sorted(t.name for t in made.tried) == sorted(TRIALS)
        told = "\n".join(str(part) for t in made.tried for part in (t.command, t.error, t.output))
        assert os.fspath(self.temp) not in told
        return made

    def repeat(self, trial: Trial, **env: str) -> "subprocess.CompletedProcess[str]":
        """What a user sees who pastes the command."""
        assert trial.command is not None
        assert "\n" not in trial.command
        return subprocess.run(
            ["bash", "-c", trial.command],
            cwd=self.folder,
            env=self.system(**env).env,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", os.fspath(made.temp))
    return made


def named(made: Trials, name: str) -> Trial:
    trial = made.get(name)
    assert trial is not None
    return trial


def test_a_healthy_host_compiler_compiles_links_and_loads(bench: Bench) -> None:
    made = bench.attempt(bench.torch(*HEADERS))
    for name in ("cxx", "torch-headers"):
        assert named(made, name).outcome == "ok", named(made, name)
        assert named(made, name).error is None
    assert bench.repeat(named(made, "cxx")).stdout == "42\n"


@pytest.mark.skipif(not Path(PYTHON.include_dir or "", "Python.h").exists(), reason="no Python.h here")
def test_python_h_is_there(bench: Bench) -> None:
    assert bench.attempt().ok("python-headers")


@pytest.mark.parametrize("compiler", ["g++", "g++-11", "clang++"])
def test_every_compiler_that_is_here(bench: Bench, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    trial = named(bench.attempt(CXX=compiler), "cxx")
    repeated = bench.repeat(trial, CXX=compiler)
    assert (trial.outcome == "ok") is (repeated.returncode == 0)
    if trial.outcome != "ok":
        assert trial.error is not None
        assert trial.error in repeated.stderr


def test_cxx_may_hold_options(bench: Bench) -> None:
    trial = named(bench.attempt(CXX="g++ -DX='a b' -Wall"), "cxx")
    assert trial.outcome == "ok"
    assert "g++ '-DX=a b' -Wall" in (trial.command or "")


@pytest.mark.parametrize(
    ("cxx", "error"),
    [
        ("no-such-compiler", "no-such-compiler: No such file or directory"),
        ("false", "false ended with exit code 1, without a word"),
        ('g++ "', '"'),
        ("g++ -fno-such-flag", "-fno-such-flag"),
    ],
)
def test_a_cxx_that_is_no_compiler_fails_everywhere_and_says_why(bench: Bench, cxx: str, error: str) -> None:
    made = bench.attempt(bench.torch(*HEADERS), CXX=cxx)
    for name in ("cxx", "python-headers", "torch-headers", "link-aio"):
        assert named(made, name).outcome == "failed"
        assert error in (named(made, name).error or "")
        assert bench.repeat(named(made, name)).returncode != 0


def test_a_failure_is_repeated_by_its_command(bench: Bench) -> None:
    (bench.folder / "empty").mkdir()
    lonely = Python(**{**PYTHON_FIELDS, "include_dir": os.fspath(bench.folder / "empty")})
    made = bench.attempt(bench.torch(), python=lonely)
    for name, header in (("python-headers", "Python.h"), ("torch-headers", "c10/util/Exception.h")):
        trial = named(made, name)
        assert trial.outcome == "failed"
        assert (trial.error or "").endswith(f"fatal error: {header}: No such file or directory")
        again = bench.repeat(trial)
        assert again.returncode != 0
        assert f"fatal error: {header}: No such file or directory" in again.stderr


PYTHON_FIELDS = {name: getattr(PYTHON, name) for name in PYTHON.__struct_fields__}


def test_a_cpath_that_names_an_empty_folder_hides_nothing(bench: Bench) -> None:
    (bench.folder / "empty").mkdir()
    assert bench.attempt(bench.torch(*HEADERS), CPATH=os.fspath(bench.folder / "empty")).ok("torch-headers")


def test_a_cpath_whose_header_is_broken_is_found_out(bench: Bench) -> None:
    (bench.folder / "shadow").mkdir()
    (bench.folder / "shadow" / "vector").write_text("#error shadowed\n")
    trial = named(bench.attempt(CPATH=os.fspath(bench.folder / "shadow")), "cxx")
    assert trial.outcome == "failed"
    assert "#error shadowed" in (trial.error or "")


def test_the_standard_is_the_one_that_torch_compiles_with(bench: Bench) -> None:
    made = bench.attempt(bench.torch(*HEADERS, utils="flags = ['-std=c++20']"))
    assert "-std=c++20" in (named(made, "torch-headers").command or "")
    old = bench.tool("old++", 'case "$*" in *c++20*) echo "error: unrecognized -std=c++20" >&2; exit 1;; esac')
    refused = named(bench.attempt(bench.torch(*HEADERS, utils="flags = ['-std=c++20']"), CXX=old), "cxx")
    assert refused.error == "error: unrecognized -std=c++20"


def test_what_was_not_tried_says_why(bench: Bench) -> None:
    reasons = {t.name: t.error for t in bench.attempt(bench.torch(*HEADERS)).tried if t.outcome == "not-tried"}
    assert reasons["nvcc"] == reasons["link-curand"] == "torch is not a CUDA build"
    reasons = {t.name: t.error for t in bench.attempt(bench.torch(*HEADERS, cuda="13.0")).tried if t.error}
    assert reasons["nvcc"] == "torch finds no CUDA toolkit"
    reasons = {t.name: t.error for t in bench.attempt().tried if t.outcome == "not-tried"}
    assert reasons["nvcc"] == reasons["torch-headers"] == "torch is not installed"


@needs_nvcc
def test_nvcc_compiles_a_kernel(bench: Bench) -> None:
    trial = named(bench.attempt(bench.torch(cuda="13.0"), CUDA.resolve()), "nvcc")
    assert trial.outcome == "ok", trial
    assert bench.repeat(trial).returncode == 0


@needs_nvcc
@pytest.mark.parametrize(
    ("env", "word"),
    [({"TORCH_CUDA_ARCH_LIST": "3.5"}, "compute_35"), ({"CC": "gcc-99"}, "gcc-99"), ({"CC": "/"}, "")],
)
def test_nvcc_that_refuses_is_repeated_by_its_command(bench: Bench, env: dict[str, str], word: str) -> None:
    trial = named(bench.attempt(bench.torch(cuda="13.0"), CUDA.resolve(), env=env), "nvcc")
    assert trial.outcome == "failed"
    assert word in (trial.error or "")
    again = bench.repeat(trial, **env)
    assert again.returncode != 0
    assert word in again.stderr


def farm(folder: Path, *without: str) -> Path:
    """A toolkit of links to this machine's, without some of its parts."""
    root, real = folder / "farm", CUDA.resolve()
    for name in ("bin", "nvvm", "include", "lib64"):
        if name in without:
            continue
        source = (real / name).resolve()
        (root / name).mkdir(parents=True)
        for entry in source.iterdir():
            if not entry.name.startswith(without):
                (root / name / entry.name).symlink_to(entry.resolve())
    return root


@needs_nvcc
def test_a_toolkit_without_libcudart(bench: Bench) -> None:
    whole = bench.attempt(bench.torch(cuda="13.0"), CUDA.resolve())
    assert whole.ok("link-cudart")
    made = bench.attempt(bench.torch(cuda="13.0"), farm(bench.folder, "libcudart"))
    trial = named(made, "link-cudart")
    assert trial.outcome == "failed"
    assert "cannot find -lcudart" in (trial.error or "")
    assert "cannot find -lcudart" in bench.repeat(trial).stderr


@needs_nvcc
def test_a_toolkit_without_headers(bench: Bench) -> None:
    trial = named(bench.attempt(bench.torch(cuda="13.0"), farm(bench.folder, "include")), "cuda-headers")
    assert trial.outcome == "failed"
    assert "fatal error: cuda_runtime_api.h: No such file" in (trial.error or "")
    assert "fatal error: cuda_runtime_api.h: No such file" in bench.repeat(trial).stderr


def test_pytorch_nvcc_may_be_a_wrapper(bench: Bench) -> None:
    wrapped = bench.tool("ccache", 'echo "error: wrapped $1" >&2; exit 1')
    (bench.folder / "cuda").mkdir()
    trial = named(
        bench.attempt(bench.torch(cuda="13.0"), bench.folder / "cuda", PYTORCH_NVCC=f"{wrapped} nvcc"), "nvcc"
    )
    assert trial.error == "error: wrapped nvcc"


def test_a_compiler_that_hangs_costs_its_limit_and_leaves_no_child(bench: Bench) -> None:
    slow = bench.tool(
        "slow++", f"touch $TMPDIR/cc123.s; echo $$ >> {bench.folder}/pids; echo thinking >&2; sleep 321 & wait"
    )
    began = time.monotonic()
    made = bench.attempt(CXX=slow, limit_s=0.5)
    assert time.monotonic() - began < 20
    assert named(made, "cxx").outcome == "timed-out"
    assert (named(made, "cxx").error, named(made, "cxx").output) == ("no answer within 0.5 s", "thinking")
    for pid in (bench.folder / "pids").read_text().split():
        assert not Path("/proc", pid).exists()


def test_a_compiler_that_chatters_is_cut(bench: Bench) -> None:
    loud = bench.tool(
        "loud++", "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'a.cpp:1:1: error: loud' >&2; exit 1"
    )
    trial = named(bench.attempt(CXX=loud), "cxx")
    assert len(trial.output or "") <= trials.TAIL_CHARACTERS
    assert (trial.error or "").endswith("error: loud")


def test_a_compiler_that_prints_no_utf_8(bench: Bench) -> None:
    odd = bench.tool("odd++", "printf 'a.cpp:1:1: error: \\377\\376 gr\\374n\\n' >&2; exit 1")
    assert named(bench.attempt(CXX=odd), "cxx").error == "a.cpp:1:1: error: \ufffd\ufffd gr\ufffdn"


def test_a_compiler_that_crashes_is_named_with_its_signal(bench: Bench) -> None:
    trial = named(bench.attempt(CXX=bench.tool("sick++", "kill -SEGV $$")), "cxx")
    assert (trial.error or "").endswith("sick++ died of SIGSEGV, without a word")


def test_a_patient_that_cannot_load_what_was_compiled(bench: Bench) -> None:
    refuses = bench.tool("python", 'echo "OSError: libstdc++.so.6: version \\`GLIBCXX_3.4.99\' not found" >&2; exit 1')
    trial = named(bench.attempt(python=Python(**{**PYTHON_FIELDS, "executable": refuses})), "cxx")
    assert trial.outcome == "failed"
    assert "GLIBCXX_3.4.99" in (trial.error or "")


def test_without_any_temporary_folder_it_is_said_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", os.fspath(bench.folder / "gone"))
    with pytest.raises(ProbeFailed) as failed:
        trials.probe(bench.system(), PYTHON, None, None, None)
    assert failed.value.unavailable.kind == "failed"
    assert failed.value.unavailable.detail == "nothing can be compiled: no temporary folder (No such file or directory)"


Mount = Callable[[str], Path]


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a small filesystem with these options."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting needs root")

    def mount(options: str) -> Path:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "dsdoctor", folder], check=False).returncode:
            pytest.skip("no filesystem can be mounted here")
        return folder

    yield mount
    subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


def test_a_full_temporary_folder_is_said_once(bench: Bench, mounted: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    full = mounted("size=16k")
    (full / "ballast").write_bytes(b"x" * 12288)
    monkeypatch.setattr("tempfile.tempdir", os.fspath(full))
    with pytest.raises(ProbeFailed) as failed:
        trials.probe(bench.system(), PYTHON, None, None, None)
    assert failed.value.unavailable.detail.endswith("(No space left on device)")
    assert os.listdir(full) == ["ballast"]


def test_a_temporary_folder_mounted_noexec_is_not_the_compilers_fault(
    bench: Bench, mounted: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", os.fspath(mounted("noexec")))
    trial = named(bench.attempt(), "cxx")
    assert trial.outcome == "not-tried"
    assert "noexec" in (trial.error or "")


def test_windows_is_not_examined() -> None:
    with pytest.raises(ProbeFailed) as failed:
        trials.probe(System({}, platform="win32"), PYTHON, None, None, None)
    assert failed.value.unavailable.kind == "not-examined"
