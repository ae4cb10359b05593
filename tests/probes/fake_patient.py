"""A patient whose torch and DeepSpeed are a few lines: builders that do what a test wants, and compile nothing."""

import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from dsdoctor.facts import Python
from dsdoctor.probes.system import System

TORCH = """
class version: cuda = None
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
__version__ = "2.13.0+cpu"
"""
ACCELERATOR = """
class Accelerator:
    _name = "cpu"
    device_name = lambda self: "cpu"
    communication_backend_name = lambda self: "gloo"
    is_bf16_supported = lambda self: True
    is_fp16_supported = lambda self: False
get_accelerator = Accelerator
"""
BUILDER = """
import os
class OpBuilder:
    def __init__(self, name): self.name = name
    def sources(self): return []
    def include_paths(self): return []
    def extra_ldflags(self): return []
    def filter_ccs(self, ccs): return [cc.split('.') for cc in ccs]
    def deepspeed_src_path(self, path): return os.path.join("/nowhere", path)
    def log(self, line): os.write(1, line.encode() + b"\\n")
    def folder(self):
        # where torch would build
        home = os.path.expanduser("~/.cache/torch_extensions/py311_cpu")
        folder = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR") or home, self.name)
        os.makedirs(folder, exist_ok=True)
        return folder
    def compiled(self):
        open(os.path.join(self.folder(), self.name + ".so"), "w").close()
class CUDAOpBuilder(OpBuilder): pass
"""
REPORT = """
from deepspeed.ops.op_builder import ALL_OPS
def cli_main():
    print("DeepSpeed C++/CUDA extension op report")
    print("op name ................ installed .. compatible")
    for name in ALL_OPS: print(f"{name} ............... [NO] ....... [OKAY]")
    print("deepspeed info ................... 0.19.8, unknown, unknown")
"""


class Patient:
    """A folder of fake packages, a home, a temporary folder and the System in which they are examined."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site, self.home, self.temp = folder, folder / "site", folder / "home", folder / "temp"
        for made in (self.site, self.home, self.temp, folder / "work"):
            made.mkdir()
        self.python = Python(
            executable=sys.executable, chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr"
        )
        self.module("torch", TORCH)
        self.module("torch/utils", "")
        self.module("torch/utils/cpp_extension", "CUDA_HOME = None")
        self.module("deepspeed", "__version__ = '0.19.8'")
        self.module("deepspeed/accelerator", ACCELERATOR)
        self.module("deepspeed/env_report", REPORT)
        self.module("deepspeed/ops", "")
        self.module("deepspeed/ops/op_builder/builder", BUILDER)
        self.builders({})

    def module(self, path: str, text: str) -> None:
        package = self.site / path
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text(textwrap.dedent(text), encoding="utf-8")

    def builders(self, loads: Mapping[str, str], methods: Mapping[str, str] | None = None) -> "Patient":
        """One builder per name; the text is what its load() does. ``methods``: more of its class, by name."""
        text = "import os, signal, subprocess, sys, time\nfrom .builder import OpBuilder, CUDAOpBuilder\nALL_OPS = {}\n"
        for name, load in loads.items():
            text += f"class Builder_{name}(OpBuilder):\n    def load(self, verbose=True):\n"
            text += textwrap.indent(textwrap.dedent(load).strip() or "pass", " " * 8) + "\n"
            text += textwrap.indent(textwrap.dedent((methods or {}).get(name, "")).rstrip() + "\n", " " * 4)
            text += f"ALL_OPS[{name!r}] = Builder_{name}({name!r})\n"
        self.module("deepspeed/ops/op_builder", text)
        return self

    @property
    def env(self) -> dict[str, str]:
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("TORCH_EXTENSIONS", "XDG_CACHE", "MAX_J"))
        }
        return inherited | {"PYTHONPATH": os.fspath(self.site), "HOME": os.fspath(self.home)}

    def system(self, **env: str) -> System:
        return System({**self.env, **env}, cwd=os.fspath(self.folder / "work"))
