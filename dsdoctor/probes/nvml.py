"""Ask NVML through a child process, and nvidia-smi when NVML's library cannot be loaded."""

import csv
import importlib.util
import io
import os
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from dsdoctor.facts import Gpu, GpuLink
from dsdoctor.facts.gpu import NvmlState
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System

LIMIT_S = 8.0
SCRIPTS = Path(__file__).with_name("scripts")
_SCRIPT = str(SCRIPTS / "nvml.py")
_DEVICES_SHARE = 0.75  # of the limit: then the child gives up on silent devices and tells of the others
_NO_PERMISSION, _IS_LOST = 4, 15
_MIB = 1024 * 1024


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML (or nvidia-smi) had to say."""

    state: NvmlState
    detail: str | None = None
    driver_version: str | None = None
    driver_cuda: str | None = None
    devices: tuple[Gpu, ...] = ()
    links: tuple[GpuLink, ...] = ()
    read_from: Literal["nvml", "nvidia-smi"] = "nvml"


def ask(system: System, limit_s: float = LIMIT_S) -> Answer:
    """NVML's answer within ``limit_s`` seconds; nvidia-smi's when NVML could not be used and the program is there."""
    if system.platform == "darwin":
        return Answer(state="not-supported", detail="macOS has no NVIDIA driver")
    argv = [sys.executable, "-I", "-S", _SCRIPT, "--limit", f"{limit_s * _DEVICES_SHARE:.2f}"]
    folder = bindings()
    ran = system.run([*argv, "--pynvml", folder] if folder else argv, limit_s, answer=True)
    lines = _lines(ran.answer)
    answer = _assemble(lines, ran, limit_s)
    if answer.state == "library-missing" or any(line.get("bindings") is False for line in lines):
        return _ask_nvidia_smi(system, answer, limit_s)
    return answer


def bindings() -> str | None:
    """The folder of site-packages that has pynvml."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or not spec.origin:
        return None
    home = os.path.dirname(spec.origin)
    return os.path.dirname(home) if spec.submodule_search_locations else home


def _lines(data: bytes) -> list[dict[str, Any]]:
    """The JSON lines; one that was cut by a crash is left out."""
    found = []
    for line in data.splitlines():
        try:
            decoded = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(decoded, dict):
            found.append(decoded)
    return found


def _assemble(lines: list[dict[str, Any]], ran: Ran, limit_s: float) -> Answer:
    driver = next((line for line in lines if line.get("kind") == "driver"), {})
    said = next((line for line in lines if line.get("kind") == "state"), None)
    ended = said is not None and (said.get("state") != "ok" or any(line.get("kind") == "end" for line in lines))
    silence = _silence(ran, limit_s)
    told = {line["index"]: line for line in lines if line.get("kind") == "device"}
    missing = [index for index in range((said or {}).get("count") or 0) if index not in told]
    devices = [_gpu(line) for line in told.values()]
    devices += [Gpu(index=index, name="unknown", error=silence) for index in missing]
    state, detail = _state(said, told, missing, silence if missing or not ended else None)
    return Answer(
        state=state,
        detail=detail,
        driver_version=driver.get("driver_version"),
        driver_cuda=driver.get("driver_cuda"),
        devices=tuple(sorted(devices, key=lambda gpu: gpu.index)),
        links=tuple(msgspec.convert(_fields(line), GpuLink) for line in lines if line.get("kind") == "link"),
    )


def _state(
    said: dict[str, Any] | None, told: dict[int, dict[str, Any]], missing: list[int], silence: str | None
) -> tuple[NvmlState, str | None]:
    """The whole machine's state from what NVML said of itself and of each device."""
    if said is None:
        return "error", silence
    if said["state"] != "ok":
        return said["state"], said.get("detail")
    if silence:
        who = f"GPU {', '.join(map(str, missing))}: " if missing else ""
        return "error", who + silence
    lost = [index for index, line in told.items() if line.get("code") == _IS_LOST]
    if lost:
        return "lost", f"GPU {', '.join(map(str, sorted(lost)))}: {told[lost[0]].get('error')}"
    if told and all(line.get("code") == _NO_PERMISSION for line in told.values()):
        return "no-permission", next(iter(told.values())).get("error")
    return "ok", None


