"""DeepSpeed as its files describe it: version, what was compiled at install time, and its launcher script."""

import os

from dsdoctor.facts import DeepSpeed, Packages, Python
from dsdoctor.probes import ProbeFailed
from dsdoctor.probes.system import System
from dsdoctor.probes.torch import constants

_RECORDED = "git_version_info_installed.py"  # written by DeepSpeed's setup.py


def probe(system: System, python: Python, packages: Packages) -> DeepSpeed:
    """Static facts of the installed DeepSpeed. Raises ProbeFailed when it is not installed."""
    installed = packages.distributions.get("deepspeed")
    homes = (
        [installed.editable or "", installed.location] if installed else [*python.sys_path_extra, *python.site_packages]
    )
    folder = next(
        (os.path.join(h, "deepspeed") for h in homes if h and system.is_dir(os.path.join(h, "deepspeed"))), None
    )
    recorded = constants(system.read(os.path.join(folder, _RECORDED)) or "") if folder else {}
    version = recorded.get("version") or (installed.version if installed else None)
    if folder is None or not version:
        raise ProbeFailed("failed", f"DeepSpeed is not installed for {python.executable}")
    torch_info = recorded.get("torch_info")
    built = torch_info if isinstance(torch_info, dict) else {}
    ops = recorded.get("installed_ops")
    script = os.path.join(python.scripts_dir or "", "deepspeed")
    return DeepSpeed(
        version=str(version),
        path=folder,
        editable=bool(installed and installed.editable),
        built_torch=_text(built.get("version")),
        built_cuda=_text(built.get("cuda_version")),
        built_accelerator=_text(recorded.get("accelerator_name")),
        prebuilt_ops=tuple(sorted(n for n, on in ops.items() if on)) if isinstance(ops, dict) else (),
        prebuilt_files=tuple(_prebuilt(system, folder)),
        has_accelerator_package=system.is_dir(os.path.join(folder, "accelerator"))
        or system.is_dir(os.path.join(os.path.dirname(folder), "accelerator")),
        has_op_builder=system.exists(os.path.join(folder, "ops", "op_builder"))
        or system.exists(os.path.join(os.path.dirname(folder), "op_builder")),
        launcher=script if system.is_file(script) else None,
        launcher_executable=os.access(system.path(script), os.X_OK) if system.is_file(script) else None,
        launcher_on_path=system.which("deepspeed"),
        **_shebang(system, script),  # type: ignore[arg-type]
    )


def _prebuilt(system: System, folder: str) -> list[str]:
    ops = os.path.join(folder, "ops")
    found = [f"ops/{n}" for n in system.names(ops) if n.endswith((".so", ".pyd"))]
    for name in system.names(ops):
        inner = os.path.join(ops, name)
        if system.is_dir(inner):
            found += [f"ops/{name}/{n}" for n in system.names(inner) if n.endswith((".so", ".pyd"))]
    return found


def _shebang(system: System, script: str) -> dict[str, object]:
    """The interpreter that the launcher's first line names. pip writes long paths as `/bin/sh` and an exec line."""
    lines = (system.read(script, 1024) or "").splitlines()
    if not lines or not lines[0].startswith("#!"):
        return {}
    interpreter = lines[0][2:].strip()
    if interpreter == "/bin/sh" and len(lines) > 1 and lines[1].startswith("'''exec'"):
        interpreter = lines[1].removeprefix("'''exec'").strip().split('" "$0"')[0].split(' "$0"')[0].strip().strip('"')
    first = interpreter.split(" ")[0] if interpreter.startswith("/usr/bin/env") else interpreter
    return {"launcher_interpreter": interpreter, "launcher_interpreter_exists": system.exists(first)}


def _text(value: object) -> str | None:
    return str(value) if value else None
