"""Cache folders as torch and Triton choose them, and ops in them."""

import os
from pathlib import Path

import pytest

from dsdoctor.facts import Caches, Python, Torch
from dsdoctor.probes import caches
from dsdoctor.probes.system import System

PYTHON = Python(executable="p", chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr")
NINJA = """cxx = c++
nvcc = /usr/local/cuda-12.4/bin/nvcc
common_cflags = -isystem /v/lib/python3.11/site-packages/torch/include -isystem /v/x/torch/include/torch/csrc
"""


def ask(root: Path, platform: str = "linux", cuda: str | None = "12.4", hip: str | None = None, **env: str) -> Caches:
    torch = Torch(version="2.6.0", cuda=cuda, hip=hip, path="/v/torch")
    return caches.probe(System(env=env, root=root, cwd="/project", platform=platform), PYTHON, torch)


@pytest.mark.parametrize(
    ("env", "path", "because"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/torch_extensions/py311_cu124", "default"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/x"}, "/x/torch_extensions/py311_cu124", "XDG_CACHE_HOME"),
        ({"HOME": "/home/me", "TORCH_EXTENSIONS_DIR": "/ext"}, "/ext", "TORCH_EXTENSIONS_DIR"),
        ({"TORCH_EXTENSIONS_DIR": "ext"}, "/project/ext", "TORCH_EXTENSIONS_DIR"),
    ],
)
def test_extensions(tmp_path: Path, env: dict[str, str], path: str, because: str) -> None:
    found = ask(tmp_path, **env).extensions
    assert found is not None
    assert (found.path, found.because, found.exists, found.writable) == (path, because, False, True)


def test_other_builds_and_platforms(tmp_path: Path) -> None:
    home = {"HOME": "/h", "XDG_CACHE_HOME": "/x", "LOCALAPPDATA": "/l", "USERPROFILE": "/u"}
    names = {
        ("linux", None, "6.2"): "/x/torch_extensions/py311_rocm62",
        ("linux", None, None): "/x/torch_extensions/py311_cpu",
        ("darwin", None, None): "/h/Library/Caches/torch_extensions/py311_cpu",
        ("win32", None, None): "/l/torch_extensions/torch_extensions/Cache/py311_cpu",
    }
    for (platform, cuda, hip), path in names.items():
        found = ask(tmp_path, platform, cuda, hip, **home).extensions
        assert found is not None
        assert found.path == path


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({"HOME": "/h"}, "/h/.triton/cache"),
        ({"HOME": "/h", "TRITON_HOME": "/t"}, "/t/.triton/cache"),
        ({"HOME": "/h", "TRITON_CACHE_DIR": "/c"}, "/c"),
    ],
)
def test_triton(tmp_path: Path, env: dict[str, str], path: str) -> None:
    found = ask(tmp_path, **env).triton
    assert found is not None
    assert found.path == path


def test_no_home(tmp_path: Path) -> None:
    assert ask(tmp_path) == Caches()


def test_no_home_variable_means_the_accounts_home() -> None:
    torch = Torch(version="2.6.0", path="/v/torch")
    found = caches.probe(System(env={}), PYTHON, torch).extensions
    assert found is not None
    assert found.path.endswith("torch_extensions/py311_cpu")
    assert os.path.isabs(found.path)


def test_ops(tmp_path: Path) -> None:
    for name, files in {
        "fused_adam": {"build.ninja": NINJA, "fused_adam.so": "", "lock": ""},
        "notes": {"a": ""},
    }.items():
        for file, text in files.items():
            path = tmp_path / "ext" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    os.utime(tmp_path / "ext/fused_adam/lock", (1, 1))
    (op,) = ask(tmp_path, TORCH_EXTENSIONS_DIR="/ext").ops
    assert (op.name, op.nvcc) == ("fused_adam", "/usr/local/cuda-12.4/bin/nvcc")
    assert op.torch_path == "/v/lib/python3.11/site-packages/torch"
    assert op.shared_object == "/ext/fused_adam/fused_adam.so"
    assert (op.lock_age_s or 0) > 1e9
    assert op.lock_builder_alive is None  # a constructed tree has no processes


def test_lock_whose_builder_is_dead(tmp_path: Path) -> None:
    (tmp_path / "op").mkdir()
    (tmp_path / "op/lock").write_text("")
    (op,) = caches.ops(System(env={}), str(tmp_path))
    assert op.lock_builder_alive is False
    (elsewhere,) = caches.ops(System(env={}), str(tmp_path), network=True)
    assert elsewhere.lock_builder_alive is None


def test_network_home(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        "1 0 0:5 / / rw - ext4 /dev/sda rw\n2 1 0:6 / /home rw - nfs4 s:/ rw\n"
    )
    (tmp_path / "home/me").mkdir(parents=True)
    found = ask(tmp_path, HOME="/home/me")
    assert found.extensions is not None
    assert found.triton is not None
    assert (found.extensions.network, found.triton.filesystem) == (True, "nfs4")
