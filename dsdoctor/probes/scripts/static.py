"""Runs in the patient, without importing anything of the user's: what interpreter is this? One JSON line as the answer."""

import json
import os
import sys
import sysconfig


def answer(value):
    descriptor = int(sys.argv[sys.argv.index("--answer-fd") + 1])
    if os.name == "nt":
        import msvcrt

        descriptor = msvcrt.open_osfhandle(descriptor, os.O_WRONLY)
    with os.fdopen(descriptor, "wb") as out:
        out.write(json.dumps(value).encode("utf-8", "surrogateescape") + b"\n")


def environment_kind():
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "conda"
    if sys.prefix == sys.base_prefix:
        return "system"
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            return "uv" if any(line.split("=")[0].strip() == "uv" for line in file) else "venv"
    except OSError:
        return "venv"


def has_pip():
    import importlib.util

    try:
        return importlib.util.find_spec("pip") is not None
    except (ImportError, ValueError):
        return False


def main():
    paths = sysconfig.get_paths()
    folders = [p for p in sys.path[1:] if p]  # the first is this script's folder
    stdlib = {os.path.realpath(paths[k]) for k in ("stdlib", "platstdlib")}
    sites = [p for p in folders if os.path.basename(p) in ("site-packages", "dist-packages")]
    extra = [
        p
        for p in folders
        if p not in sites
        and os.path.realpath(p) not in stdlib
        and not p.endswith((".zip", "lib-dynload"))
        and os.path.isdir(p)
    ]
    include = paths.get("include")
    answer(
        {
            "version": "%d.%d.%d" % sys.version_info[:3],
            "implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(
                sys.implementation.name, sys.implementation.name
            ),
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "environment": environment_kind(),
            "externally_managed": os.path.exists(os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED")),
            "has_pip": has_pip(),
            "site_packages": list(dict.fromkeys(sites)),
            "include_dir": include,
            "python_h": bool(include) and os.path.exists(os.path.join(include, "Python.h")),
            "scripts_dir": paths.get("scripts"),
            "sys_path_extra": list(dict.fromkeys(extra)),
            "bits": 64 if sys.maxsize > 2**32 else 32,
        }
    )


main()
