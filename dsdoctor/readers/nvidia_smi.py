"""nvidia-smi in the forms that people paste: the table, ``-q``, ``-L``, ``topo -m``, and the ways in which it fails."""

import re
from typing import Any, Literal

from dsdoctor.facts import Gpu, GpuLink, GpuProcess, Gpus
from dsdoctor.facts.gpu import NvmlState
from dsdoctor.readers import pasted, regex

_MIB = 1024 * 1024
_MOST_GPUS = 1024
_FAILURES: tuple[tuple[str, NvmlState], ...] = (
    (r"couldn't communicate with the NVIDIA driver", "driver-not-loaded"),
    (r"Failed to initialize NVML: Driver/library version mismatch", "version-mismatch"),
    (r"Failed to initialize NVML: Driver Not Loaded", "driver-not-loaded"),
    (r"Failed to initialize NVML: Insufficient Permissions", "no-permission"),
    (r"Failed to initialize NVML: (?:GPU access blocked by the operating system|Unknown Error)", "error"),
    (r"Unable to determine the device handle for GPU\s?\S+: .*(?:GPU is lost|Unknown Error)", "lost"),
    (r"couldn't find (?:the )?libnvidia-ml|libnvidia-ml\.so.*not found", "library-missing"),
    (r"No devices were found", "no-devices"),
    (
        r"nvidia-smi: (?:command )?not found|command not found: nvidia-smi|'nvidia-smi' is not recognized",
        "library-missing",
    ),
)
_DRIVER = regex.compile(r"Driver Version\s*:\s*(\d+(?:\.\d+)+)")
_CUDA = regex.compile(r"CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)")
_NAME_ROW = regex.compile(
    r"^\|\s*(\d{1,4})\s+(\S+(?: \S+)*) +(On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*\|\s*[0-9A-Fa-f]+:\S+\s+\S+\s*\|\s*(\S+)\s*\|"
)
_MEMORY_ROW = regex.compile(
    r"^\|.*\|\s*(\d+)MiB\s*/\s*(\d+)MiB\s*\|\s*\S+\s+(Default|E\. Process|E\. Thread|Prohibited)\s*\|"
)
_MIG_ROW = regex.compile(r"^\|\s*\|\s*\|\s*(Enabled|Disabled)\*?\s*\|")
_PROCESS_ROW = regex.compile(
    r"^\|\s+(\d{1,4})\s+(?:\S+\s+\S+\s+)?(\d+)\s+(?:C|G|C\+G|M\+C)\s+(\S+(?: \S+)*) +(?:(\d+)MiB|N/A)\s*\|"
)
_LIST_ROW = regex.compile(r"^GPU (\d{1,4}): (.+?)(?: \(UUID: .*)?$")
_QUERY_GPU = regex.compile(r"^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:")
_PATHS = ("PIX", "PXB", "PHB", "NODE", "SYS")
_MODES: dict[str, Literal["default", "exclusive-process", "exclusive-thread", "prohibited"]] = {
    "Default": "default", "E. Process": "exclusive-process", "Exclusive_Process": "exclusive-process",
    "E. Thread": "exclusive-thread", "Prohibited": "prohibited",
}  # fmt: skip


def parse(text: str) -> Gpus | None:
    """What nvidia-smi said; None when the text holds nothing of it. Never raises."""
    lines = pasted.lines(text)
    devices = _query(lines) or _table(lines) or _list(lines)
    state, detail = _failure(lines)
    if not devices and state == "ok":
        return None
    if devices and state != "lost":
        state, detail = "ok", None
    return Gpus(
        nvml=state,
        nvml_detail=detail.strip()[:300] if detail else None,
        driver_version=_first(_DRIVER, lines),
        driver_cuda=_first(_CUDA, lines),
        devices=tuple(Gpu(**device) for _, device in sorted(devices.items())),
        links=_links(lines),
        read_from="text",
    )


def _failure(lines: list[str]) -> tuple[NvmlState, str | None]:
    """The first message that nvidia-smi gives instead of an answer, and what it means."""
    for line in lines:
        for pattern, state in _FAILURES:
            if re.search(pattern, line):
                return state, line
    return "ok", None


def _first(pattern: re.Pattern[str], lines: list[str]) -> str | None:
    return next((found.group(1) for line in lines if (found := pattern.search(line))), None)


