"""Read what ds_report printed, in any version from 0.3 to 0.19.8, however it was pasted.

Grammar: deepspeed/env_report.py of the tags v0.3.0 to v0.19.5 and of the 0.19.6 to 0.19.8 packages, compared with
recorded output (fixtures/ds_report).
"""

import re
from collections.abc import Iterable

from dsdoctor.facts import DeepSpeed, DsOp, DsReport, Fact, Toolkit, Toolkits, Torch
from dsdoctor.readers import pasted, regex
from dsdoctor.readers.ds_report_rows import INFO_TITLE, KEEP, KNOWN_KEY, NO_RUNTIME, ROW, TITLE, Reading

NOT_FOUND = "no ds_report was found in this text"
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = regex.compile(r"^([A-Za-z_][\w.]{0,120})(?::\s?(.*))?$")
_REFUSED = regex.compile(r"ds_report: error: (.*)")
_ABSENT = regex.compile(r"ds_report\W.{0,20}(?:command not found|is not recognized|No such file)|ds_report: not found")
_CPU_ROWS = ("deepspeed_not_implemented", "deepspeed_shm_comm", "deepspeed_ccl_comm")
_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_DEATHS = {
    "Segmentation fault": "SIGSEGV", "Illegal instruction": "SIGILL", "Bus error": "SIGBUS", "Aborted": "SIGABRT",
    "Killed": "SIGKILL",
}  # fmt: skip


def parse(text: str, source: str) -> DsReport:
    """Facts from a ds_report. Never raises; a text that holds none gives ``fault`` = NOT_FOUND.

    Of several reports in one text the last one is read. ``source`` says where the text came from.
    """
    lines = _last_report(pasted.lines(text))
    reading = Reading.of(_joined(lines))
    ops, info = reading.rows(), reading.info
    whole = _is_whole(reading, ops)
    fault_type, fault = (None, None) if whole else _fault(lines)
    if not (ops or reading.title or reading.in_info or reading.ninja is not None or len(info) > 1 or fault):
        return DsReport(source=source, complete=False, fault=NOT_FOUND)
    nvcc = info.get("nvcc version", "")
    wheel = dict(re.findall(r"(torch|cuda|hip) ([\w.]+)", info.get("deepspeed wheel compiled w.", "")))
    return DsReport(
        source=source,
        complete=whole,
        ninja=reading.ninja,
        ops=ops,
        torch_path=_path(info.get("torch install path")),
        torch_version=_told(info.get("torch version")),
        torch_cuda=_told(info.get("torch cuda version")),
        torch_hip=_told(info.get("torch hip version")),
        nvcc_version=nvcc if re.fullmatch(r"\d+\.\d+[\d.]*", nvcc) else None,
        nvcc_problem=nvcc.replace("[FAIL]", "").strip() or None if "[FAIL]" in nvcc else None,
        deepspeed_path=_path(info.get("deepspeed install path")),
        deepspeed_version=_version(info.get("deepspeed info")),
        deepspeed_info=info.get("deepspeed info"),
        wheel_torch=wheel.get("torch"),
        wheel_cuda=wheel.get("cuda"),
        shm_bytes=_bytes(info.get("shared memory (/dev/shm) size", "")),
        accelerator=_which_accelerator(reading, ops),
        accelerator_fallback=reading.fallback,
        info=info,
        general_warnings=tuple(reading.general),
        fault_type=fault_type,
        fault=fault,
    )


def _last_report(lines: list[str]) -> list[str]:
    """What stands before the first report (noise that belongs to it), and the last report."""
    starts = [n for n, line in enumerate(lines) if TITLE in line]
    return lines if len(starts) < 2 else lines[: starts[0]] + lines[starts[-1] :]


def _joined(lines: list[str]) -> Iterable[str]:
    """The lines, with a path list that was wrapped put together again."""
    waiting = ""
    for line in lines:
        if waiting:
            line, waiting = waiting + line.strip(), ""
        opened = re.search(r"install path [.\u2026]+ \S*\[['\"][^\]]*$", line) if "install path" in line else None
        if opened and len(line) < KEEP:
            waiting = line
        else:
            yield line
    if waiting:
        yield waiting


def _is_whole(reading: Reading, ops: tuple[DsOp, ...]) -> bool:
    """True when the text runs to the last row of its version, and its op table, if any, has its head."""
    info = reading.info
    version = _release(_version(info.get("deepspeed info")))
    last = "shared memory (/dev/shm) size" if version >= (0, 10, 1) else "deepspeed wheel compiled w."
    return bool(info.get("torch version") and info.get("deepspeed info") and last in info) and (
        not (ops or reading.title) or reading.op_header
    )


def _fault(lines: list[str]) -> tuple[str | None, str | None]:
    """Type and message of what ended the program, if the text shows it."""
    begins = max((n for n, line in enumerate(lines) if _TRACEBACK in line), default=None)
    if begins is not None and any("ds_report" in x or "deepspeed" in x for x in lines[begins : begins + 4000]):
        return _exception(lines[begins:])
    for line in lines:
        if refused := _REFUSED.search(line):
            return None, f"ds_report refused its arguments: {refused.group(1)}"[:KEEP]
        if absent := _ABSENT.search(line):
            return None, absent.group(0)[:KEEP]
        if line.strip().startswith("usage: ds_report") and any("show this help" in x for x in lines):
            return None, "this is ds_report's help text, not a report"
    if any("ds_report" in line or TITLE in line for line in lines):
        for line in lines:
            for word, signal in _DEATHS.items():
                if line.strip().startswith(word) or f": {word}" in line[:200]:
                    return signal, line.strip()[:KEEP]
    return None, None


