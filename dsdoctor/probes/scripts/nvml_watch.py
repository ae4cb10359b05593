"""Memory and utilisation of the GPUs, ten times a second, one JSON line each, until its parent is gone or ends it.

Runs in dsdoctor's own interpreter with ``-I -S``, a process of its own, for NVML may hang in the kernel.
"""

import json
import os
import sys
import time

SAMPLE_S = 0.1


def main():
    sys.path.append(sys.argv[1])
    descriptor = int(sys.argv[sys.argv.index("--answer-fd") + 1])
    if os.name == "nt":
        import msvcrt

        descriptor = msvcrt.open_osfhandle(descriptor, 0)
    answer = os.fdopen(descriptor, "wb", 0)
    import pynvml as nvml

    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    parent = os.getppid()
    while os.getppid() == parent:
        gpus = []
        for index, handle in enumerate(handles):
            try:
                used = nvml.nvmlDeviceGetMemoryInfo(handle).used
                busy = nvml.nvmlDeviceGetUtilizationRates(handle).gpu
            except nvml.NVMLError:
                continue
            gpus.append([index, used, busy])
        answer.write(json.dumps({"gpus": gpus}).encode() + b"\n")
        time.sleep(SAMPLE_S)


if __name__ == "__main__":
    main()
