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
        out.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def find_prefix():
    """sys.prefix; started without site, most versions do not notice that they live in a virtual environment."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    return home if os.path.isfile(os.path.join(home, "pyvenv.cfg")) else sys.prefix


def find_paths(prefix):
    if prefix == sys.prefix:
        return sysconfig.get_paths()
    names = sysconfig.get_scheme_names()
    scheme = next(n for n in ("venv", "nt" if os.name == "nt" else "posix_prefix") if n in names)
    return sysconfig.get_paths(scheme, vars={"base": prefix, "platbase": prefix})


def environment_kind(prefix):
    if os.path.isdir(os.path.join(prefix, "conda-meta")):
        return "conda"
    if prefix == sys.base_prefix:
        return "system"
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
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
    prefix = find_prefix()
    paths = find_paths(prefix)
    here = os.path.dirname(os.path.abspath(__file__))  # not there with PYTHONSAFEPATH or -I
    folders = [p for p in sys.path if p and os.path.abspath(p) != here]
    stdlib = {os.path.realpath(paths[k]) for k in ("stdlib", "platstdlib")}
    sites = [p for p in folders if os.path.basename(p) in ("site-packages", "dist-packages")]
    if not sites:  # started without site
        sites = [p for p in (paths["purelib"], paths["platlib"]) if os.path.isdir(p)]
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
            "prefix": prefix,
            "base_prefix": sys.base_prefix,
            "environment": environment_kind(prefix),
            "externally_managed": os.path.exists(os.path.join(paths["stdlib"], "EXTERNALLY-MANAGED")),
            "has_pip": has_pip() or any(os.path.isdir(os.path.join(p, "pip")) for p in sites),
            "site_packages": list(dict.fromkeys(sites)),
            "include_dir": include,
            "python_h": bool(include) and os.path.exists(os.path.join(include, "Python.h")),
            "scripts_dir": paths.get("scripts"),
            "sys_path_extra": list(dict.fromkeys(extra)),
            "bits": 64 if sys.maxsize > 2**32 else 32,
        }
    )


main()
