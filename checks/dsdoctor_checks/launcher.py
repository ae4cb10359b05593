"""Checks of the `deepspeed` program: that the shell finds it, may run it, and that it starts the right Python."""

import posixpath
from collections.abc import Iterator

from dsdoctor.api import DeepSpeed, Finding, Host, Prescriber, Python, Remedy, Severity, check, not_applicable

_MODULE = "-m deepspeed.launcher.runner"


def _launcher(deepspeed: DeepSpeed) -> str:
    if deepspeed.launcher is None:
        not_applicable("no deepspeed program was found in the environment")
    return deepspeed.launcher


@check(
    "DS020",
    "The shell finds this environment's deepspeed program",
    causes=["deepspeed-not-on-path", "wrong-python-shebang-windows"],
    severity=Severity.WARNING,
)
def launcher_on_path(
    deepspeed: DeepSpeed, python: Python, host: Host | None, prescriber: Prescriber
) -> Iterator[Finding]:
    """Called by its full path, or from another environment, the launcher also starts the ranks without ninja on PATH."""
    launcher = _launcher(deepspeed)
    if deepspeed.launcher_on_path == launcher or (
        deepspeed.launcher_on_path is None and python.scripts_on_path is not False
    ):
        return
    windows = host is not None and host.system == "windows"
    there = (
        f"the shell finds {deepspeed.launcher_on_path}" if deepspeed.launcher_on_path else "its folder is not on PATH"
    )
    folder = python.scripts_dir or posixpath.dirname(launcher)
    command = prescriber.set("PATH", f"{folder}{';' if windows else ':'}$PATH")
    yield Finding(
        message=f"this environment's deepspeed program is {launcher}, but {there}",
        cause="wrong-python-shebang-windows" if windows else "deepspeed-not-on-path",
        severity=Severity.INFO if python.scripts_on_path else None,
        remedy=Remedy(
            order="Activate the environment, or put its folder on PATH",
            commands=(command,),
            verify="where deepspeed" if windows else "command -v deepspeed",
            note=f"or start with: {prescriber.python} {_MODULE}",
        ),
    )


@check(
    "DS021",
    "The deepspeed program starts a Python that exists",
    causes=["copied-env-broken-shebang"],
    severity=Severity.WARNING,
)
def launcher_shebang(deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """Scripts carry the path of their Python. In a copied or moved environment it leads nowhere, or to the old place."""
    launcher = _launcher(deepspeed)
    if deepspeed.launcher_interpreter_exists is not False:
        return
    wanted = f"deepspeed=={deepspeed.version.split('+')[0]}"
    yield Finding(
        message=f"{launcher} starts {deepspeed.launcher_interpreter}, which does not exist: the environment was copied or moved",
        cause="copied-env-broken-shebang",
        remedy=Remedy(
            order="Make the environment anew in its place, or write the scripts again",
            commands=(prescriber.pip(wanted, options="--force-reinstall --no-deps"),),
            safety="careful",
            verify="deepspeed --help",
            note=f"or start with: {prescriber.python} {_MODULE}",
        ),
    )


@check(
    "DS022",
    "The deepspeed program may be executed",
    causes=["deepspeed-script-not-executable"],
    severity=Severity.WARNING,
)
def launcher_executable(deepspeed: DeepSpeed, prescriber: Prescriber) -> Iterator[Finding]:
    """Some site-built wheels lose the execute bit; the shell then says permission denied."""
    launcher = _launcher(deepspeed)
    if deepspeed.launcher_executable is False:
        yield Finding(
            message=f"{launcher} has no execute permission",
            cause="deepspeed-script-not-executable",
            remedy=Remedy(
                order="Give it the execute bit",
                commands=(prescriber.shell(f"chmod +x {launcher}"),),
                verify="deepspeed --help",
                note=f"or start with: {prescriber.python} {_MODULE}",
            ),
        )
