"""Asks NVML in a process of its own, for NVML may hang in the kernel or crash. One JSON object per line, flushed.

Runs in dsdoctor's own interpreter with ``-I -S``; ``--pynvml FOLDER`` is where nvidia-ml-py lies. Devices are asked side
by side, so that one that hangs costs only itself. Every call is guarded by itself: "not supported" is a normal answer.
No serial number, no UUID, no command line is asked for.
"""

import argparse
import ctypes
import json
import os
import sys
import threading
import time
import traceback

STATES = {9: "driver-not-loaded", 12: "library-missing", 18: "version-mismatch", 4: "no-permission", 15: "lost",
          28: "no-devices"}  # fmt: skip
NO_PERMISSION, IS_LOST = 4, 15
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
FABRIC = {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}
PATHS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
P2P_READ, P2P_NVLINK = 0, 2  # NVML_P2P_CAPS_INDEX_*: pynvml's own constant for READ is a tuple
LIBRARY = "nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1"


class Channel:
    """The descriptor that the parent reads."""

    def __init__(self, number):
        if os.name == "nt":
            import msvcrt

            number = msvcrt.open_osfhandle(number, 0)
        self._file = os.fdopen(number, "wb", 0)
        self._lock = threading.Lock()

    def tell(self, kind, **fields):
        line = json.dumps(dict(fields, kind=kind), default=str) + "\n"
        with self._lock:
            self._file.write(line.encode("utf-8"))


