"""GPUs: NVML's word, and what the file system says of them whether a driver works or not."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from dsdoctor.facts import Gpus
from dsdoctor.probes import libraries, nvml
from dsdoctor.probes.system import System

_NVIDIA = "0x10de"
_MAKERS = {"0x1002": "AMD", "0x8086": "Intel", "0x1da3": "Habana", "0x19e5": "Huawei"}
_DISPLAY, _ACCELERATOR = "0x03", "0x12"  # PCI base classes
_DEVICE_NODE = re.compile(r"nvidia(\d+|ctl|-uvm|-modeset|-caps|-fabricmanager)?$|nvidia-nvswitch\S*$")
_MODULE_VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")
_XID_KEPT = 20
_DMESG_LIMIT_S = 2.0


def probe(system: System, limit_s: float = nvml.LIMIT_S) -> Gpus:
    """Everything known about GPUs. A driver that hangs costs at most ``limit_s`` seconds and its own answers."""
    nodes = _device_nodes(system)
    pci, others = _pci(system)
    module = _kernel_module(system)
    with ThreadPoolExecutor(2) as pool:
        xid = pool.submit(_xid_errors, system) if system.linux and (nodes or pci or module) else None
        answer = nvml.ask(system, limit_s)
        xid_errors = xid.result() if xid else ()
    return Gpus(
        nvml=answer.state,
        nvml_detail=answer.detail,
        driver_version=answer.driver_version,
        driver_cuda=answer.driver_cuda,
        kernel_module_version=module,
        libcuda=_libcuda(system),
        device_nodes=nodes,
        pci_nvidia=pci,
        others=others,
        devices=answer.devices,
        links=answer.links,
        xid_errors=xid_errors,
        read_from=answer.read_from,
    )


def _kernel_module(system: System) -> str | None:
    found = _MODULE_VERSION.search(system.read("/proc/driver/nvidia/version") or "")
    return found.group(1) if found else None


def _device_nodes(system: System) -> tuple[str, ...]:
    return tuple(f"/dev/{name}" for name in system.names("/dev") if _DEVICE_NODE.match(name))


def _pci(system: System) -> tuple[int | None, tuple[str, ...]]:
    """NVIDIA functions on the bus (None when the bus cannot be seen or does not show them), and other makers'."""
    if system.platform == "darwin":
        return None, _apple(system)
    folder = "/sys/bus/pci/devices"
    if not system.is_dir(folder):
        return None, ()
    nvidia, others = 0, Counter[str]()
    for name in system.names(folder):
        kind = (system.read(f"{folder}/{name}/class", 64) or "").strip()
        if not kind.startswith((_DISPLAY, _ACCELERATOR)):
            continue
        vendor = (system.read(f"{folder}/{name}/vendor", 64) or "").strip()
        if vendor == _NVIDIA:
            nvidia += kind.startswith(_DISPLAY)
        elif vendor in _MAKERS:
            device = (system.read(f"{folder}/{name}/device", 64) or "").strip()
            others[f"{_MAKERS[vendor]} {vendor[2:]}:{device[2:]}"] += 1
    named = tuple(f"{count} x {name}" if count > 1 else name for name, count in others.items())
    hidden = nvidia == 0 and system.exists("/dev/dxg")  # WSL: the GPU comes through Windows, not over this bus
    return (None if hidden else nvidia), named


def _apple(system: System) -> tuple[str, ...]:
    brand = system.run(["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"], 2.0).stdout.strip()
    return (brand,) if brand.startswith("Apple") else ()


def _libcuda(system: System) -> str | None:
    if system.platform == "win32":
        path = f"{system.env.get('WINDIR', 'C:/Windows')}/System32/nvcuda.dll"
        return path if system.is_file(path) else None
    return libraries.find(system, "libcuda.so.1") if system.linux else None


def _xid_errors(system: System) -> tuple[str, ...]:
    """The last Xid lines of the kernel log; none when it may not be read, which is normal."""
    program = system.which("dmesg")
    ran = system.run([program], _DMESG_LIMIT_S) if program else None
    if ran is None or not ran.ok:
        return ()
    return tuple(line.strip() for line in ran.stdout.splitlines() if "NVRM: Xid" in line)[-_XID_KEPT:]