def _silence(ran: Ran, limit_s: float) -> str:
    """Why an answer is missing."""
    if ran.ending == "signalled":
        return f"NVML crashed with {ran.signal}"
    if ran.ending == "not-started":
        return f"the NVML process did not start: {ran.problem}"
    if ran.ending == "exited" and ran.code:
        lines = ran.stderr.strip().splitlines()
        return f"the NVML process failed: {lines[-1] if lines else f'exit code {ran.code}'}"
    waited = limit_s if ran.ending == "timed-out" else limit_s * _DEVICES_SHARE
    return f"NVML did not answer within {waited:g} s"


def _fields(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("kind", "code")}


def _gpu(line: dict[str, Any]) -> Gpu:
    return msgspec.convert(_fields(line), Gpu)


_COLUMNS = {
    "index": "index", "name": "name", "driver_version": "driver", "compute_cap": "capability",
    "memory.total": "total", "memory.free": "free", "memory.used": "used", "mig.mode.current": "mig",
    "compute_mode": "mode", "persistence_mode": "persistence", "ecc.errors.uncorrected.volatile.total": "ecc",
    "pcie.link.gen.current": "generation", "pcie.link.width.current": "width",
}  # fmt: skip
_MODES: dict[str, Literal["default", "exclusive-process", "prohibited"]] = {
    "Default": "default", "Exclusive_Process": "exclusive-process", "Prohibited": "prohibited",
}  # fmt: skip


def _ask_nvidia_smi(system: System, before: Answer, limit_s: float) -> Answer:
    """What nvidia-smi tells; ``before`` when it is not there or does not work either."""
    program = system.which("nvidia-smi") or system.which("nvidia-smi", "/usr/lib/wsl/lib")
    if program is None:
        return before
    ran = system.run([program, f"--query-gpu={','.join(_COLUMNS)}", "--format=csv,noheader,nounits"], limit_s)
    if ran.ok:
        return _from_csv(ran.stdout) or before
    if ran.ending == "timed-out":
        return Answer(state="error", detail=f"nvidia-smi did not answer within {limit_s:g} s", read_from="nvidia-smi")
    said = (ran.stdout + ran.stderr).strip()
    first = said.splitlines()[0] if said else f"nvidia-smi ended with code {ran.code}"
    if "couldn't communicate with the NVIDIA driver" in said:
        return Answer(state="driver-not-loaded", detail=first, read_from="nvidia-smi")
    if "version mismatch" in said.lower():
        return Answer(state="version-mismatch", detail=first, read_from="nvidia-smi")
    if "No devices were found" in said:
        return Answer(state="no-devices", detail=first, read_from="nvidia-smi")
    return before


def _from_csv(text: str) -> Answer | None:
    rows = [
        {
            key: None if cell.startswith("[") or cell in ("", "N/A") else cell
            for key, cell in zip(_COLUMNS.values(), row, strict=True)
        }
        for row in csv.reader(io.StringIO(text), skipinitialspace=True)
        if len(row) == len(_COLUMNS)
    ]
    devices = tuple(_gpu_of_row(row) for row in rows if (row["index"] or "").isdigit())
    if not devices:
        return None
    return Answer(state="ok", driver_version=rows[0]["driver"], devices=devices, read_from="nvidia-smi")


def _gpu_of_row(row: dict[str, str | None]) -> Gpu:
    def number(key: str, unit: int = 1) -> int | None:
        cell = row[key] or ""
        return int(cell) * unit if cell.isdigit() else None

    def enabled(key: str) -> bool | None:
        return row[key] == "Enabled" if row[key] in ("Enabled", "Disabled") else None

    return Gpu(
        index=number("index") or 0,
        name=row["name"] or "unknown",
        compute_capability=row["capability"],
        total_bytes=number("total", _MIB),
        free_bytes=number("free", _MIB),
        used_bytes=number("used", _MIB),
        mig_enabled=enabled("mig"),
        compute_mode=_MODES.get(row["mode"] or ""),
        persistence=enabled("persistence"),
        ecc_uncorrected=number("ecc"),
        pcie_generation=number("generation"),
        pcie_width=number("width"),
    )