def _exception(lines: list[str]) -> tuple[str | None, str | None]:
    """The exception below a traceback head, with the lines of its message."""
    margin = len(lines[0]) - len(lines[0].lstrip())
    for number, line in enumerate(lines[1:], start=1):
        found = _EXCEPTION.match(line[margin:]) if line[margin : margin + 1].strip() else None
        if found:
            message = [found.group(2) or ""]
            for more in lines[number + 1 : number + 20]:
                if not more.strip() or _is_grammar(more) or more.lstrip().startswith(("$", "[20", "usage:")):
                    break
                message.append(more.strip())
            return found.group(1), "\n".join(message).strip()[:KEEP] or found.group(1)
    return None, "the traceback is cut off before its last line"


def _is_grammar(line: str) -> bool:
    return bool(
        line.startswith("-----")
        or NO_RUNTIME.search(line)
        or TITLE in line
        or INFO_TITLE in line
        or ROW.search(line)
        or KNOWN_KEY.search(line)
    )


def _which_accelerator(reading: Reading, ops: tuple[DsOp, ...]) -> str | None:
    if reading.accelerator:
        return reading.accelerator
    if reading.fallback or any(op.name in _CPU_ROWS for op in ops):
        return "cpu"
    if "torch_npu version" in reading.info:
        return "npu"
    return "cuda" if ops or "torch cuda version" in reading.info else None


def _told(value: str | None) -> str | None:
    return None if value in (None, "", "None", "unknown") else value


def _path(value: str | None) -> str | None:
    """The path in a printed Python list."""
    if not value:
        return None
    quoted = re.search(r"'([^']*)'|\"([^\"]*)\"", value)
    return (quoted.group(1) or quoted.group(2) or "").replace("\\\\", "\\") or None if quoted else value


def _version(info: str | None) -> str | None:
    found = re.match(r"\s*(\d+\.[\w.+-]+)", info or "")
    return found.group(1) if found else None


def _release(version: str | None) -> tuple[int, ...]:
    found = re.match(r"\d{1,6}(?:\.\d{1,6})*", version or "")
    return tuple(int(part) for part in found.group(0).split(".")) if found else ()


def _bytes(size: str) -> int | None:
    found = re.match(r"(\d{1,9}(?:\.\d{1,9})?) ?([KMGT]?B)\b", size)
    return round(float(found.group(1)) * _UNITS[found.group(2)]) if found else None


def facts_of(report: DsReport) -> dict[str, Fact]:
    """Sections that a pasted report can fill, by their name in a Snapshot; what it does not say is left out."""
    facts: dict[str, Fact] = {"ds_report": report}
    if (torch := _torch(report)) is not None:
        facts["torch"] = torch
    if report.deepspeed_version:
        facts["deepspeed"] = DeepSpeed(
            version=report.deepspeed_version,
            path=report.deepspeed_path or "(not in the report)",
            built_torch=report.wheel_torch,
            built_cuda=report.wheel_cuda,
            prebuilt_ops=tuple(op.name for op in report.ops if op.installed),
            from_text=True,
        )
    if report.nvcc_version or report.nvcc_problem:
        facts["toolkits"] = _toolkits(report)
    return facts


def _torch(report: DsReport) -> Torch | None:
    """torch's build from the report, else from its version's ending; None when neither tells the kind of build."""
    if not report.torch_version:
        return None
    cuda, hip = report.torch_cuda, report.torch_hip
    local = report.torch_version.partition("+")[2]
    if not (cuda or hip or "torch cuda version" in report.info):
        if tag := re.match(r"cu(\d+)(\d)$", local):
            cuda = f"{tag.group(1)}.{tag.group(2)}"
        elif tag := re.match(r"rocm(\d+\.\d+)", local):
            hip = tag.group(1)
        elif not local.startswith("cpu"):
            return None
    path = report.torch_path or "(not in the report)"
    return Torch(version=report.torch_version, cuda=cuda, hip=hip, path=path, from_text=True)


def _toolkits(report: DsReport) -> Toolkits:
    """The toolkit that the nvcc row speaks of. Its folder is only known when torch's own line names it."""
    if report.nvcc_problem and "CUDA_HOME" in report.nvcc_problem:
        return Toolkits()
    named = next((m.group(1) for w in report.general_warnings if (m := NO_RUNTIME.match(w)) and m.group(1)), None)
    root = named or "(CUDA_HOME of the report)"
    toolkit = Toolkit(
        root=root,
        found_by="CUDA_HOME",
        nvcc=f"{root}/bin/nvcc" if report.nvcc_version else None,
        nvcc_problem=report.nvcc_problem,
        version=report.nvcc_version,
        from_text=True,
    )
    return Toolkits(found=(toolkit,), chosen=root, chosen_by="CUDA_HOME")
