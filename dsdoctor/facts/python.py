"""The patient's interpreter: which one, why that one, and what kind of environment it lives in."""

from typing import Literal

from dsdoctor.facts.base import Fact


class Python(Fact, frozen=True, kw_only=True):
    executable: str
    chosen_because: str  # "--python", "active virtual environment", "first python on PATH", ...
    version: str  # "3.11.7"
    implementation: str = "CPython"
    prefix: str
    base_prefix: str
    environment: Literal["venv", "conda", "uv", "system", "embedded"] = "system"
    externally_managed: bool = False  # PEP 668
    has_pip: bool = True
    uv: str | None = None  # path of the uv program, for remedies
    site_packages: tuple[str, ...] = ()
    include_dir: str | None = None
    python_h: bool | None = None
    scripts_dir: str | None = None
    scripts_on_path: bool | None = None  # scripts_dir is on PATH
    cwd: str | None = None
    sys_path_extra: tuple[str, ...] = ()  # from PYTHONPATH or .pth files: outside site-packages and the stdlib
    bits: int = 64
