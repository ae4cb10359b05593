"""A constructed machine: files under a folder, variables, programs on PATH."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dsdoctor.probes.system import System


@pytest.fixture
def built(tmp_path: Path) -> Callable[..., System]:
    """``built({"/etc/os-release": text}, {"hostname": script}, platform="linux", NAME=value)`` gives its System."""

    def build(
        files: Mapping[str, str] | None = None,
        programs: Mapping[str, str] | None = None,
        *,
        platform: str = "linux",
        cwd: str = "/",
        **env: str,
    ) -> System:
        for name, text in (files or {}).items():
            path = tmp_path / "root" / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        bin_folder = tmp_path / "bin"
        bin_folder.mkdir(exist_ok=True)
        for name, text in (programs or {}).items():
            program = bin_folder / name
            program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            program.chmod(0o755)
        (tmp_path / "root").mkdir(exist_ok=True)
        env.setdefault("PATH", os.fspath(bin_folder))
        return System(env, root=tmp_path / "root", cwd=cwd, platform=platform)

    return build
