"""Runs py-cpuinfo in a child of dsdoctor's own interpreter."""

import json
import os
import sys


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]  # this file has the module's name
    sys.modules.pop("cpuinfo", None)
    from cpuinfo import get_cpu_info

    info = get_cpu_info()
    kept = {key: info.get(key) for key in ("brand_raw", "vendor_id_raw", "arch", "count", "flags")}
    descriptor = int(sys.argv[sys.argv.index("--answer-fd") + 1])
    if os.name == "nt":
        import msvcrt

        descriptor = msvcrt.open_osfhandle(descriptor, os.O_WRONLY)
    with os.fdopen(descriptor, "wb") as out:
        out.write(json.dumps(kept).encode())


if __name__ == "__main__":  # py-cpuinfo starts processes of its own, which import this file again on some platforms
    main()