def _table(lines: list[str]) -> dict[int, dict[str, Any]]:
    """Devices of the table that nvidia-smi prints without options."""
    devices: dict[int, dict[str, Any]] = {}
    current: dict[str, Any] = {}
    for line in lines:
        if row := _NAME_ROW.match(line):
            current = {"index": int(row.group(1)), "name": row.group(2)}
            current["persistence"] = {"On": True, "Off": False}.get(row.group(3))
            current["ecc_uncorrected"] = int(row.group(4)) if row.group(4).isdigit() else None
            current["error"] = "nvidia-smi shows ERR!" if "ERR!" in line else None
            devices[current["index"]] = current
        elif current and (row := _MEMORY_ROW.match(line)):
            current["used_bytes"], current["total_bytes"] = int(row.group(1)) * _MIB, int(row.group(2)) * _MIB
            current["compute_mode"] = _MODES.get(row.group(3))
        elif current and (row := _MIG_ROW.match(line)):
            current["mig_enabled"] = row.group(1) == "Enabled"
        elif (row := _PROCESS_ROW.match(line)) and int(row.group(1)) in devices:
            device = devices[int(row.group(1))]
            device["processes"] = (*device.get("processes", ()), _process(row))
    return devices


def _process(row: re.Match[str]) -> GpuProcess:
    """Its program's file name: never a path or arguments."""
    name = row.group(3).split()[0].replace("\\", "/").rsplit("/", 1)[-1]
    return GpuProcess(pid=int(row.group(2)), name=name, used_bytes=int(row.group(4)) * _MIB if row.group(4) else None)


def _list(lines: list[str]) -> dict[int, dict[str, Any]]:
    rows = (row for line in lines if (row := _LIST_ROW.match(line.strip())))
    return {int(row.group(1)): {"index": int(row.group(1)), "name": row.group(2)} for row in rows}


def _query(lines: list[str]) -> dict[int, dict[str, Any]]:
    """Devices of ``nvidia-smi -q``: a block per GPU, keys below titles by indentation."""
    devices: dict[int, dict[str, Any]] = {}
    title = ""
    for line in lines:
        if _QUERY_GPU.match(line) and len(devices) < _MOST_GPUS:
            devices[len(devices)] = {"index": len(devices), "name": "unknown"}
            continue
        key, colon, value = line.partition(":")
        if not colon:
            title = key.strip()
        elif devices:
            top = len(key) - len(key.lstrip()) <= 4
            devices[len(devices) - 1].update(_query_fact("" if top else title, key.strip(), value.strip()))
    return devices


def _query_fact(title: str, key: str, value: str) -> dict[str, Any]:
    """The fact in one row of ``-q``; empty when it holds none that we keep."""
    amounts = {"Total": "total_bytes", "Used": "used_bytes", "Free": "free_bytes"}
    links = {"Link Width": "pcie_width", "PCIe Generation": "pcie_generation"}
    number = re.match(r"\d+", value)
    if key == "Product Name" and value:
        return {"name": value}
    if key == "Persistence Mode" and value in ("Enabled", "Disabled"):
        return {"persistence": value == "Enabled"}
    if key == "Compute Mode" and value in _MODES:
        return {"compute_mode": _MODES[value]}
    if title == "MIG Mode" and key == "Current" and value in ("Enabled", "Disabled"):
        return {"mig_enabled": value == "Enabled"}
    if title == "FB Memory Usage" and key in amounts and value.endswith("MiB") and number:
        return {amounts[key]: int(number.group()) * _MIB}
    if title in links and key in ("Current", "Max") and number:
        return {links[title] + ("_max" if key == "Max" else ""): int(number.group())}
    if title == "Remapped Rows" and key == "Pending":
        return {"rows_pending": value == "Yes"}
    return {}


def _links(lines: list[str]) -> tuple[GpuLink, ...]:
    """The upper half of the matrix that ``nvidia-smi topo -m`` prints."""
    found = []
    for line in lines:
        cells = line.split()
        if len(cells) < 2 or not re.fullmatch(r"GPU\d{1,4}", cells[0]) or re.fullmatch(r"GPU\d+", cells[1]):
            continue
        first = int(cells[0][3:])
        for second, cell in enumerate(cells[1:]):
            path = "NVLINK" if re.fullmatch(r"NV\d+", cell) else cell
            if second > first and path in ("NVLINK", *_PATHS):
                found.append(GpuLink(first=first, second=second, path=path))
    return tuple(found)