def text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Device:
    """One GPU; remembers the first trouble that is more than "not supported"."""

    def __init__(self, nvml, index):
        self.nvml, self.index, self.lost = nvml, index, None
        self.handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(self, name, *args):
        """NVML's answer, or None when it has none."""
        try:
            return getattr(self.nvml, name)(self.handle, *args)
        except Exception as error:
            if getattr(error, "value", None) == IS_LOST:
                self.lost = str(error)
            return None

    def facts(self):
        capability = self.ask("nvmlDeviceGetCudaComputeCapability")
        mig = self.ask("nvmlDeviceGetMigMode")
        rows = self.ask("nvmlDeviceGetRemappedRows")
        persistence = self.ask("nvmlDeviceGetPersistenceMode")
        name = self.ask("nvmlDeviceGetName")
        facts = {
            "index": self.index,
            "name": text(name) if name else "unknown",
            "compute_capability": "%d.%d" % tuple(capability) if capability else None,
            "mig_enabled": bool(mig[0]) if mig else None,
            "compute_mode": COMPUTE_MODES.get(self.ask("nvmlDeviceGetComputeMode")),
            "persistence": None if persistence is None else bool(persistence),
            "ecc_uncorrected": self.ask("nvmlDeviceGetTotalEccErrors", 1, 0),  # uncorrected, volatile
            "rows_pending": bool(rows[2]) if rows else None,
            "pcie_generation": self.ask("nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_width": self.ask("nvmlDeviceGetCurrPcieLinkWidth"),
            "pcie_generation_max": self.ask("nvmlDeviceGetMaxPcieLinkGeneration"),
            "pcie_width_max": self.ask("nvmlDeviceGetMaxPcieLinkWidth"),
            "fabric_state": self.fabric(),
            "processes": self.processes(),
        }
        facts.update(self.memory(facts["mig_enabled"]))
        facts["error"] = self.lost
        return facts

    def memory(self, mig):
        found = self.ask("nvmlDeviceGetMemoryInfo", getattr(self.nvml, "nvmlMemory_v2", 0x02000028))
        found = found or self.ask("nvmlDeviceGetMemoryInfo")
        if found is not None:
            return {"total_bytes": found.total, "free_bytes": found.free, "used_bytes": found.used}
        slices = self.slices() if mig else []
        if not slices:
            return {}
        return {"total_bytes": sum(s.total for s in slices), "free_bytes": sum(s.free for s in slices),
                "used_bytes": sum(s.used for s in slices)}  # fmt: skip

    def slices(self):
        """Memory of the MIG devices: what a user without rights over the whole GPU may see."""
        found = []
        for number in range(self.ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
            part = self.ask("nvmlDeviceGetMigDeviceHandleByIndex", number)
            if part is not None:
                try:
                    found.append(self.nvml.nvmlDeviceGetMemoryInfo(part))
                except Exception:
                    continue
        return found

    def fabric(self):
        make = getattr(self.nvml, "c_nvmlGpuFabricInfo_t", None)
        if make is None:
            return None
        info = make()
        if self.ask("nvmlDeviceGetGpuFabricInfo", ctypes.byref(info)) is None:
            return None
        state = FABRIC.get(info.state, "state %d" % info.state)
        return "%s, error %d" % (state, info.status) if info.state == 3 and info.status else state

    def processes(self):
        running = self.ask("nvmlDeviceGetComputeRunningProcesses") or []
        return [{"pid": p.pid, "used_bytes": p.usedGpuMemory, "name": self.name_of(p.pid)} for p in running]

    def name_of(self, pid):
        """The program's file name: never its arguments."""
        try:
            name = text(self.nvml.nvmlSystemGetProcessName(pid))
        except Exception:
            return None
        return name.replace("\\", "/").rsplit("/", 1)[-1] if os.name == "nt" else name.split(" ")[0].rsplit("/", 1)[-1]


def examine(nvml, index, channel, devices):
    """Tell everything about one GPU."""
    try:
        device = Device(nvml, index)
        facts = device.facts()
    except Exception as error:
        code = getattr(error, "value", None)
        channel.tell("device", index=index, name="unknown", error=str(error), code=code)
        devices[index] = None
        return
    channel.tell("device", code=IS_LOST if device.lost else None, **facts)
    devices[index] = None if device.lost else device


def link(nvml, first, second):
    """How two GPUs reach each other; None when NVML does not say."""

    def ask(name, *args):
        try:
            return getattr(nvml, name)(first.handle, second.handle, *args)
        except Exception:
            return None

    read = ask("nvmlDeviceGetP2PStatus", P2P_READ)
    path = "NVLINK" if ask("nvmlDeviceGetP2PStatus", P2P_NVLINK) == 0 else None
    path = path or PATHS.get(ask("nvmlDeviceGetTopologyCommonAncestor"))
    if path is None:
        return None
    return {"first": first.index, "second": second.index, "path": path, "p2p_read": None if read is None else read == 0}


def tell_links(nvml, devices, channel):
    answered = [devices[index] for index in sorted(devices) if devices[index] is not None]
    for at, first in enumerate(answered):
        for second in answered[at + 1 :]:
            found = link(nvml, first, second)
            if found:
                channel.tell("link", **found)


def tell_devices(nvml, count, channel, deadline):
    """Ask all GPUs at once and wait for them until the deadline; then their links."""
    devices = {}
    threads = [threading.Thread(target=examine, args=(nvml, index, channel, devices)) for index in range(count)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    links = threading.Thread(target=tell_links, args=(nvml, dict(devices), channel))
    links.daemon = True
    links.start()
    links.join(max(0.2, deadline - time.monotonic()))


def loadable():
    """Why the NVML library cannot be loaded, or None when it can."""
    if os.name == "nt":
        return None  # pynvml knows the folders
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return str(error)
    return None


def driver(nvml):
    def ask(name):
        try:
            return getattr(nvml, name)()
        except Exception:
            return None

    version = ask("nvmlSystemGetDriverVersion")
    cuda = ask("nvmlSystemGetCudaDriverVersion_v2") or ask("nvmlSystemGetCudaDriverVersion")
    return {
        "driver_version": text(version) if version else None,
        "driver_cuda": "%d.%d" % (cuda // 1000, cuda % 1000 // 10) if cuda else None,
    }


def converse(channel, folder, deadline):
    problem = loadable()
    if problem:
        channel.tell("state", state="library-missing", detail=problem)
        return
    if folder:
        sys.path.append(folder)
    try:
        import pynvml as nvml
    except Exception as error:
        channel.tell("state", state="error", detail="nvidia-ml-py cannot be imported: %s" % error, bindings=False)
        return
    try:
        nvml.nvmlInit()
        channel.tell("driver", **driver(nvml))
        count = nvml.nvmlDeviceGetCount()
    except Exception as error:
        channel.tell("state", state=STATES.get(getattr(error, "value", None), "error"), detail=str(error))
        return
    channel.tell("state", state="ok" if count else "no-devices", count=count)
    tell_devices(nvml, count, channel, deadline)
    channel.tell("end")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pynvml", default=None)
    parser.add_argument("--limit", type=float, default=6.0)
    parser.add_argument("--answer-fd", type=int, required=True)
    options = parser.parse_args()
    channel = Channel(options.answer_fd)
    code = 0
    try:
        converse(channel, options.pynvml, time.monotonic() + options.limit)
    except Exception:
        traceback.print_exc()
        code = 1
    os._exit(code)  # a thread that hangs in NVML must not hold us


if __name__ == "__main__":
    main()
