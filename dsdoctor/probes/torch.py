"""torch as its files describe it: no import."""

import ast
import os

from dsdoctor.facts import Packages, Python, Torch
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.system import System


def probe(system: System, python: Python, packages: Packages) -> Torch:
    """Version, CUDA and folder from torch/version.py and the metadata. Raises ProbeFailed when torch is not there."""
    installed = packages.distributions.get("torch")
    folders = (
        [installed.editable or "", installed.location] if installed else [*python.sys_path_extra, *python.site_packages]
    )
    folder = next((os.path.join(f, "torch") for f in folders if f and system.is_dir(os.path.join(f, "torch"))), None)
    values = constants(system.read(os.path.join(folder, "version.py")) or "") if folder else {}
    version = values.get("__version__") or (installed.version if installed else None)
    if folder is None or not version:
        raise ProbeFailed("failed", f"torch is not installed for {python.executable}")
    cuda = _text(values.get("cuda"))
    nccl = packages.version(f"nvidia-nccl-cu{cuda.split('.')[0]}") if cuda else None
    return Torch(
        version=str(version),
        cuda=cuda,
        hip=_text(values.get("hip")),
        xpu=_text(values.get("xpu")),
        path=folder,
        debug=bool(values.get("debug")),
        nccl=nccl,
    )


def constants(source: str) -> dict[str, object]:
    """Module-level ``name = literal`` of a file, read without running it. Empty when it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, object] = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and node.value is not None:  # type: ignore[attr-defined]
                try:
                    found[target.id] = ast.literal_eval(node.value)  # type: ignore[attr-defined]
                except (ValueError, TypeError):
                    continue
    return found


def _text(value: object) -> str | None:
    return str(value) if value else None
